defmodule Skillbook.Request do
  @moduledoc """
  The question whether a command that changes something may run: what an `:ask` callback gets.

  ## Fields

    * `:command` - the `Skillbook.Command` with its flags
    * `:entry` - the `Skillbook.Entry` that it calls
    * `:profile` - the `Skillbook.Profile` on whose behalf it would run
    * `:context` - the `Skillbook.Context` of the call, with the view, the book, the time and the assigns

  ## Examples

      iex> ask = fn request -> if request.entry.name == "email.send", do: {:deny, "not today"}, else: :allow end
      iex> entry = %Skillbook.Entry{name: "email.send", kind: :command, description: "", body: "", path: "", source: ""}
      iex> ask.(%Skillbook.Request{command: nil, entry: entry, profile: nil, context: nil})
      {:deny, "not today"}
  """

  @type t :: %__MODULE__{
          command: Skillbook.Command.t(),
          entry: Skillbook.Entry.t(),
          profile: Skillbook.Profile.t(),
          context: Skillbook.Context.t()
        }

  @typedoc "Gives `:allow`, `:deny`, or `{:deny, text}` with a text for the model."
  @type ask :: (t() -> :allow | :deny | {:deny, String.t()}) | {module(), atom()}

  @enforce_keys [:command, :entry, :profile, :context]
  defstruct [:command, :entry, :profile, :context]
end
