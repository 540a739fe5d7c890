defmodule Skillbook.Telemetry do
  @moduledoc """
  The telemetry events of Skillbook, and handlers for them.

  Events are sent if the application has the library `:telemetry`; nothing has to be configured.
  To log them, attach the default logger when the application starts:

      :ok = Skillbook.Telemetry.attach_default_logger(events: [:command, :agent, :breaker])

  It writes lines such as

      skillbook.command.stop book=MyApp.Skills profile=ann generation=7 skill=tasks.search \\
        effect=read status=ok duration=3.2ms

  For traces in OpenTelemetry, see `attach_open_telemetry/1`. To handle events yourself, use
  `:telemetry.attach_many/4` with the names of `events/0`.

  ## Events

  #{Skillbook.Telemetry.Events.table()}
  Each `:start` is followed by one `:stop` or `:exception`, unless the process that runs the
  command is killed. [Telemetry](docs/telemetry.md) has the units and the meaning of all fields.
  Events have no texts of conversations and no values of flags, except that events of commands
  have `flags` in a book with `telemetry_flags: true`.
  """

  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.Telemetry.{DefaultLogger, Events, OpenTelemetry}
  alias Skillbook.Usage.Counter
  alias Skillbook.{OptionError, TelemetryError}

  @type name :: [atom(), ...]

  @typedoc """
  An event: its name, the keys of its measurements and of its metadata, those that the metadata
  may also have, and when it is sent.
  """
  @type event :: %{
          name: name(),
          measurements: [atom()],
          metadata: [atom()],
          optional: [atom()],
          about: String.t()
        }

  @typedoc "A span for OpenTelemetry: its name, its kind and its attributes."
  @type span :: %{
          name: String.t(),
          kind: :client | :internal,
          attributes: %{optional(String.t()) => String.t() | number() | boolean() | [String.t()]}
        }

  @doc """
  Returns the names of all events, for `:telemetry.attach_many/4`.

      iex> [:skillbook, :queue, :wait] in Skillbook.Telemetry.events()
      true
  """
  @spec events() :: [name()]
  def events, do: for(%{name: name} <- Events.all(), do: name)

  @doc """
  Returns all events with the keys of their measurements and metadata.

      iex> events = Skillbook.Telemetry.describe_events()
      iex> event = Enum.find(events, &(&1.name == [:skillbook, :queue, :wait]))
      iex> {event.measurements, event.metadata}
      {[:duration], [:book, :skill, :granted]}
  """
  @spec describe_events() :: [event()]
  defdelegate describe_events, to: Events, as: :all

  @doc """
  Writes events to the log, one line for each.

  Lines have the fields of the event as `name=value`, durations in milliseconds, and never values
  of flags. They have the log metadata `:book`, `:profile` and `:skill`.

  Returns an error if an option is wrong, if the application does not have `:telemetry`, or if the
  logger is attached already.

  ## Options

    * `:level` (level of `Logger`) - the level of the lines. Defaults to `:info`
    * `:books` (`:all` or list of names) - the books whose events are logged. Defaults to `:all`
    * `:events` (`:all` or list) - names of events, such as `[:skillbook, :model, :retry]`, or the
      groups of events, such as `:model`. Neither a group nor `:all` includes `:start` events,
      whose fields the end repeats. Defaults to `:all`

  ## Examples

      iex> {:error, error} = Skillbook.Telemetry.attach_default_logger(level: :loud)
      iex> Exception.message(error)
      "expected one of :debug, :info, :notice, :warning, :error, :critical, :alert, " <>
        ":emergency as the option :level of the default logger, got: :loud"
  """
  @spec attach_default_logger(Skillbook.options()) ::
          :ok | {:error, OptionError.t() | TelemetryError.t()}
  def attach_default_logger(options \\ []) do
    Arguments.check!("Skillbook.Telemetry.attach_default_logger/1", options: {:options, options})
    options |> Options.keywords() |> DefaultLogger.attach()
  end

  @doc "Detaches the logger of `attach_default_logger/1`, if it is attached."
  @spec detach_default_logger() :: :ok
  defdelegate detach_default_logger, to: DefaultLogger, as: :detach

  @doc """
  Records runs of agents, calls of models, commands and workflows as spans of OpenTelemetry.

  Needs `:telemetry` and `:opentelemetry_api`, and an SDK such as `:opentelemetry` to export the
  spans. Names and attributes are those of `gen_ai/2`. A span is a child of the span that is
  current in its process; handlers of commands run in the context of their command, so agents that
  they dispatch are in the same trace.

  Spans have no texts. Returns an error if an option is wrong, a library is missing, or the
  handler is attached already.

  ## Options

    * `:books` (`:all` or list of names) - the books whose events are recorded. Defaults to `:all`

  ## Examples

      iex> {:error, error} = Skillbook.Telemetry.attach_open_telemetry(book: MyApp.Skills)
      iex> error.option
      :book
  """
  @spec attach_open_telemetry(Skillbook.options()) ::
          :ok | {:error, OptionError.t() | TelemetryError.t()}
  def attach_open_telemetry(options \\ []) do
    Arguments.check!("Skillbook.Telemetry.attach_open_telemetry/1", options: {:options, options})
    options |> Options.keywords() |> OpenTelemetry.attach()
  end

  @doc "Detaches the handler of `attach_open_telemetry/1`, if it is attached."
  @spec detach_open_telemetry() :: :ok
  defdelegate detach_open_telemetry, to: OpenTelemetry, as: :detach

  @doc """
  Describes an event by OpenTelemetry's semantic conventions for generative AI, or returns `nil`
  if they have no name for it.

  `name` and `metadata` are those of an event of `events/0`. The conventions are in development;
  these are the names of version 1.41.

  | event | span | kind |
  |---|---|---|
  | `[:skillbook, :agent, …]` | `invoke_agent` and the book's name | internal |
  | `[:skillbook, :model, …]` except `:retry` | `chat` and the model's name | client |
  | `[:skillbook, :command, …]` of an entry | `execute_tool` and the entry's name | internal |
  | `[:skillbook, :workflow, …]` | `invoke_workflow` and the entry's name | internal |

  Attributes with other prefixes than `gen_ai.` and `error.` are Skillbook's own: `skillbook.book`
  and `skillbook.profile`. The arguments of a tool call are there only in a book with
  `telemetry_flags: true`.

  ## Examples

      iex> metadata = %{
      ...>   book: MyApp.Skills, profile: "ann", turn: 1, provider: "openai", model: "gpt-5",
      ...>   finish_reason: :stop, answered_by: "gpt-5-2026",
      ...>   usage: %{prompt_tokens: 900, completion_tokens: 20, cached_tokens: 800,
      ...>     cache_write_tokens: 0}
      ...> }
      iex> span = Skillbook.Telemetry.gen_ai([:skillbook, :model, :stop], metadata)
      iex> {span.name, span.kind}
      {"chat gpt-5", :client}
      iex> span.attributes["gen_ai.usage.cache_read.input_tokens"]
      800
      iex> Skillbook.Telemetry.gen_ai([:skillbook, :store, :away], %{book: MyApp.Skills})
      nil
  """
  @spec gen_ai(name(), map()) :: span() | nil
  def gen_ai(name, metadata) when is_list(name) and is_map(metadata),
    do: OpenTelemetry.span(name, metadata)

  def gen_ai(name, metadata) do
    Arguments.check!("Skillbook.Telemetry.gen_ai/2",
      name: {:list, name},
      metadata: {:map, metadata}
    )
  end

  @doc false
  # Loads the libraries, once at the start: searching for a missing module is slow.
  @spec load() :: :ok
  def load do
    Enum.each([:telemetry, :otel_ctx], &Code.ensure_loaded/1)
    :ok
  end

  @doc false
  # Sends an event to `:telemetry`, if the application has it, and to the book's usage counter.
  @spec event(name(), map(), map()) :: :ok
  def event([:skillbook | _] = name, measurements, metadata) do
    if :erlang.function_exported(:telemetry, :execute, 3),
      do: apply(:telemetry, :execute, [name, measurements, metadata])

    with [:skillbook, :command, how] when how in [:stop, :exception] <- name,
         do: Counter.count(how, measurements, metadata)

    :ok
  end

  @doc false
  # Sends `:start` before a function and `:stop` or `:exception` after it.
  #
  # The function returns the kind of the last event, the result, and more metadata. If it raises,
  # throws or exits, the event is an `:exception` with a `:kind` and the metadata `raised`, and
  # the error is raised again.
  @spec span(name(), map(), (() -> {:stop | :exception, value, map()}), map()) :: value
        when value: term()
  def span(name, metadata, fun, raised \\ %{}) do
    began = System.monotonic_time()
    event(name ++ [:start], %{monotonic_time: began, system_time: System.system_time()}, metadata)

    try do
      fun.()
    catch
      kind, reason ->
        stop(name, :exception, began, metadata |> Map.merge(raised) |> Map.put(:kind, kind))
        :erlang.raise(kind, reason, __STACKTRACE__)
    else
      {how, value, more} when how in [:stop, :exception] ->
        stop(name, how, began, Map.merge(metadata, more))
        value
    end
  end

  defp stop(name, how, began, metadata) do
    ended = System.monotonic_time()
    event(name ++ [how], %{duration: ended - began, monotonic_time: ended}, metadata)
  end

  @doc false
  # Returns a function that runs `fun` in the trace of the calling process, for another process.
  # Every command passes here, also in applications without OpenTelemetry.
  @spec in_trace((() -> value)) :: (() -> value) when value: term()
  def in_trace(fun) do
    if :erlang.function_exported(:otel_ctx, :attach, 1) do
      context = apply(:otel_ctx, :get_current, [])

      fn ->
        apply(:otel_ctx, :attach, [context])
        fun.()
      end
    else
      fun
    end
  end
end
