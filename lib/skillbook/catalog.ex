defmodule Skillbook.Catalog do
  @moduledoc """
  All entries of some sources, without any process: for scripts, for tests, and behind every book.

  What a catalog holds is read through a `Skillbook.View`. A catalog has one generation at a time; `reload/1` makes the
  next one, and views that were made before keep the one they have.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.Catalog.count(catalog)
      8
      iex> Skillbook.Catalog.generation(catalog)
      1
      iex> Skillbook.Catalog.reload(catalog)
      {:ok, 2}
  """

  alias Skillbook.{Change, Diagnostic, Native, OptionError, Source}

  @type t :: %__MODULE__{ref: reference(), sources: [Source.t()]}

  @enforce_keys [:ref, :sources]
  defstruct [:ref, :sources]

  @doc """
  Reads the sources: paths, options of `Skillbook.Source`, or sources.

  A later source's entry replaces an earlier one's of the same name. What is wrong with a file, or with a whole source,
  is no error but one of the `diagnostics/1`.
  """
  @spec load([Source.t() | Path.t() | keyword()]) :: {:ok, t()} | {:error, OptionError.t()}
  def load(sources) when is_list(sources) do
    with {:ok, sources} <- sources(sources) do
      ref = Native.catalog_load(sources)
      {:ok, %__MODULE__{ref: ref, sources: sources}}
    end
  end

  @doc "Reads the same sources again and gives the number of the new generation. Unchanged files are not parsed again."
  @spec reload(t()) :: {:ok, pos_integer()}
  def reload(catalog), do: {:ok, refresh(catalog, :all).generation}

  @doc """
  Reads again what these changed paths touch, or everything, and tells what differs.

  A generation is made for `:all`, and for paths if anything is different; otherwise the number stays. Names are those of
  all entries, so the answer is for trusted code.
  """
  @spec refresh(t(), [Path.t()] | :all) :: Change.t()
  def refresh(%__MODULE__{ref: ref}, :all), do: change(Native.catalog_reload(ref))
  def refresh(%__MODULE__{ref: ref}, paths), do: change(Native.catalog_reload_paths(ref, paths))

  defp change({generation, added, changed, removed}) do
    %Change{generation: generation, added: added, changed: changed, removed: removed}
  end

  @doc "The number of the current generation: 1 after `load/1`, one more with each `reload/1`."
  @spec generation(t()) :: pos_integer()
  def generation(%__MODULE__{ref: ref}), do: Native.catalog_generation(ref)

  @doc "How many entries the current generation has."
  @spec count(t()) :: non_neg_integer()
  def count(%__MODULE__{ref: ref}), do: Native.catalog_count(ref)

  @doc """
  What was found out about the files, by path and line.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/nowhere"])
      iex> [diagnostic] = Skillbook.Catalog.diagnostics(catalog)
      iex> {diagnostic.code, diagnostic.severity}
      {:source_missing, :error}
  """
  @spec diagnostics(t()) :: [Diagnostic.t()]
  def diagnostics(%__MODULE__{ref: ref}), do: Native.catalog_diagnostics(ref)

  defp sources(sources) do
    result =
      Enum.reduce_while(sources, [], fn source, done ->
        case Source.new(source) do
          {:ok, source} -> {:cont, [source | done]}
          {:error, _} = error -> {:halt, error}
        end
      end)

    with done when is_list(done) <- result, do: {:ok, Enum.reverse(done)}
  end
end
