defmodule Skillbook.Request do
  @moduledoc """
  The argument of an `:ask` callback: a command with side effects that waits for permission.

  The callback is asked for profiles with `writes: :ask`, and for pages with `approval: required`.
  It returns `:allow`, `:deny`, `{:deny, text}` with a text for the model, or `:pending`: then the
  call is stored as a `Skillbook.Approval`, and runs when somebody approves it. `{:pending, ref}`
  stores it under another reference: up to 128 letters, digits and `._:-`.

  ## Fields

    * `:ref` - the reference under which `:pending` stores the call; the same one if a durable run
      was interrupted and asks again
    * `:command` - the `Skillbook.Command` with the flags that the handler gets: converted to the
      types that the page [declares](docs/flags.md), with defaults filled in and
      positional values under their names
    * `:written` - the same command as it was written: its flags are texts, and its positional
      values are in `:args`
    * `:entry` - the `Skillbook.Entry` that it calls
    * `:profile` - the `Skillbook.Profile` that runs it
    * `:context` - the `Skillbook.Context` of the call, with the view, the book, the time and the
      assigns
    * `:approval` - whether the page needs an approval of this call, whatever the profile's
      `:writes`

  ## Examples

      iex> ask = fn
      ...>   %Skillbook.Request{entry: %{name: "tasks.delete"}} -> {:deny, "not today"}
      ...>   _request -> :allow
      ...> end
      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "ann", writes: :ask)
      iex> reply = "```cmd\\ntasks.delete T-1\\n```"
      iex> %{results: [result]} = Skillbook.run(view, reply, ask: ask)
      iex> result.content
      "`tasks.delete` was not run: it changes something, and the user declined: not today"
  """

  @type t :: %__MODULE__{
          ref: String.t() | nil,
          command: Skillbook.Command.t(),
          written: Skillbook.Command.t() | nil,
          entry: Skillbook.Entry.t(),
          profile: Skillbook.Profile.t(),
          context: Skillbook.Context.t(),
          approval: boolean()
        }

  @typedoc """
  A callback that decides about a command: a function, or a module and the name of its function.

  It returns a `t:decision/0`.
  """
  @type ask :: (t() -> decision()) | {module(), atom()}

  @type decision ::
          :allow | :deny | {:deny, String.t()} | :pending | {:pending, ref :: String.t()}

  @enforce_keys [:command, :entry, :profile, :context]
  defstruct [:ref, :command, :written, :entry, :profile, :context, approval: false]

  # Letters that people do not mix up, 60 bits of them.
  @alphabet ~c"abcdefghjkmnpqrstuvwxyz23456789"
  @length 12

  @doc false
  # A reference of random bytes, or of others that cannot be guessed.
  @spec new_ref(<<_::64>>) :: String.t()
  def new_ref(bytes \\ :crypto.strong_rand_bytes(8)) do
    digits = bytes |> :binary.decode_unsigned() |> Integer.digits(length(@alphabet))
    digits = Enum.take(digits ++ List.duplicate(0, @length), @length)
    "A-" <> to_string(Enum.map(digits, &Enum.at(@alphabet, &1)))
  end

  @doc false
  # Whether a text can be the reference of an approval.
  @spec ref?(term()) :: boolean()
  def ref?(ref), do: is_binary(ref) and ref =~ ~r/\A[A-Za-z0-9._:-]{1,128}\z/
end
