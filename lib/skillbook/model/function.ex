defmodule Skillbook.Model.Function do
  @moduledoc """
  A model that is a function, for tests and for models of your own.

  The function gets the messages and the options of `Skillbook.Model.chat/4`. It gives the answer as a text, as a list of
  texts that are handed out one by one, as a `t:Skillbook.Model.answer/0`, or as `{:error, %Skillbook.ModelError{}}`. With
  a third argument it hands out the text itself: it is the function that takes the next piece.

      iex> model = Skillbook.Model.Function.new(fn messages, _options -> "message \#{length(messages) + 1}" end)
      iex> {:ok, answer} = Skillbook.Model.chat(model, [%{role: :user, content: "Hi"}], [], fn _ -> :ok end)
      iex> answer
      %{text: "message 2", usage: nil, finish_reason: :stop}
  """

  @behaviour Skillbook.Model

  alias Skillbook.{Model, ModelError}

  @type given :: String.t() | [String.t()] | Model.answer() | {:error, ModelError.t()}
  @type fun_of_chat ::
          ([Model.message()], keyword() -> given())
          | ([Model.message()], keyword(), (String.t() -> any()) -> given())
  @type t :: %__MODULE__{function: fun_of_chat()}

  @enforce_keys [:function]
  defstruct [:function]

  @doc "The model of a function of two or three arguments."
  @spec new(fun_of_chat()) :: t()
  def new(function) when is_function(function, 2) or is_function(function, 3),
    do: %__MODULE__{function: function}

  @impl true
  def chat(%{function: function}, messages, options, on_text) when is_function(function, 2),
    do: messages |> function.(options) |> answer(on_text)

  def chat(%{function: function}, messages, options, on_text),
    do: messages |> function.(options, on_text) |> answer(fn _handed_out -> :ok end)

  defp answer({:error, %ModelError{}} = error, _on_text), do: error
  defp answer(text, on_text) when is_binary(text), do: answer([text], on_text)

  defp answer(texts, on_text) when is_list(texts) do
    for text <- texts, text != "", do: on_text.(text)
    {:ok, %{text: Enum.join(texts), usage: nil, finish_reason: :stop}}
  end

  defp answer(%{text: text, usage: _, finish_reason: _} = answer, on_text) do
    if text != "", do: on_text.(text)
    {:ok, answer}
  end
end
