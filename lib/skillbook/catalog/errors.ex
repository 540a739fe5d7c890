defmodule Skillbook.FrontmatterError do
  @moduledoc """
  Returned when the frontmatter of a document cannot be read.

  ## Fields

    * `:kind` - one of
      * `:encoding` - the text is not UTF-8
      * `:unclosed` - the opening `---` has no closing one
      * `:invalid` - the block is not YAML and cannot be repaired
      * `:not_mapping` - the block is YAML, but not a mapping
      * `:too_large` - the block is longer than 1 MiB, or larger than 2 MiB with its aliases
        expanded
      * `:too_deep` - values are nested more than 64 levels deep
    * `:reason` - the mistake, as "expected X, got Y" where possible
    * `:line`, `:column` - the position, both from 1, the column in characters
    * `:offset` - the position in bytes, from 0
    * `:source` - the text of the line; `""` if it is not UTF-8 or longer than 64 KiB
    * `:hint` - a correction, or `nil`

  `message/1` shows the line with a caret below the position:

      iex> text = "---\\nname: a\\n description: b\\n---\\n"
      iex> {:error, error} = Skillbook.Frontmatter.parse(text)
      iex> error |> Exception.message() |> String.split("\\n")
      ["frontmatter: a `key: value` is not allowed here",
       "  3 |  description: b",
       "    |             ^",
       "hint: check the indentation of this line and the one before it"]
  """

  @type kind :: :encoding | :unclosed | :invalid | :not_mapping | :too_large | :too_deep
  @type t :: %__MODULE__{
          kind: kind(),
          reason: String.t(),
          line: pos_integer(),
          column: pos_integer(),
          offset: non_neg_integer(),
          source: String.t(),
          hint: String.t() | nil
        }

  defexception [:kind, :reason, :line, :column, :offset, :source, :hint]

  @max_line_bytes 64 * 1024

  @doc false
  def new({kind, reason, line, column, offset, hint}, text) do
    %__MODULE__{
      kind: kind,
      reason: reason,
      line: line,
      column: column,
      offset: offset,
      source: source(text, offset),
      hint: hint
    }
  end

  defp source(text, offset) do
    ahead = min(byte_size(text) - offset, @max_line_bytes)

    with start when is_integer(start) <- line_start(text, offset, @max_line_bytes),
         stop when is_integer(stop) <- line_end(text, offset, ahead),
         line = text |> binary_part(start, stop - start) |> String.trim_trailing("\r"),
         true <- String.valid?(line) do
      # Without the copy the error would keep the whole document in memory.
      :binary.copy(line)
    else
      _ -> ""
    end
  end

  defp line_start(_text, 0, _left), do: 0
  defp line_start(_text, _offset, 0), do: nil

  defp line_start(text, offset, left) do
    if :binary.at(text, offset - 1) == ?\n,
      do: offset,
      else: line_start(text, offset - 1, left - 1)
  end

  defp line_end(text, offset, ahead) do
    case :binary.match(text, "\n", scope: {offset, ahead}) do
      {at, 1} -> at
      :nomatch when offset + ahead == byte_size(text) -> offset + ahead
      :nomatch -> nil
    end
  end

  @impl true
  def message(%__MODULE__{} = error) do
    number = Integer.to_string(error.line)
    hint = if error.hint, do: "\nhint: #{error.hint}", else: ""
    "frontmatter: #{error.reason}\n#{excerpt(error, number)}#{hint}"
  end

  defp excerpt(%{source: ""}, number), do: "  at line #{number}"

  defp excerpt(error, number) do
    {line, caret} = Skillbook.Diagnostic.excerpt(error.source, error.column)
    "  #{number} | #{line}\n  #{String.duplicate(" ", String.length(number))} | #{caret}"
  end
end

defmodule Skillbook.UnknownSkillError do
  @moduledoc """
  Returned when no entry of a name exists, or none that the view shows.

  ## Fields

    * `:name` - the name
    * `:suggestions` - up to three similar names that the view shows, the closest first
    * `:ambiguous` - whether the name is another spelling of each of the suggestions; then they
      are all of these names, up to 20

  ## Examples

      iex> error = %Skillbook.UnknownSkillError{name: "emial.send", suggestions: ["email.send"]}
      iex> error |> Exception.message() |> String.split("? ")
      [
        "unknown skill \\"emial.send\\"; did you mean email.send",
        "To list all skills, write: get_skill"
      ]

      iex> Exception.message(%Skillbook.UnknownSkillError{name: "x"})
      "unknown skill \\"x\\". To list all skills, write: get_skill"
  """

  @type t :: %__MODULE__{name: String.t(), suggestions: [String.t()], ambiguous: boolean()}

  defexception [:name, suggestions: [], ambiguous: false]

  @max_candidates 20

  @doc false
  # The error for a text that means several names.
  def ambiguous(name, names) do
    %__MODULE__{name: name, suggestions: Enum.take(names, @max_candidates), ambiguous: true}
  end

  @impl true
  def message(%{ambiguous: true} = error) do
    "#{inspect(String.slice(error.name, 0, 100))} can mean #{either(error.suggestions)}. " <>
      "Write one of these names"
  end

  def message(%{name: name, suggestions: suggestions}) do
    # A malformed command may have its whole text as a name.
    "unknown skill #{inspect(String.slice(name, 0, 100))}#{offer(suggestions)} " <>
      "To list all skills, write: get_skill"
  end

  defp offer([]), do: "."
  defp offer(names), do: "; did you mean #{either(names)}?"

  defp either([name]), do: name

  defp either(names) do
    {last, others} = List.pop_at(names, -1)
    "#{Enum.join(others, ", ")} or #{last}"
  end
