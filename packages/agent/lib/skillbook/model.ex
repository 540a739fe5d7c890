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

  # Models that call a server share an engine, model/client.ex, which says how to add a vendor.

  alias Skillbook.Model.{Media, Object}
  alias Skillbook.Support.Options
  alias Skillbook.{ModelError, ObjectError, OptionError}

  @type t :: struct()

  @typedoc "Text, or a list of texts with images, files and audio, in their order."
  @type content :: String.t() | [String.t() | Media.t(), ...]

  @typedoc """
  A message of a conversation.

  An assistant's message may have tool calls, and in `:opaque` the data of its answer, which is
  given back as it came. A message with the role `:tool` is the result of the call with its `:id`;
  `:error` is whether the call failed. The results of the calls of one message follow it, one
  after another.
  """
  @type message ::
          %{required(:role) => :system, required(:content) => String.t()}
          | %{required(:role) => :user, required(:content) => content()}
          | %{
              required(:role) => :assistant,
              required(:content) => String.t(),
              optional(:tool_calls) => [tool_call()],
              optional(:opaque) => opaque() | nil
            }
          | %{
              required(:role) => :tool,
              required(:id) => String.t(),
              required(:name) => String.t(),
              required(:content) => content(),
              required(:error) => boolean()
            }

  @typedoc """
  A tool call. `:arguments` is the JSON text as the model wrote it, which may be invalid.
  """
  @type tool_call :: %{id: String.t(), name: String.t(), arguments: String.t()}

  @typedoc """
  Data of a vendor that belongs to an answer, such as signed thoughts: a map of JSON values with
  texts as keys. It is for the same model of the same vendor; any other ignores it.
  """
  @type opaque :: %{optional(String.t()) => term()}

  @typedoc """
  The tokens of a request.

  `:prompt_tokens` counts the whole prompt. `:cached_tokens` are those of them that the server had
  in its cache, and `:cache_write_tokens` those that it stored there; both are 0 if the server
  does not say.
  """
  @type usage :: %{
          prompt_tokens: non_neg_integer(),
          completion_tokens: non_neg_integer(),
          cached_tokens: non_neg_integer(),
          cache_write_tokens: non_neg_integer()
        }

  @typedoc """
  A complete answer.

    * `:text` - the text, which may be empty
    * `:tool_calls` - the calls, in the order of the answer
    * `:usage` - `nil` if the model does not count tokens
    * `:finish_reason` - `:stop`; `:tool_calls`, the model waits for their results; `:length`, the
      limit of tokens was reached; `:filtered`, the model refused, or the server withheld the
      rest; or `:other`. The text of a refusal is in `:text`
    * `:opaque` - for the assistant's message in the next request, or `nil`
    * `:model` - the name of the model that answered: as its server says, or else as it was asked;
      `nil` if it has none
  """
  @type answer :: %{
          text: String.t(),
          tool_calls: [tool_call()],
          usage: usage() | nil,
          finish_reason: :stop | :tool_calls | :length | :filtered | :other,
          opaque: opaque() | nil,
          model: String.t() | nil
        }

  @typedoc """
  A piece of a tool call, for `:on_tool_call`: `:arguments` has more of the text of its arguments.
  The first piece of a call may have none. `:index` counts the calls of an answer, from 0.
  """
  @type tool_call_piece :: %{
          index: non_neg_integer(),
          id: String.t(),
          name: String.t(),
          arguments: String.t()
        }

  @typedoc """
  A failed request that is repeated after `:delay` milliseconds, as `:attempt` number 2 or
  higher, or sent to the next model of a `Skillbook.Model.Fallback`.
  """
  @type retry :: %{attempt: pos_integer(), delay: non_neg_integer(), error: ModelError.t()}

  @doc """
  Requests an answer. The options are already validated.

  Call `on_text` in the calling process with each piece of the text, in order, never an empty one,
  and likewise `:on_tool_call` of the options with the pieces of tool calls. Fields of the answer
  other than `:text` may be missing.
  """
  @callback chat(t(), [message()], keyword(), on_text :: (String.t() -> any())) ::
              {:ok, answer() | map()} | {:error, ModelError.t()}

  @doc """
  Whether the model takes `:tools`, so that `protocol: :auto` of `Skillbook.Agent.run/3` uses
  them. Without this function it does not.
  """
  @callback tools?(t()) :: boolean()

  @doc """
  Returns the name of a model's vendor in OpenTelemetry's conventions, such as `"openai"`.
  Optional.
  """
  @callback provider(t()) :: String.t()

  @doc """
  Checks the images, files and audio of messages (`Skillbook.Model.Media`), before `c:chat/4` and
  before a run takes an input into its conversation. The error is of the kind `:media`, or
  `:too_long` if older messages may be left out. Without this function the model takes all.
  """
  @callback check(t(), [message()]) :: :ok | {:error, ModelError.t()}

  @optional_callbacks tools?: 1, provider: 1, check: 2

  @answer %{text: "", tool_calls: [], usage: nil, finish_reason: :stop, opaque: nil, model: nil}
  @usage %{prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, cache_write_tokens: 0}

  @doc """
  Requests the next message of a conversation, and calls `on_text` with each piece of its text.

  Returns `{:ok, answer}` or `{:error, %Skillbook.ModelError{}}`. Wrong options raise
  `Skillbook.OptionError`.

  ## Options

    * `:stop` - texts at which the model stops; they are not part of the answer
    * `:temperature` - a number from 0
    * `:max_tokens` - the maximum number of tokens of the answer
    * `:tools` - a list of `Skillbook.Tool`, the tools that the model may call
    * `:tool_choice` - `:auto`, `:none` or `:required`: whether the model may call tools, or has
      to. Default: `:auto`
    * `:on_tool_call` - a function that gets each `t:tool_call_piece/0`. The calls are complete in
      the answer. `:on_retry` means that the pieces before it are void
    * `:grammar` - a GBNF grammar for the answer, for servers that support it
    * `:schema` - a JSON schema for the answer, for servers that support it. The answer may differ
      from it all the same; `complete_object/4` checks it
    * `:extra` - a map of further fields of the request, with strings as keys. A map is merged
      with that of the request, and `nil` removes a field
    * `:timeout` - milliseconds for the whole answer
    * `:on_retry` - a function that gets a `t:retry/0` before a failed request is repeated
  """
  @spec chat(t(), [message()], keyword(), (String.t() -> any())) ::
          {:ok, answer()} | {:error, ModelError.t()}
  def chat(%module{} = model, messages, options, on_text) when is_function(on_text, 1) do
    options = Options.keywords(options)
    with {:error, error} <- validate(options), do: raise(error)

    with :ok <- check(model, messages),
         {:ok, answer} <- module.chat(model, messages, options, on_text),
         do: {:ok, complete(answer, model)}
  end

  # Adds the fields that a model has left out.
  defp complete(answer, model) do
    answer = Map.merge(@answer, answer)

    answer = %{
      answer
      | usage: answer.usage && Map.merge(@usage, answer.usage),
        model: answer.model || Map.get(model, :model)
    }

    if answer.tool_calls != [] and answer.finish_reason == :stop,
      do: %{answer | finish_reason: :tool_calls},
      else: answer
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
    * `:read` (function of one argument) - gets each JSON object or list of the answer before the
      check, and returns the object to check. For models that answer in another form
    * `:temperature`, `:max_tokens`, `:extra`, `:on_retry` - as for `chat/4`
  """
  @spec complete_object(t(), [message()], map(), keyword()) ::
          {:ok, %{object: map(), usage: usage() | nil}}
          | {:error, ModelError.t() | ObjectError.t()}
  def complete_object(model, messages, schema, options \\ [])

  def complete_object(%_{} = model, messages, schema, options) when is_list(messages),
    do: Object.complete(model, messages, schema, Options.keywords(options))

  @doc """
  Whether a model takes the option `:tools` of `chat/4`, as its module says.

      iex> {:ok, model} = Skillbook.Model.Anthropic.new(model: "claude-sonnet-4-5")
      iex> Skillbook.Model.tools?(model)
      true
      iex> Skillbook.Model.tools?(Skillbook.Model.Function.new(fn _messages, _options -> "" end))
      false
  """
  @spec tools?(t()) :: boolean()
  def tools?(%module{} = model),
    do:
      Code.ensure_loaded?(module) and function_exported?(module, :tools?, 1) and
        module.tools?(model)

  @doc false
  @spec check(t(), [message()]) :: :ok | {:error, ModelError.t()}
  def check(%module{} = model, messages) do
    if Code.ensure_loaded?(module) and function_exported?(module, :check, 2),
      do: module.check(model, messages),
      else: :ok
  end

  @doc false
  @spec validate(keyword()) :: :ok | {:error, OptionError.t()}
  def validate(options), do: Options.validate(options, "a model's answer", schema())

  @doc false
  # The vendor and the name of a model, for telemetry. A model without a vendor has the name of
  # its module.
  @spec describe(t()) :: %{provider: String.t(), model: String.t() | nil}
  def describe(%module{} = model) do
    provider =
      if function_exported?(module, :provider, 1),
        do: module.provider(model),
        else: inspect(module)

    name = Map.get(model, :model)
    %{provider: provider, model: if(is_binary(name), do: name)}
  end

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
      tools: {"a list of Skillbook.Tool", &tool_list?/1},
      tool_choice: {":auto, :none or :required", &(&1 in [:auto, :none, :required])},
      on_tool_call: {"a function of one argument", &is_function(&1, 1)},
      grammar: {"text", &Options.text?/1},
      schema: {"a map", &is_map/1},
      extra: {"a map with texts as keys", &(is_map(&1) and Options.texts?(Map.keys(&1)))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      on_retry: {"a function of one argument", &is_function(&1, 1)}
    ]
  end

  defp tool_list?(tools), do: is_list(tools) and Enum.all?(tools, &is_struct(&1, Skillbook.Tool))
end
