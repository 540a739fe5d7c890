defmodule Skillbook.Embedder.Library do
  @moduledoc false
  # The native library of the local embedder (native/skillbook_embed). Most applications do not
  # build it.

  use Skillbook.Support.NativeLibrary,
    app: :skillbook_embedder,
    crate: "skillbook_embed",
    wish: [setting: "embedder: :local", variable: "SKILLBOOK_EMBED"],
    functions: [
      open(folder),
      embed(model, texts, threads, milliseconds)
    ]

  # Reads a model: a reference, the size of its vectors, the most tokens, a fingerprint.
  @spec open(String.t()) ::
          {:ok, {reference(), pos_integer(), pos_integer(), non_neg_integer()}}
          | {:error, String.t()}

  # Vectors of texts, with up to so many threads and within so many milliseconds.
  @spec embed(reference(), [String.t()], pos_integer(), pos_integer()) ::
          {:ok, [binary()]} | {:error, :timeout | String.t()}
end
