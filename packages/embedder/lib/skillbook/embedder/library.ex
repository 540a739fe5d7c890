defmodule Skillbook.Embedder.Library do
  @moduledoc false
  # The functions of the local embedder's native library (native/skillbook_embed), which replaces
  # these stubs when it is loaded. Most applications do not build it, so it is loaded when it is
  # first needed.

  alias Skillbook.Support.NativeLibrary

  @library %NativeLibrary{
    name: "skillbook_embed",
    setting: "embedder: :local",
    variable: "SKILLBOOK_EMBED"
  }

  @doc "Loads the library, unless it is loaded. The error says how to build it."
  @spec load() :: :ok | {:error, String.t()}
  def load do
    result = :erlang.load_nif(NativeLibrary.path(@library), 0)
    NativeLibrary.loaded(@library, result)
  end

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
