defmodule Skillbook.Agent.Continuation do
  @moduledoc false
  # Joins the parts of a reply whose connection broke, so that its text is whole.
  #
  # Each part is read alone, since models often begin a block again, and the extractor trims the
  # text of each. The white space between two parts is taken from what the model wrote.

  alias Skillbook.Agent.State

  @doc "Notes a part: the model's words, their text, and whether they had commands."
  @spec broken(State.t(), String.t(), String.t(), boolean()) :: State.t()
  def broken(state, written, text, ran?) do
    before = state.broken || %{written: "", ran?: false}
    broken = %{written: before.written <> written, ran?: before.ran? or ran?}
    %{state | text: join(state, written, text), broken: broken}
  end

  @doc "The text of a reply up to the end of this part."
  @spec join(State.t(), String.t(), String.t()) :: String.t()
  def join(%{broken: nil}, _written, text), do: text
  def join(state, _written, ""), do: state.text
  def join(state, written, text), do: state.text <> gap(state, written, text) <> text

  @doc "The white space before the text of this part. Beside a block it is a blank line."
  @spec gap(State.t(), String.t(), String.t()) :: String.t()
  def gap(%{text: ""}, _written, _text), do: ""

  def gap(%{text: before, broken: %{written: ended}}, written, text) do
    end_before = String.trim_trailing(ended)
    start = String.trim_leading(written)
    last_line = before |> String.split("\n") |> List.last()
    [first_line | _] = String.split(text, "\n", parts: 2)

    if String.ends_with?(end_before, last_line) and String.starts_with?(start, first_line) do
      after_text = String.replace_prefix(ended, end_before, "")
      after_text <> String.replace_suffix(written, start, "")
    else
      "\n\n"
    end
  end
end
