defmodule Skillbook.Report do
  @moduledoc ~S"""
  The results of a model's reply, as returned by `Skillbook.run/3`.

  `to_string/1` returns the text for the model: each command with its status, and its content
  indented below, so that no content can imitate the result of another command. Content with a
  code block is a block quote, so that a model that repeats it runs nothing. The text is empty if
  the reply had no commands and nothing that looks like one.

  ## Fields

    * `:text` - the reply without its command blocks, for the user
    * `:results` - a `Skillbook.Result` for each command, in the order in which they ran
    * `:incomplete` - the commands of a block that was cut off; they did not run
    * `:notes` - notes for the model about commands that did not run because they were outside of
      a `cmd` block: in a code block that was not closed; or, in a reply without `cmd` blocks, in
      a shell block, a JSON block, a block without a language, or tags

  ## Examples

      iex> result = %{Skillbook.Result.ok("T-1  Call Bob") | command: "tasks.get T-1"}
      iex> report = %Skillbook.Report{results: [result], incomplete: ["tasks.get T-"]}
      iex> report |> to_string() |> String.split("\n") |> Enum.take(6)
      ["[1] tasks.get T-1", "ok", "  T-1  Call Bob", "", "[2] tasks.get T-", "not run"]
  """

  alias Skillbook.Result
  alias Skillbook.Support.Hidden

  @type t :: %__MODULE__{
          text: String.t(),
          results: [Result.t()],
          incomplete: [String.t()],
          notes: [String.t()]
        }

  defstruct text: "", results: [], incomplete: [], notes: []

  @doc false
  # The text of one result, for the answer to a tool call. Its first line is always the status, so
  # no content can imitate instructions to follow.
  @spec answer(Result.t()) :: String.t()
  def answer(%Result{content: content} = result) do
    case String.trim_trailing(content) do
      "" -> status(result)
      content -> status(result) <> "\n" <> shown(content)
    end
  end

  @doc false
  # A content as the model sees it. Models repeat results, and a `cmd` block of a stranger's text
  # must not run when they do. Blocks in block quotes are text, however they are indented.
  @spec shown(String.t()) :: String.t()
  def shown(content) do
    content = Hidden.visible(content)

    # Only `\n` and `\r\n` are left as line breaks.
    if String.contains?(content, ["```", "~~~"]),
      do: content |> String.split(["\r\n", "\n"]) |> Enum.map_join("\n", &quoted/1),
      else: content
  end

  defp quoted(""), do: ">"
  defp quoted(line), do: "> " <> line

  @doc false
  @spec status(Result.t()) :: String.t()
  def status(%Result{status: :template, metadata: %{external: true}}), do: "ok"
  def status(%Result{status: :template}), do: "ok: instructions to follow"
  def status(%Result{status: :help}), do: "ok"
  def status(%Result{status: status}), do: Atom.to_string(status)

  defimpl String.Chars do
    alias Skillbook.Report

    @not_run "The reply ended before the block of this command was closed. " <>
               "If it is still wanted, write it again in a whole block."
    @max_heading_length 120

    def to_string(report) do
      results = Enum.map(report.results, &{&1.command, Report.status(&1), &1.content})
      incomplete = Enum.map(report.incomplete, &{&1, "not run", @not_run})

      answers =
        for {{command, status, content}, number} <- Enum.with_index(results ++ incomplete, 1),
            do: "[#{number}] #{heading(command)}\n#{status}#{indented(content)}"

      Enum.join(answers ++ Enum.map(report.notes, &Hidden.visible/1), "\n\n")
    end

    defp heading(nil), do: "(the whole reply)"

    defp heading(command) do
      line = command |> String.split("\n", parts: 2) |> hd()
      heading = String.slice(line, 0, @max_heading_length)
      Hidden.visible(if heading == command, do: heading, else: heading <> " …")
    end

    defp indented(content) do
      # Only `\n` and `\r\n` are left as line breaks, so no text can start a line without
      # indentation.
      case String.trim_trailing(content) do
        "" ->
          ""

        content ->
          lines = content |> Report.shown() |> String.split(["\r\n", "\n"])
          "\n" <> Enum.map_join(lines, "\n", &indent/1)
      end
    end

    defp indent(""), do: ""
    defp indent(line), do: "  " <> line
  end
end
