defmodule Skillbook.Model.Function do
  @moduledoc """
  A model that calls a function, for tests and for models of your own.

      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> "Hello" end)
      iex> messages = [%{role: :user, content: "Hi"}]
      iex> {:ok, answer} = Skillbook.Model.chat(model, messages, [], fn _text -> :ok end)
      iex> answer
      %{text: "Hello", usage: nil, finish_reason: :stop}

  The function gets the messages and the options of `Skillbook.Model.chat/4`. It returns one of:

    * the text of the answer
    * a list of texts, which are passed on one by one
    * a `t:Skillbook.Model.answer/0`
    * `{:error, %Skillbook.ModelError{}}`

  A function of three arguments streams its text: it calls the third argument with each piece, and
  then returns the answer.
  """

  @behaviour Skillbook.Model

  alias Skillbook.{Model, ModelError}

  @type result :: String.t() | [String.t()] | Model.answer() | {:error, ModelError.t()}
  @type fun_of_chat ::
          ([Model.message()], keyword() -> result())
          | ([Model.message()], keyword(), (String.t() -> any()) -> result())
  @type t :: %__MODULE__{function: fun_of_chat()}

  @enforce_keys [:function]
  defstruct [:function]

  @doc "Builds a model from a function of two or three arguments."
  @spec new(fun_of_chat()) :: t()
  def new(function) when is_function(function, 2) or is_function(function, 3),
    do: %__MODULE__{function: function}

  @impl true
  def chat(%{function: function}, messages, options, on_text) when is_function(function, 2),
    do: messages |> function.(options) |> answer(on_text)

  def chat(%{function: function}, messages, options, on_text),
    do: messages |> function.(options, on_text) |> answer(fn _streamed -> :ok end)

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
