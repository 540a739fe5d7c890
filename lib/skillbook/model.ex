defmodule Skillbook.Model do
  @moduledoc ~S"""
  A language model that can be asked.

  A model is a struct whose module is of this behaviour: `Skillbook.Model.OpenAI` speaks to servers, and
  `Skillbook.Model.Function` answers from a function, for tests and for models of your own.

  ## Examples

      iex> model = Skillbook.Model.Function.new(fn [%{content: text}], _options -> ["You said: ", text] end)
      iex> {:ok, answer} = Skillbook.Model.chat(model, [%{role: :user, content: "Hi"}], [], &send(self(), {:text, &1}))
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
  `:usage` is `nil` if the model does not count. `:finish_reason` is `:stop`; `:length`, the limit of tokens was reached;
  `:filtered`, the server withheld the rest; or `:other`.
  """
  @type answer :: %{
          text: String.t(),
          usage: usage() | nil,
          finish_reason: :stop | :length | :filtered | :other
        }

  @typedoc "An attempt failed, and the next one begins in `:delay` milliseconds. `:attempt` is its number, 2 or more."
  @type retry :: %{attempt: pos_integer(), delay: non_neg_integer(), error: ModelError.t()}

  @doc """
  Asks the model: `c:chat/4` is called with options that are valid.

  `on_text` gets the answer's text piece by piece, in order, none of them empty; it is called in the calling process.
  """
  @callback chat(t(), [message()], keyword(), on_text :: (String.t() -> any())) ::
              {:ok, answer()} | {:error, ModelError.t()}

  @doc """
  Asks a model for the next message of a conversation, and hands its text out as it comes.

  ## Options

    * `:stop` - texts at which the model stops writing; they are not part of the answer
    * `:temperature` - a number from 0
    * `:max_tokens` - the most tokens of the answer
    * `:grammar` - a GBNF grammar that the answer follows, for servers that know how
    * `:extra` - a map of further fields of the request, with texts as keys; `nil` takes a field out
    * `:timeout` - how long all of it may take, in milliseconds
    * `:on_retry` - a function that gets a `t:retry/0` before a failed attempt is made again
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
