defmodule Skillbook.Package.Origin do
  @moduledoc false
  # What skills are installed from, opened: its files, whatever it is, and which of its folders are skills.

  alias Skillbook.Package.Archive.{Tar, Zip}
  alias Skillbook.Package.{Git, Item, Skill}
  alias Skillbook.{Frontmatter, HTTP, PackageError}

  @type t :: %__MODULE__{
          kind: :folder | :archive | :git,
          place: String.t(),
          asked: %{optional(:branch | :tag | :commit) => String.t()},
          commit: String.t() | nil,
          items: [Item.t()],
          read: ([Item.t()] -> {:ok, [binary()]} | {:error, PackageError.t()})
        }

  @enforce_keys [:kind, :place, :items, :read]
  defstruct [:kind, :place, :commit, :items, :read, asked: %{}]

  @archives [".zip", ".tar", ".tar.gz", ".tgz"]
  @largest_archive 64 * 1024 * 1024
  # Without a user name or a query, since the lock file records the address.
  @archive_address ~r{\Ahttps://[^@?#\s]+\.(?i:zip|tar|tar\.gz|tgz)\z}
  @redirects 5

  @doc "What a source is, and its name in the lock file: an absolute path or an address."
  @spec identify(String.t(), map()) ::
          {:ok, {:folder | :archive | :git, String.t()}} | {:error, PackageError.t()}
  def identify(source, asked) do
    path = Path.expand(source)

    cond do
      map_size(asked) > 1 ->
        PackageError.new(
          :option,
          source,
          "is asked for by #{Enum.map_join(asked, " and ", fn {k, _} -> "--#{k}" end)}",
          "write one of them"
        )

      source =~ @archive_address and asked == %{} ->
        {:ok, {:archive, source}}

      Git.address?(source) ->
        with :ok <- Git.check(source, asked), do: {:ok, {:git, source}}

      File.dir?(path) ->
        if asked != %{} or String.ends_with?(path, ".git") or Git.bare?(path),
          do: with(:ok <- Git.check(path, asked), do: {:ok, {:git, path}}),
          else: {:ok, {:folder, path}}

      asked != %{} ->
        PackageError.new(
          :option,
          source,
          "is no git repository, and has no branches, tags or commits"
        )

      File.regular?(path) and String.ends_with?(String.downcase(path), @archives) ->
        {:ok, {:archive, path}}

      File.exists?(path) ->
        PackageError.new(
          :source,
          source,
          "is no folder and none of the archives that are read",
          "these end in #{Enum.join(@archives, ", ")}"
        )

      true ->
        PackageError.new(
          :source,
          source,
          "does not exist",
          "name a folder, an archive (#{Enum.join(@archives, ", ")}), the https address of one, or a git repository, " <>
            "such as https://example.com/skills.git"
        )
    end
  end

  @doc """
  Opens a source, calls the function with it, and takes away what was fetched for it. Of the options of
  `Skillbook.Package`, `:progress` and `:http` count.
  """
  @spec open({atom(), String.t()}, map(), keyword(), (t() -> result)) ::
          result | {:error, PackageError.t()}
        when result: term()
  def open({:folder, place}, _asked, options, fun) do
    tell(options, "reading #{place}")

    with {:ok, items} <- walk(place),
         do: fun.(%__MODULE__{kind: :folder, place: place, items: items, read: &read_files/1})
  end

  def open({:archive, place}, _asked, options, fun) do
    with {:ok, bytes} <- read_archive(place, options),
         tell(options, "unpacking #{place}"),
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
    folder =
      Path.join(
        System.tmp_dir!(),
        "skillbook-#{System.pid()}-#{System.unique_integer([:positive])}"
      )

    try do
      File.mkdir!(folder)
      File.chmod!(folder, 0o700)
      tell(options, "fetching #{place}")

      with {:ok, commit} <- Git.fetch(folder, place, asked, &tell(options, &1)),
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
    after
      File.rm_rf(folder)
    end
  end

  defp tell(options, text), do: Keyword.get(options, :progress, fn _ -> :ok end).(text)

  @doc """
  The skills in it, by path: the folders with a `SKILL.md`. A folder below a skill is a part of that skill; only what a
  skill at the very top has below it may be skills of their own. Of skills that are the same, as when one is kept for several
  programs, the one with the shortest path is taken.
  """
  @spec skills(t(), String.t()) :: {:ok, [Skill.t()]} | {:error, PackageError.t()}
  def skills(origin, below) do
    items = Enum.filter(origin.items, &below?(&1.path, below))

    pages =
      Enum.filter(
        items,
        &(Path.basename(&1.path) == "SKILL.md" and &1.type == :file and &1.size <= 1024 * 1024)
      )

    folders = pages |> Enum.map(&folder(&1.path)) |> outermost()
    pages = Enum.filter(pages, &(folder(&1.path) in folders))

    with {:ok, texts} <- origin.read.(pages) do
      owned = own(items, folders)

      skills =
        for {page, text} <- Enum.zip(pages, texts) do
          path = folder(page.path)
          skill(origin, path, Map.get(owned, path, []), text)
        end

      {:ok, without_copies(skills, origin)}
    end
  end

  @doc "The bytes of a skill's files, after their kinds, names and sizes were checked."
  @spec files(t(), Skill.t()) :: {:ok, [{Item.t(), binary()}]} | {:error, PackageError.t()}
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

  defp below?(_path, ""), do: true
  defp below?(path, below), do: String.starts_with?(path, below <> "/")

  defp folder(path), do: if(Path.dirname(path) == ".", do: "", else: Path.dirname(path))

  defp outermost(folders) do
    known = folders |> MapSet.new() |> MapSet.delete("")
    Enum.reject(folders, fn folder -> Enum.any?(above(folder), &(&1 in known)) end)
  end

  # The folders above one, up to the top.
  defp above(""), do: []
  defp above(path), do: [folder(path) | above(folder(path))]

  # Each file belongs to the nearest skill above it.
  defp own(items, folders) do
    known = MapSet.new(folders)

    items
    |> Enum.group_by(fn item -> Enum.find(above(item.path), &(&1 in known)) end)
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

  # Only skills of one name are read for it.
  defp without_copies(skills, origin) do
    skills
    |> Enum.sort_by(&{String.length(&1.path), &1.path})
    |> Enum.group_by(& &1.name)
    |> Enum.flat_map(fn
      {_name, [skill]} -> [skill]
      {_name, several} -> Enum.uniq_by(several, &content(&1, origin))
    end)
    |> Enum.sort_by(& &1.path)
  end

  defp content(skill, origin) do
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

  # A name that is not UTF-8 comes as bytes, and is refused later with its skill.
  defp name(name) when is_list(name), do: List.to_string(name)
  defp name(name), do: name

  defp visit(root, path, {items, count}) do
    if count > Item.count(),
      do:
        throw(
          PackageError.new(
            :limit,
            root,
            "has more than #{Item.count()} files and folders",
            "name a folder below it"
          )
        )

    whole = Path.join(root, path)

    case File.lstat(whole) do
      {:ok, %{type: :directory}} ->
        walk(root, path, {items, count + 1})

      {:ok, %{type: :regular, size: size, mode: mode}} ->
        {[
           %Item{
             path: path,
             type: :file,
             size: size,
             executable: Bitwise.band(mode, 0o111) != 0,
             content: whole
           }
           | items
         ], count + 1}

      {:ok, %{type: :symlink}} ->
        {[%Item{path: path, type: :link} | items], count + 1}

      {:ok, _} ->
        {[%Item{path: path, type: :special} | items], count + 1}

      {:error, reason} ->
        throw(PackageError.io(whole, reason))
    end
  end

  defp read_files(items) do
    Skillbook.Support.Options.each(items, fn item ->
      with {:error, reason} <- read_file(item.content), do: PackageError.io(item.content, reason)
    end)
  end

  # No more than the limit, should it have grown since it was looked at.
  defp read_file(path) do
    with {:ok, file} <- :file.open(path, [:read, :raw, :binary]) do
      result = :file.read(file, Item.largest() + 1)
      :file.close(file)

      case result do
        :eof -> {:ok, ""}
        {:ok, bytes} when byte_size(bytes) > 16_777_216 -> {:error, :efbig}
        other -> other
      end
    end
  end

  # Archives

  # Its content is checked like that of a file, whatever the server says of it.
  defp read_archive("https://" <> _ = place, options) do
    tell(options, "fetching #{place}")

    http =
      Keyword.merge([redirects: @redirects, max_body: @largest_archive], options[:http] || [])

    case HTTP.request(place, http) do
      {:ok, %{status: 200, body: bytes}} ->
        {:ok, bytes}

      {:ok, %{status: status}} ->
        PackageError.new(
          :source,
          place,
          "could not be fetched: the server answers with the status #{status}"
        )

      {:error, error} ->
        PackageError.new(:source, place, "could not be fetched: #{Exception.message(error)}")
    end
  end

  defp read_archive(place, _options) do
    case File.stat(place) do
      {:ok, %{size: size}} when size > @largest_archive ->
        PackageError.new(
          :limit,
          place,
          "has #{size} bytes, and an archive may have #{@largest_archive}",
          "unpack it and install from the folder"
        )

      _ ->
        with {:error, reason} <- File.read(place), do: PackageError.io(place, reason)
    end
  end

  defp unpack(place, bytes) do
    if String.ends_with?(String.downcase(place), ".zip"),
      do: Zip.read(bytes, place),
      else: Tar.read(bytes, place)
  end
end
