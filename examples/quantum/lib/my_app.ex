defmodule MyApp.Quantum do
  @moduledoc "The application's scheduler, which may also have jobs from its configuration."
  use Quantum, otp_app: :my_app
end

defmodule MyApp.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    children = [
      MyApp.Quantum,
      {Skillbook,
       name: MyApp.Skills,
       sources: ["skills"],
       store: "my_app.db",
       watch: [poll: 200],
       scheduler: {Skillbook.Scheduler.Quantum, MyApp.Quantum}}
    ]

    Supervisor.start_link(children, strategy: :rest_for_one, name: MyApp.Supervisor)
  end
end

defmodule MyApp.Tick do
  @moduledoc "The handler of skills/clock/tick.md."
  @behaviour Skillbook.Handler

  @impl true
  def execute(_flags, context) do
    at = context.assigns.scheduled.at
    IO.puts("#{context.entry.description} #{DateTime.to_time(at)}")
    {:ok, "ticked"}
  end
end
