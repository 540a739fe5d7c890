defmodule Skillbook.Embedder.Library do
  @moduledoc false
  # The functions of the local embedder's native library (native/skillbook_embed), which replaces
  # these stubs when it is loaded. Most applications do not build it, so it is loaded when it is
  # first needed.

  @doc "Loads the library, unless it is loaded. The error says how to build it."
  @spec load() :: :ok | {:error, String.t()}
  def load do
    path = path()

    case :erlang.load_nif(String.to_charlist(path), 0) do
      :ok -> :ok
      {:error, {:reload, _}} -> :ok
      {:error, {_, text}} -> {:error, problem(File.exists?(path <> ".so"), to_string(text))}
    end
  end

  @build "set `config :skillbook, embedder: :local` in config/config.exs, or " <>
           "SKILLBOOK_EMBED=1 in the environment, and run mix deps.compile skillbook --force; " <>
           "in Skillbook's own folder: SKILLBOOK_EMBED=1 mix compile"

  defp problem(false, _text), do: @build

  defp problem(true, text),
    do: "the library cannot be loaded (#{text}); to build it again, #{@build}"

  defp path, do: :skillbook |> :code.priv_dir() |> Path.join("native/libskillbook_embed")

  @doc "Reads a model: a reference, the size of its vectors, the most tokens, a fingerprint."
  @spec open(String.t()) ::
          {:ok, {reference(), pos_integer(), pos_integer(), non_neg_integer()}}
          | {:error, String.t()}
  def open(_folder), do: :erlang.nif_error(:not_loaded)

  @doc "Vectors of texts, with up to so many threads and within so many milliseconds."
  @spec embed(reference(), [String.t()], pos_integer(), pos_integer()) ::
          {:ok, [binary()]} | {:error, :timeout | String.t()}
  def embed(_model, _texts, _threads, _milliseconds), do: :erlang.nif_error(:not_loaded)
end
