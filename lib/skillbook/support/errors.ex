defmodule Skillbook.OptionError do
  @moduledoc """
  An option that is unknown, missing, or has a value of the wrong kind.

  ## Fields

    * `:subject` - what the option was for, such as `"a source"`
    * `:option` - its name; `nil` if there were no options at all, but something else
    * `:problem` - `:unknown`, `:missing` or `{:invalid, expected, value}`
    * `:known` - the names of the options that there are

  ## Examples

      iex> Exception.message(%Skillbook.OptionError{subject: "a source", option: :pth, problem: :unknown, known: [:path, :name]})
      "unknown option :pth for a source, did you mean :path? The options are :path, :name"

      iex> Exception.message(%Skillbook.OptionError{subject: "a source", option: :path, problem: :missing})
      "a source needs the option :path"

      iex> Exception.message(%Skillbook.OptionError{subject: "a source", option: :kind, problem: {:invalid, ":skills or :notes", :x}})
      "expected :skills or :notes as the option :kind of a source, got: :x"
  """

  @type t :: %__MODULE__{
          subject: String.t(),
          option: atom(),
          problem: :unknown | :missing | {:invalid, String.t(), term()},
          known: [atom()]
        }

  defexception [:subject, :option, :problem, known: []]

  @impl true
  def message(%{problem: :unknown} = error) do
    known = Enum.map_join(error.known, ", ", &inspect/1)

    "unknown option #{inspect(error.option)} for #{error.subject}#{suggestion(error)} The options are #{known}"
  end

  def message(%{problem: :missing} = error) do
    "#{error.subject} needs the option #{inspect(error.option)}"
  end

  def message(%{option: nil, problem: {:invalid, expected, value}} = error) do
    "expected #{expected} for #{error.subject}, got: #{inspect(value)}"
  end

  def message(%{problem: {:invalid, expected, value}} = error) do
    "expected #{expected} as the option #{inspect(error.option)} of #{error.subject}, got: #{inspect(value)}"
  end

  defp suggestion(error) do
    case Skillbook.Support.Closest.to(
           to_string(error.option),
           Enum.map(error.known, &to_string/1)
         ) do
      nil -> "."
      close -> ", did you mean :#{close}?"
    end
  end
end

defmodule Skillbook.JSONError do
  @moduledoc """
  A text that is no JSON.

  ## Fields

    * `:reason` - what is wrong with it
    * `:line`, `:column` - where, both from 1
    * `:path` - the keys and the numbers, from 0, that lead to the value; empty for the text as a whole

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
