defmodule Skillbook.Embedder.Local do
  @moduledoc """
  An embedder that runs a model in this virtual machine: a
  [sentence-transformers](https://www.sbert.net) model of the BERT family from a folder. No text
  leaves the machine.

      {:ok, embedder} = Skillbook.Embedder.Local.new("/srv/models/all-MiniLM-L6-v2")
      {:ok, [vector]} = Skillbook.Embedder.embed(embedder, ["Which invoices are overdue?"])

  The folder has `config.json`, `tokenizer.json` and `model.safetensors`. Models of the types
  `bert`, `distilbert`, `mpnet`, `roberta` and `xlm-roberta` are read, with the pooling (average
  or first token) and the length of texts that their files name.

  The model is run by a native library of its own, which is built only if
  `config :skillbook, embedder: :local` or `SKILLBOOK_EMBED=1` is set.
  [Embeddings](docs/embeddings.md) describes that, and shows speed and memory.

  ## Options

    * `:threads` - the number of threads for several texts. One text uses one. Default: the number
      of schedulers that are online
    * `:name` - the model's name, under which vectors are kept. Default: the folder's name with a
      fingerprint of its files, such as `"all-MiniLM-L6-v2 1f0e6c9a7b2d4e58"`. Give the same name
      only to the same model

  ## Limits

  `model.safetensors` has at most 2 GiB. Of a text only the beginning is read, as many tokens as
  the model takes (256 for all-MiniLM-L6-v2) and at most 64 bytes for each.
  """

  @behaviour Skillbook.Embedder

  alias Skillbook.Embedder.Library
  alias Skillbook.{EmbedderError, OptionError}
  alias Skillbook.Support.{Arguments, Options, UntilError}

  @type t :: %__MODULE__{
          folder: Path.t(),
          name: String.t(),
          size: pos_integer(),
          max_tokens: pos_integer(),
          threads: pos_integer(),
          model: reference()
        }

  @derive {Inspect, except: [:model]}
  @enforce_keys [:folder, :name, :size, :max_tokens, :threads, :model]
  defstruct [:folder, :name, :size, :max_tokens, :threads, :model]

  # Texts of one call of the library. Between two calls the process can be ended.
  @batch 128

  @doc """
  Reads the model in a folder.

  Takes a fraction of a second for each 100 MB, and the memory of the weights as 32-bit numbers.
  """
  @spec new(Path.t(), keyword()) :: {:ok, t()} | {:error, EmbedderError.t() | OptionError.t()}
  def new(folder, options \\ []) do
    Arguments.check!("Skillbook.Embedder.Local.new/2", folder: {:text, folder})

    options = Options.keywords(options)

    with :ok <- Options.validate(options, "a local embedder", schema()),
         :ok <- error(:library, Library.load()),
         {:ok, {model, size, max_tokens, fingerprint}} <- open(folder) do
      {:ok,
       %__MODULE__{
         folder: folder,
         name: options[:name] || default_name(folder, fingerprint),
         size: size,
         max_tokens: max_tokens,
         threads: options[:threads] || System.schedulers_online(),
         model: model
       }}
    end
  end

  @doc "Like `new/2`, but raises the error."
  @spec new!(Path.t(), keyword()) :: t()
  def new!(folder, options \\ []) do
    case new(folder, options) do
      {:ok, embedder} -> embedder
      {:error, error} -> raise error
    end
  end

  @impl true
  def info(%{name: name, size: size}), do: %{model: name, size: size}

  @impl true
  def embed(%__MODULE__{} = embedder, texts, options) do
    deadline = System.monotonic_time(:millisecond) + options[:timeout]

    texts
    |> Enum.chunk_every(@batch)
    |> UntilError.map(&batch(embedder, &1, options[:timeout], deadline))
    |> case do
      {:ok, batches} -> {:ok, Enum.concat(batches)}
      error -> error
    end
  end

  defp batch(embedder, texts, timeout, deadline) do
    left = max(deadline - System.monotonic_time(:millisecond), 1)

    case Library.embed(embedder.model, texts, embedder.threads, left) do
      {:ok, vectors} -> {:ok, vectors}
      {:error, :timeout} -> {:error, Skillbook.Embedder.timed_out(timeout)}
      {:error, reason} -> error(:folder, {:error, "#{embedder.folder}: #{reason}"})
    end
  end

  # The library reads files by paths in UTF-8.
  defp open(folder) do
    if String.valid?(folder) and not String.contains?(folder, "\0") do
      with {:error, reason} <- Library.open(Path.expand(folder)),
           do: error(:folder, {:error, "#{folder}: #{reason}"})
    else
      error(:folder, {:error, "expected a path in UTF-8, got: #{inspect(folder)}"})
    end
  end

  defp error(kind, {:error, reason}), do: {:error, %EmbedderError{kind: kind, reason: reason}}
  defp error(_kind, ok), do: ok

  defp default_name(folder, fingerprint) do
    hash =
      fingerprint |> Integer.to_string(16) |> String.downcase() |> String.pad_leading(16, "0")

    "#{folder |> Path.expand() |> Path.basename()} #{hash}"
  end

  defp schema do
    [
      threads: {"a whole number from 1 to 1024", &(&1 in 1..1024)},
      name: {"text", &Options.text?/1}
    ]
  end
end
