defmodule Skillbook.Preflight.ProfileCatalog do
  @moduledoc false
  # The profiles that the router may name to a caller, as the entries of a catalog of their own,
  # so that search, vectors and the model work as for skills.
  #
  # The catalog has no other profiles, so nothing that the router returns depends on them.

  alias Skillbook.Book.{Cache, Profiles}
  alias Skillbook.Embedding.{QueryVectors, Vectors}
  alias Skillbook.Preflight.Subject
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Catalog, Embedder, Frontmatter, Native, Profile, Source, View}

  # Descriptions that the embedder gets at once.
  @at_once 64

  @doc """
  The profiles with a description that a view's profile may use; with ids, those of them that its
  tenant may have.
  """
  @spec subject(View.t(), [String.t()] | nil) :: Subject.t()
  def subject(view, ids) do
    book = view.book && Book.find(view.book)

    described =
      for profile <- if(book, do: profiles(book, view, ids), else: []),
          profile.description != nil,
          do: {profile.id, profile.description}

    described = Enum.sort(described)
    {catalog, vectors} = catalog(view.book, described)
    entries = View.all(catalog)

    %Subject{
      among: :profiles,
      view: entries,
      book: view.book,
      profile: view.profile.id,
      meaning: &meaning(book, catalog, vectors, &1),
      vectors: if(book && book.embedder, do: %{done: length(described), total: 0}),
      # A question of one profile must not make the answer for another one faster.
      key: {View.state(view), described}
    }
  end

  # An application that lists ids has decided about rights, but a tenant's things reach nobody
  # outside.
  defp profiles(book, view, ids) when is_list(ids) do
    for id <- Enum.uniq(ids),
        profile = Profiles.find(book, id),
        profile.tenant in [nil, view.profile.tenant] or view.profile.tenant == :all,
        do: profile
  end

  defp profiles(book, view, nil) do
    for {_id, profile} <- book.profiles,
        profile.description != nil,
        covers?(book, view, profile),
        do: profile
  end

  # Whether a caller has all rights of a profile. Pages may exclude a caller by its id, so what
  # the two see is compared too.
  defp covers?(book, view, profile) do
    Profile.within?(profile, view.profile) and
      sees_all?(book, view, Skillbook.view(book.name, profile))
  end

  defp sees_all?(book, view, other) do
    key = Cache.key({:sees_all, View.state(view), View.state(other)})

    with :error <- Cache.fetch(book.name, PreflightCache, key) do
      all? = View.missing(view, View.names(other)) == []
      Cache.put(book.name, PreflightCache, key, all?)
      all?
    else
      {:ok, all?} -> all?
    end
  end

  # The vectors are put there when they are needed first.
  defp catalog(book, described) do
    key = Cache.key({:profiles, described})

    with :error <- Cache.fetch(book, PreflightCache, key) do
      made = {load(described), Vectors.new()}
      Cache.put(book, PreflightCache, key, made)
      made
    else
      {:ok, made} -> made
    end
  end

  defp load(described) do
    pages =
      for {{id, description}, number} <- Enum.with_index(described) do
        fields = [{"name", id}, {"description", description}]
        {"profile #{number}", Frontmatter.write(fields, "#{description}\n"), nil}
      end

    source = %Source{path: "code", name: "profiles", kind: :code, trust: :high}
    {ref, _handlers} = Native.catalog_load([source], [pages])
    Native.catalog_publish(ref, [])
    catalog = %Catalog{ref: ref, sources: [source]}

    # An id that is no name of a page, such as one with a line break, would become another id.
    case Enum.filter(described, fn {id, _} -> View.named?(View.all(catalog), id) end) do
      ^described -> catalog
      named -> load(named)
    end
  end

  defp meaning(%Book{embedder: embedder} = book, catalog, vectors, text) when embedder != nil do
    with :ok <- embed(book, catalog, vectors),
         vector when vector != nil <- QueryVectors.vector(book, text),
         do: {vectors, vector},
         else: (_ -> nil)
  end

  defp meaning(_book, _catalog, _vectors, _text), do: nil

  defp embed(book, catalog, vectors) do
    case Native.vectors_follow(vectors, catalog.ref) do
      [] ->
        :ok

      missing ->
        missing
        |> Enum.chunk_every(@at_once)
        |> UntilError.each(fn digests ->
          texts = for {_digest, text} <- Native.vectors_texts(catalog.ref, digests), do: text
          options = [timeout: book.embedder_timeout]

          # Vectors of different sizes are an error: the embedder has changed meanwhile.
          with {:ok, made} <- Embedder.embed(book.embedder, texts, options),
               :ok <- Vectors.put(vectors, Enum.zip(digests, made)),
               do: :ok,
               else: (_error -> :error)
        end)
    end
  end
end
