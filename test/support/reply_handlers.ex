defmodule Skillbook.ReplyHandlers do
  @moduledoc false
  # The handlers of the skills that the replies in fixtures/replies call beside the built-in ones.

  defmodule Anything do
    @moduledoc false
    @behaviour Skillbook.Handler
    @impl true
    def execute(_flags, _context), do: {:ok, "Done."}
  end

  defmodule Email do
    @moduledoc false
    @behaviour Skillbook.Handler

    alias Skillbook.Flags

    @impl true
    def execute(flags, context) do
      with {:ok, flags} <- Flags.known(flags, ~w(to subject body cc draft)),
           {:ok, flags} <- Flags.cast_args(flags, context.command.args, []),
           :ok <- Flags.require(flags, ~w(to subject body)),
           {:ok, flags} <- Flags.cast_emails(flags, "to"),
           {:ok, flags} <- Flags.cast_emails(flags, "cc"),
           {:ok, flags} <- Flags.cast_text(flags, "subject", line: true, max: 200),
           {:ok, flags} <- Flags.cast_text(flags, "body"),
           {:ok, flags} <- Flags.cast_boolean(flags, "draft") do
        done = if flags["draft"], do: "Drafted", else: "Sent"
        {:ok, "#{done} to #{Enum.join(flags["to"], ", ")}: #{flags["subject"]}\n#{flags["body"]}"}
      end
    end
  end
end
