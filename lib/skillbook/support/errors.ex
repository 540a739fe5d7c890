defmodule Skillbook.OptionError do
  @moduledoc """
  Returned when an option is unknown, missing or has an invalid value.

  ## Fields

    * `:subject` - the owner of the options, such as `"a source"`
    * `:option` - the name of the option; `nil` if the options are not a keyword list
    * `:problem` - `:unknown`, `:missing`, `{:package, name}` if a package with it is missing, or
      `{:invalid, expected, value}`
    * `:known` - the names of all options

  ## Examples

      iex> {:error, error} = Skillbook.Source.new(kind: :notes)
      iex> Exception.message(error)
      "a source needs the option :path"

      iex> {:error, error} = Skillbook.Source.new(path: "/srv/notes", kind: :note)
      iex> Exception.message(error)
      "expected :skills or :notes as the option :kind of a source, got: :note"
  """

  @type t :: %__MODULE__{
          subject: String.t(),
          option: atom(),
          problem: :unknown | :missing | {:package, atom()} | {:invalid, String.t(), term()},
          known: [atom()]
        }

  defexception [:subject, :option, :problem, known: []]

  @impl true
  def message(%{problem: :unknown} = error) do
    "unknown option #{inspect(error.option)} for #{error.subject}#{suggestion(error)}" <>
      known(error.known)
  end

  def message(%{problem: {:package, package}} = error) do
    "the option #{inspect(error.option)} of #{error.subject} needs the package #{package}: " <>
      "add it to the deps in mix.exs"
  end

  def message(%{problem: :missing} = error) do
    "#{error.subject} needs the option #{inspect(error.option)}"
  end

  def message(%{option: nil, problem: {:invalid, expected, _value}} = error) do
    "expected #{expected} for #{error.subject}, got: #{inspected(error)}"
  end

  def message(%{problem: {:invalid, expected, _value}} = error) do
    "expected #{expected} as the option #{inspect(error.option)} of #{error.subject}, " <>
      "got: #{inspected(error)}"
  end

  # The password of a URL must not reach a log. These hide their own, and show the host.
  defp inspected(%{subject: subject, problem: {:invalid, _expected, value}})
       when subject in ["a model", "an embedder"],
       do: inspect(value)

  defp inspected(%{problem: {:invalid, _expected, value}}),
    do: value |> inspect() |> Skillbook.SQL.Location.redact()

  # The one that was meant.
  defp known([_option]), do: ""
  defp known(options), do: " The options are " <> Enum.map_join(options, ", ", &inspect/1)

  defp suggestion(error) do
    known = Enum.map(error.known, &to_string/1)

    case Skillbook.Support.Closest.to(to_string(error.option), known) do
      nil -> "."
      close -> ", did you mean :#{close}?"
    end
  end
end

defmodule Skillbook.JSONError do
  @moduledoc """
  Returned when a text is not JSON.

  ## Fields

    * `:reason` - the mistake
    * `:line`, `:column` - the position, both from 1
    * `:path` - the path of the value, a list of keys and of indices from 0; empty for the whole
      text

  ## Examples

      iex> Exception.message(%Skillbook.JSONError{reason: "trailing comma", line: 4, column: 1})
      "line 4, column 1: trailing comma"
  """

  @type t :: %__MODULE__{
          reason: String.t(),
          line: pos_integer(),
          column: pos_integer(),
          path: [String.t() | non_neg_integer()]
        }

  @enforce_keys [:reason, :line, :column]
  defexception [:reason, :line, :column, path: []]

  @impl true
  def message(error), do: "line #{error.line}, column #{error.column}: #{error.reason}"
end
