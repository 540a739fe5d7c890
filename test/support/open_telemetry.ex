# Replaces the API of OpenTelemetry, which is not a dependency: the processes that listen to a
# book (`:telemetry.listen/1`) get each ended span as `{:span, span}`.

defmodule :opentelemetry do
  @moduledoc false
  def get_application_tracer(module), do: {__MODULE__, module}
end

defmodule :otel_ctx do
  @moduledoc false

  def get_current, do: Process.get(__MODULE__, %{})
  def attach(context), do: Process.put(__MODULE__, context) || %{}

  def detach(token) do
    Process.put(__MODULE__, token)
    :ok
  end
end

defmodule :otel_tracer do
  @moduledoc false

  def start_span({:opentelemetry, Skillbook}, name, %{kind: kind, attributes: attributes}) do
    span = %{
      id: make_ref(),
      parent: :otel_ctx.get_current()[:span],
      name: name,
      kind: kind,
      attributes: attributes,
      status: :unset
    }

    Process.put({__MODULE__, span.id}, span)
    span.id
  end

  def set_current_span(context, id), do: Map.put(context, :span, id)
end

defmodule :otel_span do
  @moduledoc false

  def set_attributes(id, attributes), do: update(id, &%{&1 | attributes: attributes})
  def set_status(id, status, ""), do: update(id, &%{&1 | status: status})

  def end_span(id) do
    span = Process.delete({:otel_tracer, id})
    :telemetry.tell(span.attributes["skillbook.book"], {:span, span})
  end

  defp update(id, fun),
    do: Process.put({:otel_tracer, id}, fun.(Process.get({:otel_tracer, id}))) && true
end
