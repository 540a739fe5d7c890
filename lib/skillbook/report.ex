defmodule Skillbook.Report do
  @moduledoc ~S"""
  What running a model's reply gave.

  `to_string/1` is the text that goes back to the model: each command, how it went, and its content indented below, so
  that no content can pass for another command's result. It is empty if the reply had no commands, and nothing that looks
  like one.

  ## Fields

    * `:text` - the reply without its command blocks, for the user
    * `:results` - a `Skillbook.Result` for each command, in the order in which they ran
    * `:incomplete` - the commands of a block that was cut off, which did not run
    * `:notes` - what else the model is told. There is one for each code block that was not closed and holds commands of the view,
      which so did not run. Of a reply without any block there is one if it has what looks like a command of
      the view: in a block of the shell, of JSON or of no language, or in tags

  ## Examples

      iex> results = [%Skillbook.Result{status: :ok, command: "tasks.get T-1", content: "T-1  Call Bob\n      due today"}]
      iex> report = %Skillbook.Report{text: "One moment.", results: results, incomplete: ["tasks.get T-"]}
      iex> report |> to_string() |> String.split("\n") |> Enum.take(7)
      ["[1] tasks.get T-1", "ok", "  T-1  Call Bob", "        due today", "", "[2] tasks.get T-", "not run"]
  """

  alias Skillbook.Result

  @type t :: %__MODULE__{
          text: String.t(),
          results: [Result.t()],
          incomplete: [String.t()],
          notes: [String.t()]
        }

  defstruct text: "", results: [], incomplete: [], notes: []

  defimpl String.Chars do
    @not_run "The reply ended before the block of this command was closed. " <>
               "If it is still wanted, write it again in a whole block."
    # Whatever a reader may take for the start of a line is indented.
    @line_break ~r/\R/u
    # Enough to know a command again by.
    @shown 120

    def to_string(report) do
      results = Enum.map(report.results, &{&1.command, status(&1.status), &1.content})
      incomplete = Enum.map(report.incomplete, &{&1, "not run", @not_run})

      answers =
        for {{command, status, content}, number} <- Enum.with_index(results ++ incomplete, 1),
            do: "[#{number}] #{heading(command)}\n#{status}#{indented(content)}"

      Enum.join(answers ++ report.notes, "\n\n")
    end

    defp status(:template), do: "ok: instructions to follow"
    defp status(:help), do: "ok"
    defp status(status), do: Atom.to_string(status)

    defp heading(nil), do: "(the whole reply)"

    defp heading(command) do
      line = command |> String.split("\n", parts: 2) |> hd()
      shown = String.slice(line, 0, @shown)
      if shown == command, do: shown, else: shown <> " …"
    end

    defp indented(content) do
      case String.trim_trailing(content) do
        "" -> ""
        content -> "\n" <> (@line_break |> Regex.split(content) |> Enum.map_join("\n", &indent/1))
      end
    end

    defp indent(""), do: ""
    defp indent(line), do: "  " <> line
  end
end