end

defmodule Skillbook.DocumentError do
  @moduledoc """
  Returned when a document cannot be read or written.

  ## Fields

    * `:kind` - the cause:
      * `:path` - the path is not the path of a file below the folder
      * `:name` - a new file would have a name that not every system allows, or with invisible
        characters; `:reason` says what is wrong
      * `:link` - a part of the path is a symbolic link
      * `:exists` - the file already exists
      * `:missing` - the file does not exist
      * `:io` - the file system returned the error in `:reason`
    * `:path` - the path as given, relative to the folder; for `:link` and `:io` up to the part
      that failed
    * `:reason` - a POSIX code such as `:enospc`, a text for `:name`, or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.DocumentError{kind: :exists, path: "finance/report.md"})
      "finance/report.md exists already"
  """

  @type t :: %__MODULE__{
          kind: :path | :name | :link | :exists | :missing | :io,
          path: String.t(),
          reason: File.posix() | String.t() | nil
        }

  @enforce_keys [:kind, :path]
  defexception [:kind, :path, :reason]

  @impl true
  def message(%{kind: :path, path: path}) do
    "#{inspect(path)} is no path of a file below the folder: " <>
      "write names without a leading dot, joined by slashes, such as finance/report.md"
  end

  def message(%{kind: :name, path: path, reason: reason}) do
    "#{inspect(path)} #{reason}, and is not written: " <>
      "write letters, digits, blanks and dashes, such as finance/report.md"
  end

  def message(%{kind: :link, path: path}),
    do:
      "#{path} is a symbolic link, and links are not followed here: " <>
        "name a folder or file in its place"

  def message(%{kind: :exists, path: path}), do: "#{path} exists already"
  def message(%{kind: :missing, path: path}), do: "#{path} does not exist"

  def message(%{kind: :io, path: path, reason: reason}),
    do: "#{path}: #{:file.format_error(reason)}"
end

defmodule Skillbook.SourceError do
  @moduledoc """
  Returned when a book cannot start, because the folder of a source is missing or cannot be read.

  Sources with `optional: true` may be missing.

  ## Fields

    * `:source` - the name of the source
    * `:path` - its folder
    * `:reason` - the problem, a text

  ## Examples

      iex> {:error, error} = Skillbook.start_link(name: :lost, sources: ["/no/such/folder"])
      iex> error |> Exception.message() |> String.split(". ")
      [
        ~s(the source "folder" cannot be read: /no/such/folder: the folder does not exist),
        "Correct the path or create the folder, or let it be missing with the options " <>
          ~s([path: "/no/such/folder", optional: true])
      ]
  """

  @type t :: %__MODULE__{source: String.t(), path: Path.t(), reason: String.t()}

  @enforce_keys [:source, :path, :reason]
  defexception [:source, :path, :reason]

  @impl true
  def message(%{source: source, path: path, reason: reason}) do
    "the source #{inspect(source)} cannot be read: #{path}: #{reason}. Correct the path or " <>
      "create the folder, or let it be missing with the options " <>
      "[path: #{inspect(path)}, optional: true]"
  end
end

defmodule Skillbook.ConfigError do
  @moduledoc """
  Returned when a configuration file cannot be read or has an invalid value.

  `Skillbook.Source.from_json/2` describes the format of the file.

  ## Fields

    * `:path` - the file
    * `:line`, `:column` - the position, both from 1, the column in characters; `nil` if the file
      cannot be read
    * `:at` - the path of the value, such as `"skills[1].available[0]"`; `nil` for the whole file,
      and if the text is not JSON
    * `:reason` - the mistake, as "expected X, got: Y" where possible

  ## Examples

      iex> error = %Skillbook.ConfigError{path: "agents.json", reason: "expected a path, got: 3"}
      iex> Exception.message(%{error | line: 4, column: 14, at: "skills[1].root"})
      "agents.json:4:14: skills[1].root: expected a path, got: 3"
  """

  @type t :: %__MODULE__{
          path: Path.t(),
          line: pos_integer() | nil,
          column: pos_integer() | nil,
          at: String.t() | nil,
          reason: String.t()
        }

  @enforce_keys [:path, :reason]
  defexception [:path, :line, :column, :at, :reason]

  @impl true
  def message(error) do
    place = [error.path, error.line, error.column] |> Enum.reject(&is_nil/1) |> Enum.join(":")
    [place, error.at, error.reason] |> Enum.reject(&is_nil/1) |> Enum.join(": ")
  end
end
