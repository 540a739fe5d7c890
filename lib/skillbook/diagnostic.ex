defmodule Skillbook.Diagnostic do
  @moduledoc """
  What was found out about a document: nothing is dropped or mended without one of these.

  ## Fields

    * `:code` - what it is about, a stable atom such as `:frontmatter_repaired`
    * `:severity` - `:error` (not used), `:warning` (used, though not as written) or `:info`
    * `:path` - the file, or `nil` where there was only text
    * `:line`, `:column` - the place, both from 1, the column in characters; or `nil`
    * `:message` - what was expected and what came
    * `:hint` - what to write instead, or `nil`
    * `:fix` - where only one mending is right: `{offset, length, text}`, the bytes of the file that `text` takes the place
      of; or `nil`. With it the diagnostic is gone, and no field has changed

  `to_string/1` gives the one-line form that logs and terminals show:

      iex> to_string(%Skillbook.Diagnostic{code: :duplicate_key, severity: :warning, path: "a.md", line: 3, column: 1, message: "`name` is written twice"})
      "a.md:3:1: warning: `name` is written twice [duplicate_key]"
  """

  @type t :: %__MODULE__{
          code: atom(),
          severity: :error | :warning | :info,
          path: String.t() | nil,
          line: pos_integer() | nil,
          column: pos_integer() | nil,
          message: String.t(),
          hint: String.t() | nil,
          fix: {non_neg_integer(), non_neg_integer(), String.t()} | nil
        }

  @enforce_keys [:code, :severity, :message]
  defstruct [:code, :severity, :path, :line, :column, :message, :hint, :fix]

  @doc """
  All codes; `docs/diagnostics.md` says what each means and what to do about it.

      iex> :name_missing in Skillbook.Diagnostic.codes()
      true
  """
  @spec codes() :: [atom()]
  def codes, do: Skillbook.Native.diagnostic_codes()

  @doc false
  # The line as a terminal shows it, or of a long one the part around the column, and the line below with a caret.
  @spec excerpt(String.t(), pos_integer()) :: {String.t(), String.t()}
  def excerpt(line, column), do: Skillbook.Native.diagnostic_excerpt(line, column)

  defimpl String.Chars do
    def to_string(diagnostic) do
      place =
        [diagnostic.path, diagnostic.line, diagnostic.column]
        |> Enum.reject(&is_nil/1)
        |> Enum.join(":")

      hint = if diagnostic.hint, do: "\n  hint: #{diagnostic.hint}", else: ""
      prefix = if place == "", do: "", else: place <> ": "
      "#{prefix}#{diagnostic.severity}: #{diagnostic.message} [#{diagnostic.code}]#{hint}"
    end
  end
end
