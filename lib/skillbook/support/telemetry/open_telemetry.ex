defmodule Skillbook.Telemetry.OpenTelemetry do
  @moduledoc false
  # Spans of OpenTelemetry from telemetry events, named by its semantic conventions for generative
  # AI: docs/gen-ai in the repository open-telemetry/semantic-conventions, version 1.41.
  #
  # The functions of the API are called by name, since it is not a dependency. A span stays in the
  # process dictionary between its events, which are sent by one process.

  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.Telemetry.{Events, Handlers}
  alias Skillbook.{OptionError, TelemetryError}

  @function "attach_open_telemetry/1"
  @spans [:agent, :model, :command, :workflow]

  @spec attach(keyword()) :: :ok | {:error, OptionError.t() | TelemetryError.t()}
  def attach(options) do
    with :ok <- Options.validate(options, "the handler for OpenTelemetry", schema()) do
      if Code.ensure_loaded?(:otel_tracer),
        do: attach_spans(%{books: options[:books] || :all}),
        else:
          {:error,
           %TelemetryError{function: @function, kind: :missing, library: :opentelemetry_api}}
    end
  end

  defp attach_spans(config) do
    events =
      for %{name: [_, group, how] = name} <- Events.all(),
          group in @spans,
          how != :retry,
          do: name

    Handlers.attach(__MODULE__, events, &__MODULE__.handle/4, config, @function)
  end

  @spec detach() :: :ok
  def detach, do: Handlers.detach(__MODULE__)

  defp schema do
    [
      books:
        {":all or a list of names of books",
         &(&1 == :all or (is_list(&1) and Enum.all?(&1, fn book -> is_atom(book) end)))}
    ]
  end

  # Events

  @doc false
  def handle([_, group, :start] = name, _measurements, metadata, config) do
    if Handlers.of_book?(metadata, config.books),
      do: push(group, span(name, metadata))
  end

  def handle([_, group, _how] = name, _measurements, metadata, config) do
    if Handlers.of_book?(metadata, config.books),
      do: pop(group, span(name, metadata))
  end

  # A command that is not an entry has no span, but its place, so that each end finds its start.
  defp push(group, nil), do: put(group, [nil | stack(group)])

  defp push(group, span) do
    tracer = apply(:opentelemetry, :get_application_tracer, [Skillbook])
    options = Map.take(span, [:kind, :attributes])
    context = apply(:otel_tracer, :start_span, [tracer, span.name, options])

    token =
      apply(:otel_ctx, :attach, [
        apply(:otel_tracer, :set_current_span, [apply(:otel_ctx, :get_current, []), context])
      ])

    put(group, [{context, token} | stack(group)])
  end

  defp pop(group, span) do
    case stack(group) do
      [{context, token} | rest] ->
        put(group, rest)
        apply(:otel_span, :set_attributes, [context, span.attributes])

        if span.attributes["error.type"],
          do: apply(:otel_span, :set_status, [context, :error, ""])

        apply(:otel_span, :end_span, [context])
        apply(:otel_ctx, :detach, [token])

      [nil | rest] ->
        put(group, rest)

      # Attached after the start.
      [] ->
        :ok
    end
  end

  defp stack(group), do: Process.get({__MODULE__, group}, [])
  defp put(group, []), do: Process.delete({__MODULE__, group})
  defp put(group, stack), do: Process.put({__MODULE__, group}, stack)

  # Names

  @doc "As `Skillbook.Telemetry.gen_ai/2`."
  @spec span([atom()], map()) :: Skillbook.Telemetry.span() | nil
  def span([:skillbook, :command, _how], %{skill: nil}), do: nil
  def span([:skillbook, :model, :retry], _metadata), do: nil

  def span([:skillbook, group, how], metadata) when group in @spans do
    {operation, kind, subject, attributes} = operation(group, metadata)

    attributes =
      attributes
      |> Map.merge(%{
        "gen_ai.operation.name" => operation,
        "error.type" => error(how, metadata),
        "skillbook.book" => metadata[:book] && inspect(metadata.book),
        "skillbook.profile" => metadata[:profile]
      })
      |> Map.reject(fn {_key, value} -> value == nil end)

    %{
      name: if(subject, do: "#{operation} #{subject}", else: operation),
      kind: kind,
      attributes: attributes
    }
  end

  def span(_name, _metadata), do: nil

  # The name of an agent is that of its book.
  defp operation(:agent, %{book: book} = metadata) do
    name = book && inspect(book)

    {"invoke_agent", :internal, name,
     %{
       "gen_ai.agent.name" => name,
       "gen_ai.provider.name" => metadata[:provider],
       "gen_ai.request.model" => metadata[:model]
     }}
  end

  defp operation(:model, metadata) do
    usage = metadata[:usage] || %{}

    {"chat", :client, metadata[:model],
     %{
       "gen_ai.provider.name" => metadata[:provider],
       "gen_ai.request.model" => metadata[:model],
       "gen_ai.request.stream" => true,
       "gen_ai.response.model" => metadata[:answered_by],
       "gen_ai.response.finish_reasons" => reasons(metadata[:finish_reason]),
       "gen_ai.usage.input_tokens" => usage[:prompt_tokens],
       "gen_ai.usage.output_tokens" => usage[:completion_tokens],
       "gen_ai.usage.cache_read.input_tokens" => usage[:cached_tokens],
       "gen_ai.usage.cache_creation.input_tokens" => usage[:cache_write_tokens]
     }}
  end

  defp operation(:command, %{skill: skill} = metadata) do
    {"execute_tool", :internal, skill,
     %{
       "gen_ai.tool.name" => skill,
       "gen_ai.tool.type" => "function",
       "gen_ai.tool.call.arguments" => metadata[:flags] && JSON.encode(metadata.flags)
     }}
  end

  defp operation(:workflow, %{skill: skill}),
    do: {"invoke_workflow", :internal, skill, %{"gen_ai.workflow.name" => skill}}

  # The reasons of Chat Completions.
  defp reasons(nil), do: nil
  defp reasons(:filtered), do: ["content_filter"]
  defp reasons(reason), do: [Atom.to_string(reason)]

  # The conventions' name for an error without a class of its own is `_OTHER`.
  defp error(:exception, %{kind: kind}) when is_atom(kind), do: Atom.to_string(kind)
  defp error(:exception, _metadata), do: "_OTHER"
  defp error(:stop, %{status: :error}), do: "_OTHER"
  defp error(_how, _metadata), do: nil
end
