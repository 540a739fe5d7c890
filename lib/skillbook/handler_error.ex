defmodule Skillbook.HandlerError do
  @moduledoc """
  A handler that could not be called, or that gave no answer.

  The message is for the model: it names the skill and keeps what went wrong inside to itself, which goes to the log.

  ## Fields

    * `:kind` - `:missing` (no such module with `execute/2`), `:crash`, `:timeout`, `:bad_return`, or `:stopped` (the book
      stopped before it ran)
    * `:name` - the skill's name
    * `:handler` - the handler as the skill's frontmatter names it
    * `:timeout` - the time limit in milliseconds, for `:timeout`
    * `:reason` - what it crashed with or returned, for Elixir callers

  ## Examples

      iex> Exception.message(%Skillbook.HandlerError{kind: :timeout, name: "email.send", timeout: 30_000})
      "`email.send` was stopped: it took longer than 30 s. It may have done part of its work: check before you try again, or tell the user."
  """

  alias Skillbook.Duration

  @type t :: %__MODULE__{
          kind: :missing | :crash | :timeout | :bad_return | :stopped,
          name: String.t(),
          handler: String.t() | nil,
          timeout: pos_integer() | nil,
          reason: term()
        }

  defexception [:kind, :name, :handler, :timeout, :reason]

  @partly "It may have done part of its work: check before you try again, or tell the user."

  @impl true
  def message(%{kind: :missing} = error) do
    "`#{error.name}` cannot run: its handler #{error.handler} is not there. " <>
      "You cannot mend this: tell the user, and go on without it."
  end

  def message(%{kind: :stopped} = error),
    do: "`#{error.name}` was not run: the skills have just been shut down. Tell the user."

  def message(%{kind: :crash} = error),
    do: "`#{error.name}` failed: its handler crashed. #{@partly}"

  def message(%{kind: :timeout} = error) do
    "`#{error.name}` was stopped: it took longer than #{Duration.text(error.timeout)}. #{@partly}"
  end

  def message(%{kind: :bad_return} = error) do
    "`#{error.name}` failed: its handler gave an answer that cannot be read. #{@partly}"
  end
end
