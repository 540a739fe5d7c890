defmodule Skillbook.Support.NativeLibrary do
  @moduledoc false
  # Native libraries that are built only where they are wanted, and loaded when first needed. The
  # module with a library's stubs must call `:erlang.load_nif/2` itself.

  @enforce_keys [:name, :setting, :variable]
  defstruct [:name, :setting, :variable]

  @typedoc """
  A library: the name of its crate, the application's setting and the environment variable that
  ask for it.
  """
  @type t :: %__MODULE__{name: String.t(), setting: String.t(), variable: String.t()}

  @doc "The path that `:erlang.load_nif/2` takes."
  @spec path(t()) :: charlist()
  def path(library), do: String.to_charlist(file(library))

  @doc "The result of `:erlang.load_nif/2`; its error says how to build the library."
  @spec loaded(t(), :ok | {:error, {atom(), charlist()}}) :: :ok | {:error, String.t()}
  def loaded(library, result) do
    case result do
      :ok -> :ok
      {:error, {:reload, _}} -> :ok
      {:error, {_, text}} -> {:error, problem(library, to_string(text))}
    end
  end

  defp problem(library, text) do
    if File.exists?(file(library) <> ".so"),
      do: "the library cannot be loaded (#{text}); to build it again, #{build(library)}",
      else: build(library)
  end

  defp build(library) do
    "set `config :skillbook, #{library.setting}` in config/config.exs, or " <>
      "#{library.variable}=1 in the environment, and run mix deps.compile skillbook --force; " <>
      "in Skillbook's own folder: #{library.variable}=1 mix compile"
  end

  defp file(library), do: Path.join(:code.priv_dir(:skillbook), "native/lib#{library.name}")
end
