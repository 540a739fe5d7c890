defmodule Skillbook.Extractor do
  @moduledoc ~S'''
  Extracts the commands and the text for the user from a model's reply.

  A command block is a fenced code block whose info string begins with `cmd`. Command blocks
  inside other code blocks, quotes and heredocs are examples and are ignored.

      iex> {:ok, extraction} = Skillbook.Extractor.extract("""
      ...> Let me look.
      ...>
      ...> ```cmd
      ...> tasks.search --overdue
      ...> ```
      ...>
      ...> One moment.
      ...> """)
      iex> extraction.commands
      ["tasks.search --overdue"]
      iex> extraction.text
      "Let me look.\n\nOne moment."

  ## Streams

  `new/1`, `feed/2` and `finish/1` extract the commands while the model writes. The events are the
  same for any division into chunks:

    * `{:text, text}` - more text for the user
    * `{:command, command}` - a complete command; wait for the end of its block before you run it
    * `{:block, :closed}` - the block is closed: run its commands
    * `{:block, :incomplete}` - the reply ended inside the block: do not run its commands
    * `{:hidden, {start, length}}` - these bytes of the reply are another code block that contains
      command blocks, probably by mistake
    * `{:error, error}` - the reply cannot be parsed any further; no events follow

  Each state can be fed only once, because the text so far is stored outside of the process's
  heap.

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

  alias Skillbook.Support.Options
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
  Extracts the commands of a complete reply.

  Returns a map with:

    * `:commands` - the commands of all closed blocks, in order
    * `:text` - the text outside of command blocks
    * `:incomplete` - the commands of a block that was not closed
    * `:hidden` - only if there are any: other code blocks that contain command blocks, probably
      by mistake. They are not closed, or only by the closing fence of a command block

  The values of `:hidden` are places in the reply, in bytes:

      iex> reply = "```elixir\nIO.puts(1)\n\n```cmd\nget_skill\n```"
      iex> {:ok, %{commands: [], hidden: [{start, length}]}} = Skillbook.Extractor.extract(reply)
      iex> binary_part(reply, start, length)
      "```elixir\nIO.puts(1)\n\n```cmd\nget_skill\n"

  ## Options

    * `:unclosed` (`:hold` or `:run`) - whether a block that is not closed was cut off, or ends
      with the reply. Use `:run` if you stop the model at the closing fence. Defaults to `:hold`
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
  Returns the state for a new reply. Takes the options of `extract/2`.
  """
  @spec new([option()]) :: t()
  def new(options \\ []), do: %__MODULE__{ref: Native.extractor_new(run?(options))}

  @doc """
  Reads the next chunk, which may end anywhere, even inside a character.
  """
  @spec feed(t(), binary()) :: {[event()], t()}
  def feed(%__MODULE__{over: true} = state, chunk) when is_binary(chunk), do: {[], state}

  def feed(%__MODULE__{ref: ref, number: number} = state, chunk) when is_binary(chunk),
    do: events(Native.extractor_feed(ref, number, chunk), state)

  @doc """
  Ends the reply and returns the last events.
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
          "expected the latest state of a Skillbook.Extractor, got one that was fed before; " <>
            "use the state that feed/2 returned"
  end

  defp run?([]), do: false

  defp run?(options) do
    case Keyword.validate!(Options.keywords(options), unclosed: :hold)[:unclosed] do
      :hold ->
        false

      :run ->
        true

      other ->
        raise ArgumentError, "expected :unclosed to be :hold or :run, got: #{inspect(other)}"
    end
  end
end
