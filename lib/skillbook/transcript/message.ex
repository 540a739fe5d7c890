defmodule Skillbook.Transcript.Message do
  @moduledoc """
  A message of a conversation with a model.

  ## Fields

    * `:kind` - the kind of message:
      * `:prompt` - the system prompt
      * `:input` - text of the user
      * `:preloaded` - the skills that were loaded for the text of the user before it
      * `:reply` - text of the model
      * `:report` - the results of a reply's commands
      * `:news` - changes of skills during the conversation
      * `:note` - other information for the model
    * `:content` - the text, as the model gets it
    * `:at` - the time when it was added, UTC
    * `:activations` - the entries whose text it contains, see `t:activation/0`
    * `:usage` - the `:prompt_tokens` and `:completion_tokens` of a reply; `nil` for other
      messages, or if the model does not count tokens

  ## Examples

      iex> at = ~U[2026-11-21 08:00:00Z]
      iex> message = %Skillbook.Transcript.Message{kind: :report, content: "[1] x: ok", at: at}
      iex> Skillbook.Transcript.Message.role(message)
      :user
  """

  alias Skillbook.Model

  @type kind :: :prompt | :input | :preloaded | :reply | :report | :news | :note

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
          content: String.t(),
          at: DateTime.t(),
          activations: [activation()],
          usage: Model.usage() | nil
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
  defstruct [:kind, :content, :at, activations: [], usage: nil]

  @doc """
  Returns the role for the model: `:system` for a prompt, `:assistant` for a reply, else `:user`.
  """
  @spec role(t()) :: :system | :user | :assistant
  def role(%{kind: :prompt}), do: :system
  def role(%{kind: :reply}), do: :assistant
  def role(_message), do: :user
end
