defmodule Skillbook.Telemetry.Handlers do
  @moduledoc false
  # Attaches handlers to `:telemetry`, which may be missing.

  alias Skillbook.TelemetryError

  @doc "Attaches a handler to events, once."
  @spec attach(module(), [[atom()]], function(), map(), String.t()) ::
          :ok | {:error, TelemetryError.t()}
  def attach(id, events, handler, config, function) do
    cond do
      not Code.ensure_loaded?(:telemetry) ->
        {:error, %TelemetryError{function: function, kind: :missing}}

      apply(:telemetry, :attach_many, [id, events, handler, config]) == :ok ->
        :ok

      true ->
        {:error, %TelemetryError{function: function, kind: :attached}}
    end
  end

  @spec detach(module()) :: :ok
  def detach(id) do
    if Code.ensure_loaded?(:telemetry), do: apply(:telemetry, :detach, [id])
    :ok
  end

  @doc "Whether an event is of one of the books."
  @spec of_book?(map(), :all | [atom()]) :: boolean()
  def of_book?(_metadata, :all), do: true
  def of_book?(metadata, books), do: metadata[:book] in books
end
