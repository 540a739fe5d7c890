defmodule Skillbook.Transcript.Message do
  @moduledoc """
  A message of a conversation with a model.

  ## Fields

    * `:kind` - the kind of message:
      * `:prompt` - the system prompt
      * `:input` - text of the user
      * `:context` - the application's sections of the prompt, see `Skillbook.Prompt.Sections`
      * `:preloaded` - the skills that were loaded for the text of the user before it
      * `:reply` - text of the model
      * `:report` - the results of a reply's commands
      * `:result` - the result of a tool call. The results of a reply's calls follow it, in order
      * `:news` - changes of skills during the conversation
      * `:note` - other information for the model
      * `:summary` - what was said in messages that were removed to save room
    * `:content` - the text, as the model gets it; of an input, result or report also a list of
      texts and `Skillbook.Model.Media`
    * `:at` - the time when it was added, UTC
    * `:activations` - the entries whose text it contains, see `t:activation/0`
    * `:usage` - the tokens of a reply, see `t:Skillbook.Model.usage/0`; `nil` for other messages,
      or if the model does not count tokens
    * `:tool_calls` - the tool calls of a reply, see `t:Skillbook.Model.tool_call/0`
    * `:opaque` - the vendor's data of a reply, see `t:Skillbook.Model.opaque/0`, or `nil`
    * `:call` - the `:id` and `:name` of the call that a result answers; `nil` for other messages
    * `:error` - whether the call of a result failed

  ## Examples

      iex> at = ~U[2026-11-21 08:00:00Z]
      iex> message = %Skillbook.Transcript.Message{kind: :report, content: "[1] x: ok", at: at}
      iex> Skillbook.Transcript.Message.role(message)
      :user
  """

  alias Skillbook.Model

  @type kind ::
          :prompt
          | :context
          | :input
          | :preloaded
          | :reply
          | :report
          | :result
          | :news
          | :note
          | :summary

  @typedoc """
  An entry whose text a message contains.

  `:hash` is the hash of its text, with the prefix `part of ` if the message has only a part or a
  file of it. `:command` is the command that read it, and `:answer` the hash of the whole result.
  """
  @type activation :: %{
          name: String.t(),
          hash: String.t(),
          command: String.t(),
          answer: String.t()
        }
  @type t :: %__MODULE__{
          kind: kind(),
          content: Model.content(),
          at: DateTime.t(),
          activations: [activation()],
          usage: Model.usage() | nil,
          tool_calls: [Model.tool_call()],
          opaque: Model.opaque() | nil,
          call: %{id: String.t(), name: String.t()} | nil,
          error: boolean()
        }

  @part "part of "

  @doc false
  # The hash of an activation whose text is only partly in the message.
  @spec part(String.t()) :: String.t()
  def part(hash), do: @part <> hash

  @doc false
  @spec part?(activation()) :: boolean()
  def part?(%{hash: hash}), do: String.starts_with?(hash, @part)

  @enforce_keys [:kind, :content, :at]
  defstruct [
    :kind,
    :content,
    :at,
    :usage,
    :opaque,
    :call,
    activations: [],
    tool_calls: [],
    error: false
  ]

  @doc """
  Returns the role for the model: `:system` for a prompt, `:assistant` for a reply, `:tool` for
  the result of a tool call, else `:user`.
  """
  @spec role(t()) :: :system | :user | :assistant | :tool
  def role(%{kind: :prompt}), do: :system
  def role(%{kind: :reply}), do: :assistant
  def role(%{kind: :result}), do: :tool
  def role(_message), do: :user
end
