defmodule Skillbook.TelemetryError do
  @moduledoc """
  Returned when a handler of `Skillbook.Telemetry` cannot be attached.

  ## Fields

    * `:function` - the function that attaches it, for example `"attach_default_logger/1"`
    * `:kind` - `:missing`, the application does not have the library; or `:attached`, the handler
      is attached already
    * `:library` - the library that the function needs

  ## Examples

      iex> error = %Skillbook.TelemetryError{
      ...>   function: "attach_default_logger/1",
      ...>   kind: :missing,
      ...>   library: :telemetry
      ...> }
      iex> Exception.message(error)
      "Skillbook.Telemetry.attach_default_logger/1 needs the library :telemetry, which the " <>
        "application does not have; add {:telemetry, \\"~> 1.0\\"} to its dependencies"
  """

  @type t :: %__MODULE__{
          function: String.t(),
          kind: :missing | :attached,
          library: :telemetry | :opentelemetry_api
        }

  @enforce_keys [:function, :kind]
  defexception [:function, :kind, library: :telemetry]

  @impl true
  def message(%{kind: :missing, library: library} = error) do
    "Skillbook.Telemetry.#{error.function} needs the library #{inspect(library)}, which the " <>
      "application does not have; add {#{inspect(library)}, \"~> 1.0\"} to its dependencies"
  end

  def message(%{kind: :attached, function: function}) do
    detach = function |> String.replace("attach_", "detach_") |> String.replace("/1", "/0")

    "expected Skillbook.Telemetry.#{function} to be called once, got: another call; call " <>
      "#{detach} first to change its options"
  end
end
