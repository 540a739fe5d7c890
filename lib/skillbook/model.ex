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

  alias Skillbook.Model.Object
  alias Skillbook.Support.Options
  alias Skillbook.{ModelError, ObjectError, OptionError}

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
    * `:schema` - a JSON schema for the answer, for servers that support it. The answer may differ
      from it all the same; `complete_object/4` checks it
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

  @doc ~S"""
  Requests a JSON object that matches a schema.

  The schema is in the prompt, and is sent to servers that can hold the model to it; see
  `:structured` of `Skillbook.Model.OpenAI`. In any case the object is found in the answer, which
  may have other text around it, and checked. If it does not match, the model is asked once more,
  with the error.

  Returns `{:ok, answer}`, where `:object` of the answer has texts as keys and `:usage` counts the
  tokens of both attempts (`nil` if the model does not count); or `{:error, error}` with a
  `Skillbook.ModelError` if the model did not answer, or a `Skillbook.ObjectError` if it did not
  answer with such an object.

      iex> schema = %{
      ...>   "type" => "object",
      ...>   "properties" => %{"city" => %{"type" => "string", "maxLength" => 80}},
      ...>   "required" => ["city"]
      ...> }
      iex> model = Skillbook.Model.Function.new(fn _messages, _options ->
      ...>   ~S(Here it is: {"city": "Oslo"})
      ...> end)
      iex> messages = [%{role: :user, content: "What is the capital of Norway?"}]
      iex> {:ok, answer} = Skillbook.Model.complete_object(model, messages, schema)
      iex> answer.object
      %{"city" => "Oslo"}

  ## Schemas

  A schema is a map with texts as keys, as in JSON. It may use `type`, `description`, and

    * for an `object`, which is the type of the whole answer, `properties` and `required`. Other
      properties are errors
    * for an `array`, `items` (required), `minItems` and `maxItems`
    * for a `string`, `enum` and `maxLength`
    * for a `number` or an `integer`, `minimum` and `maximum`

  and the type `boolean`. Other keywords raise `ArgumentError`.

  ## Options

    * `:timeout` - milliseconds for both attempts. Default: 30,000
    * `:max_bytes` - the largest answer; a longer one is stopped. Default: 65,536
    * `:constrain` - a narrower schema for the prompt and the server. The answer is checked
      against `schema`
    * `:temperature`, `:max_tokens`, `:extra`, `:on_retry` - as for `chat/4`
  """
  @spec complete_object(t(), [message()], map(), keyword()) ::
          {:ok, %{object: map(), usage: usage() | nil}}
          | {:error, ModelError.t() | ObjectError.t()}
  def complete_object(model, messages, schema, options \\ [])

  def complete_object(%_{} = model, messages, schema, options) when is_list(messages),
    do: Object.complete(model, messages, schema, options)

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
      schema: {"a map", &is_map/1},
      extra: {"a map with texts as keys", &(is_map(&1) and Options.texts?(Map.keys(&1)))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      on_retry: {"a function of one argument", &is_function(&1, 1)}
    ]
  end
end
