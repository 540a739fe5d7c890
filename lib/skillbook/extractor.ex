defmodule Skillbook.Extractor do
  @moduledoc ~S'''
  The commands of a model's reply, and the text around them.

  A command block is a fenced code block whose info string begins with `cmd`. Examples of command blocks inside
  other code blocks, quotes and heredocs are left alone.

      iex> {:ok, found} = Skillbook.Extractor.extract("""
      ...> Let me look.
      ...>
      ...> ```cmd
      ...> tasks.search --overdue
      ...> ```
      ...>
      ...> One moment.
      ...> """)
      iex> found.commands
      ["tasks.search --overdue"]
      iex> found.text
      "Let me look.\n\nOne moment."

  ## Streams

  A reply can be fed as the model writes it. The events do not depend on how it is cut into chunks:

    * `{:text, text}` - more of the text for the user
    * `{:command, command}` - a command is complete; it may run once its block closes
    * `{:block, :closed}` - the block closed: its commands may run
    * `{:block, :incomplete}` - the reply ended inside the block: its commands do not run
    * `{:hidden, {start, length}}` - these bytes of the reply are another code block, which holds command blocks and was
      hardly meant to
    * `{:error, error}` - the reply cannot be read any further; nothing follows

  Each state can be fed once: it stands for the text so far, which is kept outside of the process's heap.

      iex> alias Skillbook.Extractor
      iex> {events, state} = Extractor.feed(Extractor.new(), "On it.\n\n```c")
      iex> events
      [text: "On it."]
      iex> {events, state} = Extractor.feed(state, "md\nget_skill\n``")
      iex> events
      [command: "get_skill"]
      iex> {events, _state} = Extractor.finish(state)
      iex> events
      [command: "``", block: :incomplete]
  '''

  alias Skillbook.{CommandError, Native}

  @type t :: %__MODULE__{
          ref: reference(),
          number: non_neg_integer(),
          over: boolean()
        }
  @type extraction :: %{
          required(:commands) => [String.t()],
          required(:text) => String.t(),
          required(:incomplete) => [String.t()],
          optional(:hidden) => [place()]
        }
  @typedoc "A part of the reply in bytes, as `binary_part/3` takes it."
  @type place :: {start :: non_neg_integer(), length :: pos_integer()}
  @type event ::
          {:text, String.t()}
          | {:command, String.t()}
          | {:block, :closed | :incomplete}
          | {:hidden, place()}
          | {:error, CommandError.t()}
  @type option :: {:unclosed, :hold | :run}

  @enforce_keys [:ref]
  defstruct [:ref, number: 0, over: false]

  @doc ~S"""
  Takes a whole reply apart.

  `:commands` are those of all closed blocks in order, `:text` is what stands outside of blocks, and `:incomplete`
  are the commands of a block that never closed. Only if there are any, `:hidden` has other code blocks that hold command
  blocks although they were hardly meant to: they never close, or only the closing fence of a command block closes them.

      iex> reply = "```elixir\nIO.puts(1)\n\n```cmd\nget_skill\n```"
      iex> {:ok, %{commands: [], hidden: [{start, length}]}} = Skillbook.Extractor.extract(reply)
      iex> binary_part(reply, start, length)
      "```elixir\nIO.puts(1)\n\n```cmd\nget_skill\n"

  ## Options

    * `:unclosed` - `:hold` (default) takes a block that never closes for cut off; `:run` takes the reply's end for
      the block's, for callers that stop the model at the closing fence
  """
  @spec extract(String.t(), [option()]) :: {:ok, extraction()} | {:error, CommandError.t()}
  def extract(text, options \\ []) when is_binary(text) do
    case Native.extract(text, run?(options)) do
      {:error, error} ->
        {:error, error}

      {commands, text, incomplete, []} ->
        {:ok, %{commands: commands, text: text, incomplete: incomplete}}

      {commands, text, incomplete, hidden} ->
        {:ok, %{commands: commands, text: text, incomplete: incomplete, hidden: hidden}}
    end
  end

  @doc """
  The state at the start of a stream. Takes the options of `extract/2`.
  """
  @spec new([option()]) :: t()
  def new(options \\ []), do: %__MODULE__{ref: Native.extractor_new(run?(options))}

  @doc """
  Takes the next chunk, which may end anywhere, even inside a character.
  """
  @spec feed(t(), binary()) :: {[event()], t()}
  def feed(%__MODULE__{over: true} = state, chunk) when is_binary(chunk), do: {[], state}

  def feed(%__MODULE__{ref: ref, number: number} = state, chunk) when is_binary(chunk),
    do: events(Native.extractor_feed(ref, number, chunk), state)

  @doc """
  The reply is over.
  """
  @spec finish(t()) :: {[event()], t()}
  def finish(%__MODULE__{over: true} = state), do: {[], state}

  def finish(%__MODULE__{ref: ref, number: number} = state) do
    {events, state} = events(Native.extractor_finish(ref, number), state)
    {events, %{state | over: true}}
  end

  defp events({:ok, events}, state), do: {events, %{state | number: state.number + 1}}
  defp events({:error, error}, state), do: {[{:error, error}], %{state | over: true}}

  defp events(:stale, _state) do
    raise ArgumentError,
          "this state of a Skillbook.Extractor was fed before; go on from the state that it gave"
  end

  defp run?([]), do: false

  defp run?(options) do
    case Keyword.validate!(options, unclosed: :hold)[:unclosed] do
      :hold ->
        false

      :run ->
        true

      other ->
        raise ArgumentError, "expected :unclosed to be :hold or :run, got: #{inspect(other)}"
    end
  end
end
