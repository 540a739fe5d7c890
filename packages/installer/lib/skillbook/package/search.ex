defmodule Skillbook.Package.Search do
  @moduledoc false
  # Searches the skills of several sources by name and description, with the search of the
  # catalog, so that scores of different sources can be compared.

  alias Skillbook.Package.{Install, LockFile}
  alias Skillbook.{Catalog, Frontmatter, View}

  @doc "See `Skillbook.Package.search/3`."
  def run(sources, query, limit, options) do
    {found, failed} =
      sources
      |> Enum.uniq()
      |> Enum.map(&{&1, Install.find(&1, options)})
      |> Enum.split_with(&match?({_, {:ok, _}}, &1))

    skills =
      for {source, {:ok, skills}} <- found,
          %{problem: nil} = skill <- skills,
          do: {source, skill}

    {ranked(skills, query, limit), for({_, {:error, error}} <- failed, do: error)}
  end

  defp ranked([], _query, _limit), do: []

  defp ranked(skills, query, limit) do
    numbered = Map.new(Enum.with_index(skills), fn {skill, number} -> {"s#{number}", skill} end)

    with_pages(numbered, fn folder ->
      # The texts are those of strangers.
      {:ok, catalog} = Catalog.load([[path: folder, trust: :low]])
      hits = Catalog.Search.search(View.all(catalog), query, limit: limit, kind: :skill)
      for hit <- hits, do: numbered[hit.name]
    end)
  end

  # The search counts words of titles like those of names, and names must differ.
  defp with_pages(numbered, fun) do
    unique = "skillbook-search-#{System.pid()}-#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), unique)

    try do
      File.mkdir!(folder)
      File.chmod!(folder, 0o700)

      for {name, {_source, skill}} <- numbered do
        fields = [{"name", name}, {"title", skill.name}, {"description", skill.description}]
        File.mkdir!(Path.join(folder, name))
        File.write!(Path.join([folder, name, "SKILL.md"]), Frontmatter.write(fields, ""))
      end

      fun.(folder)
    after
      File.rm_rf(folder)
    end
  end

  @doc "The websites of the installed skills of a folder."
  @spec sites(Path.t()) :: {:ok, [String.t()]} | {:error, Skillbook.PackageError.t()}
  def sites(folder) do
    with {:ok, entries} <- LockFile.read(folder) do
      sites = for {_, %{"kind" => "site", "source" => source}} <- entries, do: source
      {:ok, sites |> Enum.uniq() |> Enum.sort()}
    end
  end
end
