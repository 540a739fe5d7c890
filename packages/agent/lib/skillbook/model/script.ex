defmodule Skillbook.Model.Script do
  @moduledoc ~S"""
  A model that gives the answers of a list, one for each call, for tests.

      iex> alias Skillbook.Model
      iex> echo = fn [message] -> "You said: #{message.content}" end
      iex> script = Model.Script.new(["Hello", echo])
      iex> ask = fn text ->
      ...>   Model.chat(script, [%{role: :user, content: text}], [], fn _text -> :ok end)
      ...> end
      iex> {:ok, answer} = ask.("Hi")
      iex> answer.text
      "Hello"
      iex> {:ok, answer} = ask.("Hi again")
      iex> answer.text
      "You said: Hi again"
      iex> Model.Script.verify!(script)
      :ok

  Each item of the list is one of:

    * the text of the answer; or a list of texts, which are streamed one by one
    * a map with fields of `t:Skillbook.Model.answer/0`, for example with tool calls
    * a `Skillbook.ModelError`, with which the call fails
    * a function of the messages, or of the messages and the options of `Skillbook.Model.chat/4`,
      that returns one of these. It may contain assertions

  `Skillbook.ScriptError` is raised if the model is called when all answers are used up, and by
  `verify!/1` if answers are left. A script is used by one conversation at a time; a script for
  several of them has its answers in the order of their calls.
  """

  @behaviour Skillbook.Model

  alias Skillbook.Model.{Content, Function}
  alias Skillbook.Support.Options
  alias Skillbook.{ModelError, ScriptError}

  @type item ::
          String.t()
          | [String.t()]
          | map()
          | ModelError.t()
          | {:ok, map()}
          | {:error, ModelError.t()}
          | ([Skillbook.Model.message()] -> item())
          | ([Skillbook.Model.message()], keyword() -> item())

  @type t :: %__MODULE__{answers: tuple(), used: :atomics.atomics_ref(), tools: boolean()}

  @enforce_keys [:answers, :used, :tools]
  defstruct [:answers, :used, :tools]

  @doc """
  Makes a model from a list of answers.

  ## Options

    * `:tools` (boolean) - whether `Skillbook.Agent.run/3` gives it tools, unless its `:protocol`
      says so. Defaults to whether a map of the list has tool calls
  """
  @spec new([item()], keyword()) :: t()
  def new(answers, options \\ [])

  def new(answers, options) when is_list(answers) do
    options = Options.keywords(options)
    schema = [tools: {"a boolean", &is_boolean/1}]
    with {:error, error} <- Options.validate(options, "a script", schema), do: raise(error)

    for {answer, index} <- Enum.with_index(answers, 1), not item?(answer) do
      raise ArgumentError,
            "expected text, a list of texts, a map, a Skillbook.ModelError or a function of " <>
              "one or two arguments as the answer #{index} of a script, " <>
              "got: #{inspect(answer, limit: 5, printable_limit: 100)}"
    end

    # A reference without a process: a script needs no start and no end.
    %__MODULE__{
      answers: List.to_tuple(answers),
      used: :atomics.new(1, []),
      tools: Keyword.get_lazy(options, :tools, fn -> Enum.any?(answers, &calls?/1) end)
    }
  end

  def new(answers, _options) do
    raise ArgumentError,
          "expected a list of answers for a script, " <>
            "got: #{inspect(answers, limit: 5, printable_limit: 100)}"
  end

  @doc "How often the model was called."
  @spec calls(t()) :: non_neg_integer()
  def calls(%__MODULE__{used: used}), do: :atomics.get(used, 1)

  @doc "Checks that all answers were used, and returns `:ok`; raises `Skillbook.ScriptError`."
  @spec verify!(t()) :: :ok
  def verify!(%__MODULE__{answers: answers} = script) do
    used = calls(script)

    if used < tuple_size(answers),
      do:
        raise(ScriptError, answers: tuple_size(answers), calls: used, next: elem(answers, used)),
      else: :ok
  end

  @impl true
  def tools?(%__MODULE__{tools: tools}), do: tools

  @impl true
  def chat(%__MODULE__{answers: answers, used: used}, messages, options, on_text) do
    call = :atomics.add_get(used, 1, 1)

    if call > tuple_size(answers) do
      last = with %{content: content} <- List.last(messages), do: Content.text(content)
      raise ScriptError, answers: tuple_size(answers), calls: call, message: last
    end

    answer = answers |> elem(call - 1) |> answer(messages, options)
    Function.chat(Function.new(fn _, _ -> answer end), messages, options, on_text)
  end

  defp answer(function, messages, options) when is_function(function, 1),
    do: messages |> function.() |> answer(messages, options)

  defp answer(function, messages, options) when is_function(function, 2),
    do: messages |> function.(options) |> answer(messages, options)

  defp answer(%ModelError{} = error, _messages, _options), do: {:error, error}
  defp answer(answer, _messages, _options), do: answer

  defp calls?({:ok, answer}), do: calls?(answer)
  defp calls?(%{tool_calls: [_ | _]}), do: true
  defp calls?(_answer), do: false

  defp item?(item) when is_list(item), do: Enum.all?(item, &is_binary/1)
  defp item?({:ok, %{}}), do: true
  defp item?({:error, %ModelError{}}), do: true
  defp item?(%ModelError{}), do: true
  defp item?(%_{}), do: false

  defp item?(item),
    do: is_binary(item) or is_map(item) or is_function(item, 1) or is_function(item, 2)
end
