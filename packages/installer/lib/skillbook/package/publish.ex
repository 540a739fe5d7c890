defmodule Skillbook.Package.Publish do
  @moduledoc false
  # The entries of a view as skills of the Agent Skills Discovery format 0.2.0: the index, and the
  # artifact of each skill, which is its `SKILL.md` or, with more files, an archive. The server
  # makes them on demand; `run/4` writes them into a folder for any other server.

  alias Skillbook.Package.Archive.Pack
  alias Skillbook.Package.{Export, FolderLock, Installed, Item, Outcome, Push, Site, Skill}
  alias Skillbook.Support.{JSON, ReadFile, UntilError}
  alias Skillbook.{Document, Entry, PackageError, View}

  @schema "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
  @folder ".well-known/agent-skills"
  @index "index.json"
  @max_name 64
  @max_index_size 64 * 1024 * 1024
  # As for an installation.
  @max_archive_size 64 * 1024 * 1024

  @typedoc "A published skill; `path` is below the folder of the index."
  @type skill :: %{
          name: String.t(),
          entry: String.t(),
          type: String.t(),
          description: String.t(),
          path: String.t(),
          digest: String.t(),
          files?: boolean()
        }

  @doc "The URI that identifies the format of an index."
  def schema, do: @schema

  @doc """
  The skills of a view's entries, sorted by name, and the entries that cannot be published, with
  the reasons.
  """
  @spec skills(View.t(), [Entry.t()]) :: {[skill()], [{String.t(), Exception.t()}]}
  def skills(view, entries) do
    {skills, failed} =
      entries
      |> names()
      |> Enum.map(fn {name, entry} ->
        case artifact(view, entry, name) do
          {:ok, skill, _bytes} -> skill
          {:error, error} -> {entry.name, error}
        end
      end)
      |> Enum.split_with(&is_map/1)

    {Enum.sort_by(skills, & &1.name), failed}
  end

  @doc """
  The artifact of an entry under a name of `names/1`: its description, and its bytes.

  Its files must be such as may be installed, so that no published skill is refused elsewhere.
  """
  @spec artifact(View.t(), Entry.t(), String.t()) ::
          {:ok, skill(), binary()} | {:error, Exception.t()}
  def artifact(view, entry, name) do
    with {:ok, files} <- Export.files(view, entry, name),
         :ok <- check(files) do
      {type, path, bytes} = pack(files, name)

      skill = %{
        name: name,
        entry: entry.name,
        type: type,
        description: Export.description(entry),
        path: path,
        digest: digest(bytes),
        files?: type == "archive"
      }

      if byte_size(bytes) <= @max_archive_size,
        do: {:ok, skill, bytes},
        else: too_large(bytes)
    end
  end

  defp too_large(bytes) do
    reason = "has #{byte_size(bytes)} bytes, and may have #{@max_archive_size}"
    PackageError.new(:limit, "the archive", reason, "remove some of its files")
  end

  # The text of an entry is never too large.
  defp check([_page]), do: :ok

  defp check(files) do
    with {:error, error} <- files |> Enum.map(&elem(&1, 0)) |> Item.check() do
      reason = String.replace_suffix(error.reason, ", and nothing is installed", "")
      {:error, %{error | reason: reason <> ", so the skill could not be installed"}}
    end
  end

  defp pack([{_item, text}], name), do: {"skill-md", name <> "/SKILL.md", text}
  defp pack(files, name), do: {"archive", name <> ".tar.gz", Pack.tar_gz(files)}

  @doc "The digest of an artifact, as an index has it."
  @spec digest(binary()) :: String.t()
  def digest(bytes), do: "sha256:" <> Installed.digest(bytes)

  @doc """
  The text of an index. Its URLs are relative, so it may be served under any path.
  """
  @spec index([skill()]) :: String.t()
  def index(skills) do
    rows =
      for skill <- skills do
        row = Map.take(skill, [:name, :type, :description, :digest])
        [JSON.encode(Map.put(row, :url, skill.path)), "\n"]
      end

    IO.iodata_to_binary([
      ["{\"$schema\":", JSON.encode(@schema), ",\"skills\":[\n"],
      Enum.intersperse(rows, ","),
      "]}\n"
    ])
  end

  @doc """
  The names under which entries are published.

  The format's names are of small letters, digits and hyphens, so `email.send` becomes
  `email-send`. If several entries have the same such name, the one that has it already keeps it;
  the others get a part of their own name's hash.
  """
  @spec names([Entry.t()]) :: [{String.t(), Entry.t()}]
  def names(entries) do
    entries
    |> Enum.group_by(&(Skill.normalize(&1.name) || "skill"))
    |> Enum.flat_map(fn
      {name, [entry]} ->
        [{name, entry}]

      {name, several} ->
        for entry <- several,
            do: {if(entry.name == name, do: name, else: hashed(name, entry)), entry}
    end)
    |> Enum.sort_by(fn {name, entry} -> {name, entry.name != name} end)
    |> Enum.uniq_by(&elem(&1, 0))
  end

  defp hashed(name, entry) do
    hash = entry.name |> Installed.digest() |> binary_part(0, 12)
    start = name |> String.slice(0, @max_name - byte_size(hash) - 1) |> String.trim("-")
    start <> "-" <> hash
  end

  # Folders

  @doc "See `Skillbook.Package.publish/3`."
  def run(view, place, options) do
    with {:ok, entries} <- select(view, options[:names]) do
      if Site.address?(place),
        do: Push.run(view, entries, place, options),
        else: run(view, entries, Path.expand(place), options)
    end
  end

  defp run(view, entries, folder, options) do
    with root = Path.join(folder, @folder),
         :ok <- create(root) do
      FolderLock.run(root, options[:lock_timeout], fn -> write(view, entries, root, options) end)
    end
  end

  defp select(view, all) when all in [nil, :all],
    do: {:ok, Enum.filter(View.entries(view), &Export.own?/1)}

  defp select(view, names) do
    with {:ok, entries} <- UntilError.map(names, &View.fetch(view, &1)),
         do: {:ok, Enum.uniq_by(entries, & &1.name)}
  end

  defp create(root) do
    with {:error, reason} <- File.mkdir_p(root), do: PackageError.io(root, reason)
  end

  defp write(view, entries, root, options) do
    with {:ok, before} <- published(root, options[:force]) do
      {skills, failed} = skills(view, entries)
      results = for skill <- skills, do: {skill, put(view, skill, before, root, options)}
      stay = for {skill, {:error, _}} <- results, row = before[skill.name], do: row
      done = for {skill, {:ok, _}} <- results, do: skill
      gone = before |> Map.drop(Enum.map(done ++ stay, & &1.name)) |> Map.values()

      # The index comes after the artifacts that it names, and before others are deleted.
      with {:ok, _} <-
             Document.replace(root, @index, index(Enum.sort_by(done ++ stay, & &1.name))) do
        paths = MapSet.new(done ++ stay, & &1.path)
        for row <- Map.values(before), row.path not in paths, do: delete(root, row.path)

        outcomes =
          for({skill, result} <- results, do: Outcome.new(skill.name, outcome(result))) ++
            for({name, error} <- failed, do: Outcome.new(name, {:error, error})) ++
            for row <- gone, do: %Outcome{name: row.name, action: :removed}

        {:ok, Enum.sort_by(outcomes, & &1.name)}
      end
    end
  end

  defp outcome({:ok, action}), do: {:ok, action, nil, nil}
  defp outcome(error), do: error

  # Only files that the last index lists are replaced and deleted.
  defp put(view, skill, before, root, options) do
    path = Path.join(root, skill.path)
    old = before[skill.name]

    with {:ok, entry} <- View.fetch(view, skill.entry),
         {:ok, skill, bytes} <- artifact(view, entry, skill.name) do
      cond do
        Document.read(root, skill.path) == {:ok, bytes} ->
          {:ok, :unchanged}

        File.exists?(path) and (old == nil or old.path != skill.path) and not options[:force] ->
          PackageError.new(
            :exists,
            path,
            "already exists with other content",
            "publish into another folder, or replace it with --force"
          )

        true ->
          with {:ok, _} <- Document.replace(root, skill.path, bytes), do: {:ok, :published}
      end
    end
  end

  # A link in place of the folder of a skill would lead elsewhere.
  defp delete(root, path) do
    folder = Path.join(root, Path.dirname(path))

    with {:ok, %{type: :directory}} <- File.lstat(folder) do
      File.rm(Path.join(root, path))
      if Path.dirname(path) != ".", do: File.rmdir(folder)
    end
  end

  # The skills of an index that `index/1` wrote, by name.
  defp published(root, force) do
    path = Path.join(root, @index)

    with {:ok, text} <- ReadFile.read(path, @max_index_size),
         {:ok, %{"$schema" => @schema, "skills" => rows}} when is_list(rows) <- JSON.decode(text),
         true <- Enum.all?(rows, &row?/1) do
      {:ok,
       Map.new(rows, fn row ->
         fields = Map.new(~w(name type description digest)a, &{&1, row[to_string(&1)]})
         {row["name"], Map.merge(fields, %{path: row["url"], entry: nil, files?: false})}
       end)}
    else
      {:error, :enoent} ->
        {:ok, %{}}

      _other when force ->
        {:ok, %{}}

      _other ->
        PackageError.new(
          :exists,
          path,
          "is not an index that was written by `publish`",
          "publish into another folder, or replace it with --force"
        )
    end
  end

  defp row?(%{"name" => name, "url" => url, "type" => type, "digest" => digest} = row) do
    is_binary(name) and name?(name) and is_binary(row["description"]) and is_binary(digest) and
      type in ["skill-md", "archive"] and
      url == if(type == "archive", do: name <> ".tar.gz", else: name <> "/SKILL.md")
  end

  defp row?(_row), do: false

  @doc "Whether a text is a name of the format."
  @spec name?(String.t()) :: boolean()
  def name?(name), do: Skill.plain?(name)
end
