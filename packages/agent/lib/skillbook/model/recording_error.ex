defmodule Skillbook.RecordingError do
  @moduledoc """
  A recording that cannot be read, or a request that it does not have.

  ## Fields

    * `:kind` - the problem:
      * `:missing` - the file does not exist
      * `:invalid` - it is not a recording; `:text` says why
      * `:different` - no recorded request is the same; `:text` is the difference to the next one
      * `:ended` - all answers were given; `:text` is the request
      * `:repeated` - the request was recorded `:number` times, and sent more often
      * `:unused` - the answer to the request `:number` was not asked for; `:text` is the request
    * `:path` - the file
    * `:number` - the number of a recorded request, from 1, or `nil`
    * `:text` - as above, or `nil`

  ## Examples

      iex> error = %Skillbook.RecordingError{kind: :missing, path: "a.json"}
      iex> Exception.message(error)
      "a.json: there is no such recording; make it with the model and `record: true` " <>
        "(in tests: SKILLBOOK_RECORD=1)"
  """

  alias Skillbook.Support.Count

  @type t :: %__MODULE__{
          kind: :missing | :invalid | :different | :ended | :repeated | :unused,
          path: Path.t(),
          number: pos_integer() | nil,
          text: String.t() | nil
        }

  defexception [:kind, :path, :number, :text]

  @record "the model and `record: true` (in tests: SKILLBOOK_RECORD=1)"
  @again "If that is right, record it again with #{@record}."

  @impl true
  def message(error), do: Skillbook.Support.Hidden.visible("#{error.path}: #{text(error)}")

  defp text(%{kind: :missing}), do: "there is no such recording; make it with #{@record}"

  defp text(%{kind: :invalid} = error), do: "expected a recording, got: #{error.text}"

  defp text(%{kind: :different} = error) do
    "the request differs from the recorded request #{error.number}, and from all others. " <>
      "#{@again}\nThe difference (- recorded, + sent):\n\n#{error.text}"
  end

  defp text(%{kind: :ended} = error) do
    "expected at most #{Count.text(error.number, "request")}, as recorded, got another one. " <>
      "#{@again}\n" <>
      "The request:\n\n#{error.text}"
  end

  defp text(%{kind: :repeated} = error) do
    "a request that was recorded #{times(error.number)} is sent more often. #{@again}"
  end

  defp text(%{kind: :unused} = error) do
    "the recorded request #{error.number} was not sent. #{@again}\nThe request:\n\n#{error.text}"
  end

  defp times(1), do: "once"
  defp times(number), do: "#{number} times"
end
