defmodule Skillbook.Package.Origin do
  @moduledoc false
  # An opened source of skills: a folder, an archive, a git repository or a website. Lists its
  # files and the skills among them, and reads a skill's files.

  alias Skillbook.Package.Archive.{Tar, Zip}
  alias Skillbook.Package.{Git, Item, Site, Skill}
  alias Skillbook.Support.{ReadFile, TemporaryFolder, UntilError}
  alias Skillbook.{Frontmatter, HTTP, PackageError}

  @type t :: %__MODULE__{
          kind: :folder | :archive | :git | :site,
          place: String.t(),
          site: Site.index() | nil,
          asked: %{optional(:branch | :tag | :commit) => String.t()},
          commit: String.t() | nil,
          items: [Item.t()],
          read: ([Item.t()] -> {:ok, [binary()]} | {:error, PackageError.t()})
        }

  @enforce_keys [:kind, :place, :items, :read]
  defstruct [:kind, :place, :commit, :items, :read, :site, asked: %{}]

  @max_page_size 1024 * 1024
  @archives [".zip", ".tar", ".tar.gz", ".tgz"]
  @max_archive_size 64 * 1024 * 1024
  # No user name and no query: they may hold secrets, and the lock file records the address.
  @archive_address ~r{\Ahttps://[^@?#\s]+\.(?i:zip|tar|tar\.gz|tgz)\z}
  # `owner/name` of GitHub.
  @repository ~r"\A[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\z"
  @max_redirects 5
  @max_file_size Item.max_file_size()

  @doc "The kind of a source, and its name in the lock file: an absolute path or an address."
  @spec identify(String.t(), map()) ::
          {:ok, {:folder | :archive | :git | :site, String.t()}} | {:error, PackageError.t()}
  def identify(source, asked) do
    path = Path.expand(source)

    cond do
      map_size(asked) > 1 ->
        given = asked |> Map.keys() |> Enum.sort() |> Enum.map_join(" and ", &"--#{&1}")
        reason = "has several revisions: #{given}"
        PackageError.new(:option, source, reason, "write one of them")

      source =~ @archive_address and asked == %{} ->
        {:ok, {:archive, source}}

      Site.address?(source) and asked == %{} ->
        with {:ok, {place, _skill}} <- Site.identify(source), do: {:ok, {:site, place}}

      Git.address?(source) ->
        with :ok <- Git.check(source, asked), do: {:ok, {:git, source}}

      File.dir?(path) ->
        if asked != %{} or String.ends_with?(path, ".git") or Git.bare?(path),
          do: with(:ok <- Git.check(path, asked), do: {:ok, {:git, path}}),
          else: {:ok, {:folder, path}}

      source =~ @repository and not File.exists?(path) ->
        identify("https://github.com/" <> source, asked)

      asked != %{} ->
        PackageError.new(
          :option,
          source,
          "is not a git repository, so it has no branches, tags or commits"
        )

      File.regular?(path) and String.ends_with?(String.downcase(path), @archives) ->
        {:ok, {:archive, path}}

      File.exists?(path) ->
        PackageError.new(
          :source,
          source,
          "is neither a folder nor a supported archive",
          "archives end in #{Enum.join(@archives, ", ")}"
        )

      true ->
        PackageError.new(
          :source,
          source,
          "does not exist",
          "name a folder, an archive (#{Enum.join(@archives, ", ")}), " <>
            "the https address of one, a git repository, for example " <>
            "https://example.com/skills.git or OWNER/NAME of GitHub, or a website, for " <>
            "example https://example.com"
        )
    end
  end

  @doc """
  Opens a source, calls the function with it, and deletes its temporary files.

  Uses the options `:progress` and `:http` of `Skillbook.Package`.
  """
  @spec open({atom(), String.t()}, map(), keyword(), (t() -> result)) ::
          result | {:error, PackageError.t()}
        when result: term()
  def open({:folder, place}, _asked, options, fun) do
    options[:progress].("reading #{place}")

    with {:ok, items} <- walk(place),
         do: fun.(%__MODULE__{kind: :folder, place: place, items: items, read: &read_files/1})
  end

  def open({:archive, place}, _asked, options, fun) do
    with {:ok, bytes} <- read_archive(place, options),
         options[:progress].("unpacking #{place}"),
         {:ok, items} <- unpack(place, bytes) do
      fun.(%__MODULE__{
        kind: :archive,
        place: place,
        items: items,
        read: &{:ok, Enum.map(&1, fn item -> item.content end)}
      })
    end
  end

  def open({:git, place}, asked, options, fun) do
    if options[:http][:addresses] == :public and Git.address?(place) do
      reason = "would be fetched by git, which may ask any address"
      PackageError.new(:source, place, reason, "use the https address of an archive")
    else
      open_git(place, asked, options, fun)
    end
  end

  def open({:site, place}, _asked, options, fun) do
    with {:ok, index} <- Site.index(place, options), do: fun.(site(place, index, options))
  end

  defp open_git(place, asked, options, fun) do
    TemporaryFolder.with_folder(fn folder ->
      options[:progress].("fetching #{place}")

      with {:ok, commit} <- Git.fetch(folder, place, asked, options[:progress]),
           {:ok, items} <- Git.items(folder, place, commit) do
        fun.(%__MODULE__{
          kind: :git,
          place: place,
          asked: asked,
          commit: commit,
          items: items,
          read: &Git.read(folder, place, &1)
        })
      end
    end)
  end

  @doc "The source of a website's index. Its skills are fetched when their files are read."
  @spec site(String.t(), Site.index(), keyword()) :: t()
  def site(place, index, options) do
    %__MODULE__{
      kind: :site,
      place: place,
      items: [],
      site: index,
      read: fn row -> Site.fetch(row, place, options) end
    }
  end

  @doc "The digest of a skill in the index of a website; `nil` for other sources."
  @spec digest(t(), Skill.t()) :: String.t() | nil
  def digest(%{site: nil}, _skill), do: nil
  def digest(origin, skill), do: row(origin, skill).digest

  defp row(origin, skill), do: origin.site.rows[skill.path]

  @doc """
  The skills of the source below a folder, sorted by path. The path of a website's skill is its
  name.

  A skill is a folder with a `SKILL.md`. Folders below it belong to it, except below a skill at
  the source's root, where they may be skills too. Of identical skills, for example copies for
  several programs, only the one with the shortest path is returned.
  """
  @spec skills(t(), String.t()) :: {:ok, [Skill.t()]} | {:error, PackageError.t()}
  def skills(%{kind: :site, site: site}, ""),
    do: {:ok, site.rows |> Map.values() |> Enum.sort_by(& &1.name) |> Enum.map(&listed/1)}

  def skills(%{kind: :site, site: site}, name),
    do: {:ok, for(row <- List.wrap(site.rows[name]), do: listed(row))}

  def skills(origin, below) do
    items = Enum.filter(origin.items, &below?(&1.path, below))

    pages =
      Enum.filter(
        items,
        &(Path.basename(&1.path) == "SKILL.md" and &1.type == :file and &1.size <= @max_page_size)
      )

    folders = pages |> Enum.map(&folder(&1.path)) |> outermost()
    pages = Enum.filter(pages, &(folder(&1.path) in folders))

    with {:ok, texts} <- origin.read.(pages) do
      by_folder = group_by_skill(items, folders)

      skills =
        for {page, text} <- Enum.zip(pages, texts) do
          path = folder(page.path)
          skill(origin, path, Map.get(by_folder, path, []), text)
        end

      {:ok, without_copies(skills, origin)}
    end
  end

  defp listed(row) do
    %Skill{
      name: Skill.normalize(row.name) || "skill",
      title: row.name,
      description: row.description,
      path: row.name,
      problem: row.problem,
      items: []
    }
  end

  @doc "As `files/2`, but with the skill's problem as an error, and full paths in errors."
  @spec read_skill(t(), Skill.t()) :: {:ok, [{Item.t(), binary()}]} | {:error, PackageError.t()}
  def read_skill(_origin, %{problem: problem, title: title}) when problem != nil,
    do: PackageError.new(:skill, title, problem)

  def read_skill(%{kind: :site} = origin, skill), do: files(origin, skill)

  def read_skill(origin, skill) do
    with {:error, error} <- files(origin, skill), do: {:error, in_skill(error, skill.path)}
  end

  defp in_skill(error, ""), do: error
  defp in_skill(%{place: "the skill"} = error, path), do: %{error | place: path}
  defp in_skill(%{kind: :io} = error, _path), do: error
  defp in_skill(error, path), do: %{error | place: path <> "/" <> error.place}

  @doc "The content of a skill's files. Checks their kinds, names and sizes first."
  @spec files(t(), Skill.t()) :: {:ok, [{Item.t(), binary()}]} | {:error, PackageError.t()}
  def files(%{kind: :site} = origin, skill) do
    with {:ok, items} <- origin.read.(row(origin, skill)),
         :ok <- check_items(items, skill),
         {:ok, text} <- page_of(items, skill),
         {:ok, _} <- named(skill.title, text, "tell its publisher") do
      files = for item <- items, do: {%{item | content: nil}, item.content}
      {:ok, Enum.sort_by(files, fn {item, _} -> item.path end)}
    end
  end

  def files(origin, skill) do
    relative = for item <- skill.items, do: %{item | path: relative(item.path, skill.path)}

    with :ok <- Item.check(relative),
         {:ok, contents} <- origin.read.(skill.items) do
      files =
        Enum.zip_with(relative, contents, fn item, bytes ->
          {%{item | content: nil, size: byte_size(bytes)}, bytes}
        end)

      {:ok, Enum.sort_by(files, fn {item, _} -> item.path end)}
    end
  end

  defp check_items(items, skill) do
    with {:error, error} <- Item.check(items), do: {:error, in_skill(error, skill.path)}
  end

  defp page_of(items, skill) do
    case Enum.find(items, &(&1.path == "SKILL.md")) do
      %{size: size, content: text} when size <= @max_page_size ->
        {:ok, text}

      %{size: size} ->
        reason = "has a SKILL.md of #{size} bytes, and may have #{@max_page_size}"
        PackageError.new(:limit, skill.title, reason)
    end
  end

  @doc """
  The skill of a `SKILL.md` that must have this name.

  Readers choose a skill by the name that it is sent or listed under, and a book uses the name in
  `SKILL.md`.
  """
  @spec named(String.t(), binary(), String.t()) :: {:ok, Skill.t()} | {:error, PackageError.t()}
  def named(name, text, hint) do
    case skill(nil, name, [], text) do
      %{problem: problem} when problem != nil ->
        PackageError.new(:skill, name, problem)

      %{title: ^name} = skill ->
        {:ok, skill}

      %{title: other} ->
        reason = "has another name in its SKILL.md, #{inspect(other, printable_limit: 80)}"
        PackageError.new(:skill, name, reason, hint)
    end
  end

  defp below?(_path, ""), do: true
  defp below?(path, below), do: String.starts_with?(path, below <> "/")

  defp folder(path), do: if(Path.dirname(path) == ".", do: "", else: Path.dirname(path))

  defp outermost(folders) do
    known = folders |> MapSet.new() |> MapSet.delete("")
    Enum.reject(folders, fn folder -> Enum.any?(parents(folder), &(&1 in known)) end)
  end

  defp parents(""), do: []
  defp parents(path), do: [folder(path) | parents(folder(path))]

  # Each file belongs to the nearest skill above it.
  defp group_by_skill(items, folders) do
    known = MapSet.new(folders)

    items
    |> Enum.group_by(fn item -> Enum.find(parents(item.path), &(&1 in known)) end)
    |> Map.delete(nil)
  end

  defp relative(path, ""), do: path
  defp relative(path, folder), do: String.replace_prefix(path, folder <> "/", "")

  defp skill(origin, path, items, text) do
    folder = if path == "", do: top_name(origin.place), else: Path.basename(path)

    case Frontmatter.parse(text) do
      {:ok, %{data: %{"description" => description} = data}}
      when is_binary(description) and description != "" ->
        name = if is_binary(data["name"]), do: data["name"], else: folder

        %Skill{
          name: Skill.normalize(name) || Skill.normalize(folder) || "skill",
          title: name,
          description: description,
          path: path,
          items: items
        }

      {:ok, _} ->
        broken(folder, path, items, "has no description in its SKILL.md")

      {:error, error} ->
        broken(
          folder,
          path,
          items,
          "has a SKILL.md that cannot be read: " <> Exception.message(error)
        )
    end
  end

  defp broken(folder, path, items, problem),
    do: %Skill{
      name: Skill.normalize(folder) || "skill",
      title: folder,
      description: "",
      path: path,
      items: items,
      problem: problem
    }

  defp top_name(place) do
    place
    |> String.split(["/", ":"])
    |> List.last()
    |> String.replace(~r/\.(git|zip|tar|tar\.gz|tgz)\z/i, "")
  end

  # Reads only skills that share a name with another.
  defp without_copies(skills, origin) do
    skills
    |> Enum.sort_by(&{String.length(&1.path), &1.path})
    |> Enum.group_by(& &1.name)
    |> Enum.flat_map(fn
      {_name, [skill]} -> [skill]
      {_name, several} -> Enum.uniq_by(several, &content_key(&1, origin))
    end)
    |> Enum.sort_by(& &1.path)
  end

  defp content_key(skill, origin) do
    case files(origin, skill) do
      {:ok, files} -> Item.hash(files)
      {:error, _} -> skill.path
    end
  end

  # Folders

  defp walk(root) do
    {:ok, root |> walk("", {[], 0}) |> elem(0)}
  catch
    {:error, %PackageError{}} = error -> error
  end

  defp walk(root, below, done) do
    folder = Path.join(root, below)

    case :file.list_dir_all(folder) do
      {:ok, names} ->
        names
        |> Enum.map(&name/1)
        |> Enum.sort()
        |> Enum.reject(&(&1 in [".git", "node_modules"]))
        |> Enum.reduce(done, &visit(root, Path.join(below, &1), &2))

      {:error, reason} ->
        throw(PackageError.io(folder, reason))
    end
  end

  # A name that is not UTF-8 is returned as bytes; `Item.check/1` rejects it with its skill.
  defp name(name) when is_list(name), do: List.to_string(name)
  defp name(name), do: name

  defp visit(root, path, {items, count}) do
    if count > Item.max_source_entries(),
      do:
        throw(
          PackageError.new(
            :limit,
            root,
            "has more than #{Item.max_source_entries()} files and folders",
            "name a folder below it"
          )
        )

    full = Path.join(root, path)

    case File.lstat(full) do
      {:ok, %{type: :directory}} ->
        walk(root, path, {items, count + 1})

      {:ok, %{type: :regular, size: size, mode: mode}} ->
        {[
           %Item{
             path: path,
             type: :file,
             size: size,
             executable: Bitwise.band(mode, 0o111) != 0,
             content: full
           }
           | items
         ], count + 1}

      {:ok, %{type: :symlink}} ->
        {[%Item{path: path, type: :link} | items], count + 1}

      {:ok, _} ->
        {[%Item{path: path, type: :special} | items], count + 1}

      {:error, reason} ->
        throw(PackageError.io(full, reason))
    end
  end

  defp read_files(items) do
    UntilError.map(items, fn item ->
      with {:error, reason} <- ReadFile.read(item.content, @max_file_size),
           do: PackageError.io(item.content, reason)
    end)
  end

  # Archives

  # The server's content type is ignored: a download is checked like a local archive.
  defp read_archive("https://" <> _ = place, options) do
    options[:progress].("fetching #{place}")

    http =
      Keyword.merge(
        [redirects: @max_redirects, max_body: @max_archive_size, addresses: :public_redirects],
        options[:http] || []
      )

    case HTTP.request(place, http) do
      {:ok, %{status: 200, body: bytes}} ->
        {:ok, bytes}

      {:ok, %{status: status}} ->
        PackageError.new(
          :source,
          place,
          "could not be fetched: the server returned the status #{status}"
        )

      {:error, error} ->
        PackageError.new(:source, place, "could not be fetched: #{Exception.message(error)}")
    end
  end

  defp read_archive(place, _options) do
    case File.stat(place) do
      {:ok, %{size: size}} when size > @max_archive_size ->
        PackageError.new(
          :limit,
          place,
          "has #{size} bytes, and an archive may have #{@max_archive_size}",
          "unpack it and install from the folder"
        )

      _ ->
        with {:error, reason} <- ReadFile.read(place, @max_archive_size),
             do: PackageError.io(place, reason)
    end
  end

  defp unpack(place, bytes) do
    if String.ends_with?(String.downcase(place), ".zip"),
      do: Zip.read(bytes, place),
      else: Tar.read(bytes, place)
  end
end
