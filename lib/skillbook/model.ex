defmodule Skillbook.Model do
  @moduledoc ~S"""
  A language model: the behaviour of its clients, and the function that calls them.

  A model is a struct whose module implements this behaviour. `Skillbook.Model.OpenAI` calls a
  server. `Skillbook.Model.Function` calls a function, for tests and for models of your own.

  ## Examples

      iex> alias Skillbook.Model
      iex> model = Model.Function.new(fn [m], _options -> ["You said: ", m.content] end)
      iex> messages = [%{role: :user, content: "Hi"}]
      iex> {:ok, answer} = Model.chat(model, messages, [], &send(self(), {:text, &1}))
      iex> {answer.text, answer.finish_reason}
      {"You said: Hi", :stop}
      iex> receive do: ({:text, text} -> text)
      "You said: "
  """

  alias Skillbook.Support.Options
  alias Skillbook.{ModelError, OptionError}

  @type t :: struct()
  @type message :: %{role: :system | :user | :assistant, content: String.t()}
  @type usage :: %{prompt_tokens: non_neg_integer(), completion_tokens: non_neg_integer()}

  @typedoc """
  A complete answer.

  `:usage` is `nil` if the model does not count tokens. `:finish_reason` is `:stop`; `:length`,
  the limit of tokens was reached; `:filtered`, the server withheld the rest; or `:other`.
  """
  @type answer :: %{
          text: String.t(),
          usage: usage() | nil,
          finish_reason: :stop | :length | :filtered | :other
        }

  @typedoc """
  A failed request that is repeated after `:delay` milliseconds, as `:attempt` number 2 or higher.
  """
  @type retry :: %{attempt: pos_integer(), delay: non_neg_integer(), error: ModelError.t()}

  @doc """
  Requests an answer. The options are already validated.

  Call `on_text` in the calling process with each piece of the text, in order, never an empty one.
  """
  @callback chat(t(), [message()], keyword(), on_text :: (String.t() -> any())) ::
              {:ok, answer()} | {:error, ModelError.t()}

  @doc """
  Requests the next message of a conversation, and calls `on_text` with each piece of its text.

  Returns `{:ok, answer}` or `{:error, %Skillbook.ModelError{}}`. Wrong options raise
  `Skillbook.OptionError`.

  ## Options

    * `:stop` - texts at which the model stops; they are not part of the answer
    * `:temperature` - a number from 0
    * `:max_tokens` - the maximum number of tokens of the answer
    * `:grammar` - a GBNF grammar for the answer, for servers that support it
    * `:extra` - a map of further fields of the request, with strings as keys; `nil` removes a
      field
    * `:timeout` - milliseconds for the whole answer
    * `:on_retry` - a function that gets a `t:retry/0` before a failed request is repeated
  """
  @spec chat(t(), [message()], keyword(), (String.t() -> any())) ::
          {:ok, answer()} | {:error, ModelError.t()}
  def chat(%module{} = model, messages, options, on_text) when is_function(on_text, 1) do
    case validate(options) do
      :ok -> module.chat(model, messages, options, on_text)
      {:error, error} -> raise error
    end
  end

  @doc false
  @spec validate(keyword()) :: :ok | {:error, OptionError.t()}
  def validate(options), do: Options.validate(options, "a model's answer", schema())

  @doc false
  @spec model?(term()) :: boolean()
  def model?(%module{}), do: Code.ensure_loaded?(module) and function_exported?(module, :chat, 4)
  def model?(_), do: false

  defp schema do
    positive = {"a whole number from 1", &Options.positive?/1}

    [
      stop: {"a list of texts", &Options.texts?/1},
      temperature: {"a number from 0", &(is_number(&1) and &1 >= 0)},
      max_tokens: positive,
      grammar: {"text", &Options.text?/1},
      extra: {"a map with texts as keys", &(is_map(&1) and Options.texts?(Map.keys(&1)))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      on_retry: {"a function of one argument", &is_function(&1, 1)}
    ]
  end
end
