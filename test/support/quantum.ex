# The documented part of Quantum 3.5 that Skillbook calls: setters of jobs, a parser, and a
# scheduler. Everything else is left out, so that nothing undocumented is used.

defmodule Crontab.CronExpression do
  @moduledoc false
  # The real one has a field for each part; here it is the text.
  defstruct [:text, extended: false]
end

defmodule Quantum.Job do
  @moduledoc false
  defstruct [:name, :schedule, :task, timezone: :utc, overlap: true, state: :active]

  def set_name(%__MODULE__{} = job, name) when is_atom(name) or is_reference(name),
    do: %{job | name: name}

  def set_schedule(%__MODULE__{} = job, %Crontab.CronExpression{} = schedule),
    do: %{job | schedule: schedule}

  def set_timezone(%__MODULE__{} = job, timezone), do: %{job | timezone: timezone}

  def set_task(%__MODULE__{} = job, {module, function, arguments}),
    do: %{job | task: {module, function, arguments}}

  def set_overlap(%__MODULE__{} = job, overlap?) when is_boolean(overlap?),
    do: %{job | overlap: overlap?}
end

defmodule Crontab.CronExpression.Parser do
  @moduledoc false
  def parse("0 8 L * *", false), do: {:error, "Can't parse L as day."}
  def parse(text, extended?), do: {:ok, %Crontab.CronExpression{text: text, extended: extended?}}
end

defmodule Skillbook.FakeQuantum do
  @moduledoc false
  # The functions of a module with `use Quantum`.
  use Agent

  def start_link(_options), do: Agent.start_link(fn -> %{} end, name: __MODULE__)

  def new_job, do: %Quantum.Job{name: make_ref()}

  def add_job(%Quantum.Job{name: name} = job),
    do: Agent.update(__MODULE__, &Map.put(&1, name, job))

  def delete_job(name), do: Agent.update(__MODULE__, &Map.delete(&1, name))
  def jobs, do: Agent.get(__MODULE__, &Map.to_list/1)
end
