defmodule Skillbook.Model.Function do
  @moduledoc """
  A model that calls a function, for tests and for models of your own.

      iex> model = Skillbook.Model.Function.new(fn _messages, _options -> "Hello" end)
      iex> messages = [%{role: :user, content: "Hi"}]
      iex> {:ok, answer} = Skillbook.Model.chat(model, messages, [], fn _text -> :ok end)
      iex> {answer.text, answer.finish_reason, answer.tool_calls}
      {"Hello", :stop, []}

  The function gets the messages and the options of `Skillbook.Model.chat/4`. It returns one of:

    * the text of the answer, as text or iodata. Texts in a list are passed on one by one
    * a map with fields of `t:Skillbook.Model.answer/0`, for example tool calls, or `{:ok, map}`.
      A call needs a `:name`. `:arguments` may be JSON or a map, and a missing `:id` is made
    * `{:error, %Skillbook.ModelError{}}`

  A function of three arguments streams its text: it calls the third argument with each piece, and
  then returns the answer.

      iex> model =
      ...>   Skillbook.Model.Function.new(fn _messages, _options ->
      ...>     %{tool_calls: [%{name: "tasks__get", arguments: %{id: "T-1"}}]}
      ...>   end)
      iex> messages = [%{role: :user, content: "Show me T-1."}]
      iex> {:ok, answer} = Skillbook.Model.chat(model, messages, [], fn _text -> :ok end)
      iex> {answer.finish_reason, answer.tool_calls}
      {:tool_calls, [%{id: "call_1", name: "tasks__get", arguments: ~S({"id":"T-1"})}]}
  """

  @behaviour Skillbook.Model

  alias Skillbook.{Model, ModelError}
  alias Skillbook.Support.JSON

  @type result :: iodata() | map() | {:ok, Model.answer() | map()} | {:error, ModelError.t()}
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
  def chat(%{function: function}, messages, options, on_text) when is_function(function, 2) do
    with {:ok, answer, pieces} <- messages |> function.(options) |> answer() do
      for piece <- pieces, piece != "", do: on_text.(piece)
      {:ok, with_calls(answer, messages, options)}
    end
  end

  def chat(%{function: function}, messages, options, on_text) do
    with {:ok, answer, _streamed} <- messages |> function.(options, on_text) |> answer(),
         do: {:ok, with_calls(answer, messages, options)}
  end

  # The answer, and its text in pieces.
  defp answer({:error, %ModelError{}} = error), do: error
  defp answer({:ok, %{} = answer}), do: answer(answer)
  defp answer(%{} = answer), do: {:ok, answer, [answer[:text] || ""]}
  defp answer(text) when is_binary(text), do: {:ok, %{text: text}, [text]}

  defp answer(texts) when is_list(texts) do
    text = IO.iodata_to_binary(texts)
    {:ok, %{text: text}, if(Enum.all?(texts, &is_binary/1), do: texts, else: [text])}
  end

  defp with_calls(%{tool_calls: [_ | _] = calls} = answer, messages, options) do
    # Each call of a conversation needs an id of its own.
    earlier = for %{tool_calls: calls} <- messages, _call <- calls, do: :call
    on_tool_call = options[:on_tool_call] || fn _piece -> :ok end

    calls =
      for {call, index} <- Enum.with_index(calls) do
        id = call[:id] || "call_#{length(earlier) + index + 1}"
        call = %{id: id, name: call.name, arguments: arguments(call[:arguments])}
        on_tool_call.(Map.put(call, :index, index))
        call
      end

    %{answer | tool_calls: calls}
  end

  defp with_calls(answer, _messages, _options), do: answer

  defp arguments(nil), do: "{}"
  defp arguments(%{} = arguments), do: JSON.encode(arguments)
  defp arguments(arguments) when is_binary(arguments), do: arguments
end
