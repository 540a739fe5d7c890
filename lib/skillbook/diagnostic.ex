defmodule Skillbook.Diagnostic do
  @moduledoc """
  A problem in a document, with its position and a hint.

  Skillbook never skips or repairs a file without a diagnostic. `Skillbook.diagnostics/1`,
  `Skillbook.Catalog.diagnostics/1` and `Skillbook.Lint` return them.

  ## Fields

    * `:code` - a stable atom such as `:frontmatter_repaired`; see `codes/0`
    * `:severity` - `:error` (the document is not used), `:warning` (it is used, but not as
      written) or `:info`
    * `:path` - the file, or `nil` for a text without one
    * `:line`, `:column` - the position, both from 1, the column in characters; or `nil`
    * `:message` - the problem, as "expected X, got Y" where possible
    * `:hint` - a correction, or `nil`
    * `:fix` - an automatic correction, if only one is possible: `{offset, length, text}` replaces
      these bytes of the file by `text`; or `nil`. It removes the diagnostic and changes no field

  `to_string/1` returns the one-line form for logs and terminals:

      iex> {:ok, catalog} = Skillbook.Catalog.load(["no/such/folder"])
      iex> [diagnostic] = Skillbook.Catalog.diagnostics(catalog)
      iex> to_string(%{diagnostic | path: "skills", hint: nil}) =~ "[source_missing]"
      true
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
  Returns all codes. [Diagnostics](docs/diagnostics.md) explains each and its correction.

      iex> :name_missing in Skillbook.Diagnostic.codes()
      true
  """
  @spec codes() :: [atom()]
  def codes, do: Skillbook.Native.diagnostic_codes()

  @doc false
  # Returns the problem and the solution of a code, as Markdown without links.
  @spec explain(atom()) :: {:ok, {problem :: String.t(), solution :: String.t()}} | :error
  def explain(code) do
    case code |> Atom.to_string() |> Skillbook.Native.diagnostic_explain() do
      nil -> :error
      explained -> {:ok, explained}
    end
  end

  @doc false
  # Returns the line as a terminal shows it (of a long line the part around the column), and the
  # line below it with a caret.
  @spec excerpt(String.t(), pos_integer()) :: {String.t(), String.t()}
  def excerpt(line, column), do: Skillbook.Native.diagnostic_excerpt(line, column)

  defimpl String.Chars do
    def to_string(diagnostic), do: Skillbook.Native.diagnostic_text(diagnostic)
  end
end
