defmodule Skillbook.Transcript.Message do
  @moduledoc """
  A message of a conversation.

  ## Fields

    * `:kind` - `:prompt`, the system prompt; `:input`, what the user said; `:reply`, what the model wrote; `:report`, what its
      commands gave; `:news`, what changed of the skills meanwhile; or `:note`, what else the model has to know
    * `:content` - the text, as the model gets it
    * `:at` - when it was added, UTC
    * `:activations` - the entries whose own text is in it: for each its `:name`, the `:hash` of the text, the `:command` that
      asked for it, and the `:answer`, a hash of the whole answer. Of those of which it holds a part, or a file, the hash
      begins with `part of `
    * `:usage` - of a reply: its `:prompt_tokens` and `:completion_tokens`; otherwise, and if the model does not count, `nil`

  Models know three roles: a `:prompt` is the system's, a `:reply` the assistant's, all others the user's.
  """

  alias Skillbook.Model

  @type kind :: :prompt | :input | :reply | :report | :news | :note
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
  # The hash of an activation of which the message has a part.
  @spec part(String.t()) :: String.t()
  def part(hash), do: @part <> hash

  @doc false
  @spec part?(activation()) :: boolean()
  def part?(%{hash: hash}), do: String.starts_with?(hash, @part)

  @enforce_keys [:kind, :content, :at]
  defstruct [:kind, :content, :at, activations: [], usage: nil]

  @doc "The role under which a model gets it."
  @spec role(t()) :: :system | :user | :assistant
  def role(%{kind: :prompt}), do: :system
  def role(%{kind: :reply}), do: :assistant
  def role(_message), do: :user
end
