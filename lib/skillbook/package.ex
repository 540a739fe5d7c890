defmodule Skillbook.Package do
  @moduledoc """
  Skills in and out: exports entries as folders in the Agent Skills format, and installs such folders of other people's.

  A skill is installed from a folder, an archive (`.zip`, `.tar`, `.tar.gz`, `.tgz`; a file or an https address) or a git
  repository into a folder of
  skills, which a book then reads as `{:installed, folder}` (`Skillbook.Source.list/1`). `skills.lock.json` in that folder
  says of each where it is from, its commit, its content's hash, and what was accepted of it. Nothing of it is ever run.

  Each skill is installed whole or not at all, and nothing is written outside the folder. What it can do is looked at
  (`Skillbook.Package.Inspection`) and must be accepted when it is new or has grown. [In and out](packages.md) has the rules.

  ## Options

    * `:to` - the folder of installed skills; `.agents/skills` below the current folder if it is left out
    * `:names` - which skills: a list of names, or `:all`. `install/2` needs it if the source has several
    * `:branch`, `:tag`, `:commit` - which state of a git repository, at most one of them; the repository's own choice without
    * `:path` - a folder below the source in which skills are looked for
    * `:accept` - a function that is asked with a `Skillbook.Package.Question` and answers whether it is accepted; nothing is if it
      is left out
    * `:strict` - whether a skill must pass the Agent Skills format's own check; `false` if it is left out
    * `:force` - whether what is in the way or was changed by hand is replaced; `false` if it is left out
    * `:progress` - a function that is called with a line of text on what is being done
    * `:patience` - how long another process may be at work in the folder, in milliseconds; 10,000 if it is left out
    * `:http` - options of `Skillbook.HTTP.request/2` for archives that are fetched, such as `:adapter` or `:cacertfile`
    * `:now` - the time that the lock file says, a `DateTime`

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook-package-\#{System.unique_integer([:positive])}")
      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, path} = Skillbook.Package.export(view, "pdf-processing", folder)
      iex> Path.relative_to(path, folder)
      "pdf-processing"
      iex> to = Path.join(folder, "installed")
      iex> {:ok, [outcome]} = Skillbook.Package.install(path, to: to, accept: fn question -> question.new end)
      iex> {outcome.name, outcome.action}
      {"pdf-processing", :installed}
      iex> {:ok, [outcome]} = Skillbook.Package.remove(["pdf-processing"], to: to)
      iex> outcome.action
      :removed
      iex> File.rm_rf!(folder)
      iex> :ok
      :ok
  """

  alias Skillbook.Support.{Diff, Options}

  alias Skillbook.{
    Document,
    Entry,
    Frontmatter,
    Lint,
    OptionError,
    PackageError,
    Schedule,
    Store,
    StoreError,
    Stored,
    UnknownSkillError,
    View
  }

  alias Skillbook.Package.{
    FolderLock,
    Git,
    Inspection,
    Installed,
    Item,
    LockFile,
    Origin,
    Outcome,
    Question,
    Skill
  }

  @to ".agents/skills"
  @patience 10_000
  @longest_description 1024

  @doc """
  Writes an entry as a folder in the Agent Skills format below `folder`, and gives its path.

  The folder has the entry's name, in small letters, digits and hyphens. `SKILL.md` has the fields of the format; a title,
  tags, an author, a version, a schedule and its time zone go into `metadata`. A note without a description gets its title. The skill's other files
  stand beside it. Visibility labels are left out, for the format has none: whoever gets the folder may read it. Something
  else of that name is an error, but for the same export.

  ## Options

    * `:force` - whether what is there is replaced; `false` if it is left out
  """
  @spec export(View.t(), String.t(), Path.t(), keyword()) ::
          {:ok, Path.t()}
          | {:error, UnknownSkillError.t() | PackageError.t() | Skillbook.DocumentError.t()}
  def export(%View{} = view, name, folder, options \\ []) do
    validate!(options, [:force])
    folder = Path.expand(folder)

    with {:ok, entry} <- View.fetch(view, name),
         {:ok, files} <- own_files(entry) do
      name = Skill.normalize(entry.name) || "skill"
      page = %Item{path: "SKILL.md", type: :file}
      files = [{page, page(entry, name)} | files]

      with :ok <- folder |> File.mkdir_p() |> made(folder),
           do: FolderLock.take(folder, @patience, fn -> write(folder, name, files, options) end)
    end
  end

  defp write(folder, name, files, options) do
    Installed.recover(folder)

    as_entry = %{
      "files" => Map.new(files, fn {item, bytes} -> {item.path, Installed.digest(bytes)} end)
    }

    case Installed.compare(folder, name, as_entry) do
      :same ->
        {:ok, Path.join(folder, name)}

      other ->
        if other == :missing or options[:force] do
          with :ok <- Installed.put(folder, name, files, :no_entry),
               do: {:ok, Path.join(folder, name)}
        else
          PackageError.new(
            :exists,
            Path.join(folder, name),
            "is there already, and is something else",
            "name another folder, or replace it with --force"
          )
        end
    end
  end

  defp own_files(%Entry{files: files, path: path}) do
    root = Path.dirname(path)

    Options.each(files, fn file ->
      with {:ok, bytes} <- Document.read(root, file) do
        executable =
          match?(
            {:ok, %{mode: mode}} when Bitwise.band(mode, 0o111) != 0,
            File.stat(Path.join(root, file))
          )

        {:ok,
         {%Item{path: file, type: :file, executable: executable, size: byte_size(bytes)}, bytes}}
      end
    end)
  end

  defp page(entry, name) do
    fields = [
      {"name", name},
      {"description", description(entry)},
      {"license", entry.license},
      {"compatibility", entry.compatibility},
      {"allowed-tools", if(entry.allowed_tools != [], do: Enum.join(entry.allowed_tools, " "))},
      {"metadata", metadata(entry)}
    ]

    body =
      if entry.body == "" or String.ends_with?(entry.body, "\n"),
        do: entry.body,
        else: entry.body <> "\n"

    Frontmatter.write(Enum.reject(fields, fn {_, value} -> value in [nil, %{}] end), body)
  end

  defp description(entry) do
    text = Enum.find([entry.description, entry.title, entry.name], &(&1 not in [nil, ""]))

    if String.length(text) > @longest_description,
      do: String.slice(text, 0, @longest_description - 1) <> "…",
      else: text
  end

  defp metadata(entry) do
    more =
      for key <- ["author", "version", "schedule", "timezone"],
          value = entry.data[key],
          is_binary(value) or is_number(value),
          into: %{},
          do: {key, to_string(value)}

    more = if entry.title, do: Map.put(more, "title", entry.title), else: more
    more = if entry.tags != [], do: Map.put(more, "tags", Enum.join(entry.tags, ", ")), else: more
    Map.merge(more, entry.metadata)
  end

  @doc "The skills of a source, by path. Of the options above `:branch`, `:tag`, `:commit`, `:path` and `:progress` count."
  @spec find(String.t(), keyword()) :: {:ok, [Skill.t()]} | {:error, PackageError.t()}
  def find(source, options \\ []) do
    validate!(options)

    open(source, options, fn origin ->
      with {:ok, skills} <- Origin.skills(origin, below(options)),
           do: {:ok, Enum.map(skills, &%{&1 | items: []})}
    end)
  end

  @doc "Installs skills of a source; those that are installed from there already are updated."
  @spec install(String.t(), keyword()) :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def install(source, options \\ []) do
    validate!(options)

    open(source, options, fn origin ->
      with {:ok, skills} <- Origin.skills(origin, below(options)),
           {:ok, chosen} <- choose(skills, options[:names], origin.place),
           {:ok, entries} <- begin(options) do
        outcomes =
          for {skill, number} <- Enum.with_index(chosen, 1) do
            tell(options, "#{skill.name} (#{number} of #{length(chosen)})")
            outcome(skill.name, put(origin, skill, entries[skill.name], options))
          end

        {:ok, outcomes}
      end
    end)
  end

  @doc """
  Writes skills of a source into the store of the view's book, each as a skill of the store `by: :import`, which has low trust.

  The name is the skill's folder's; title, tags and schedule are those that `export/4` writes; what was
  imported never runs by its schedule. Other fields of the format are left out. A
  skill with files beside its `SKILL.md` is an error, for the store keeps none: install it. So is one whose name is
  taken in the store, without `:force`; with it, it becomes a new version of that entry. Of the options above all but `:to` and
  `:patience` count, and

    * `:labels` - the visibility labels of what is new, which the profile must hold; `["imported"]` if it is left out
  """
  @spec into_store(View.t(), String.t(), keyword()) ::
          {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def into_store(%View{} = view, source, options \\ []) do
    {labels, options} = Keyword.pop(options, :labels, ["imported"])
    validate!(options)

    open(source, options, fn origin ->
      with {:ok, skills} <- Origin.skills(origin, below(options)),
           {:ok, chosen} <- choose(skills, options[:names], origin.place) do
        outcomes =
          for skill <- chosen do
            tell(options, skill.name)
            outcome(skill.name, record(origin, skill, view, labels, options))
          end

        {:ok, outcomes}
      end
    end)
  end

  defp record(origin, skill, view, labels, options) do
    with :ok <- sound(skill),
         {:ok, files} <- in_skill(skill, Origin.files(origin, skill)),
         {:ok, page} <- alone(skill, files),
         {:ok, question} <- question(origin, skill, files, nil, nil),
         :ok <- strict(question, options),
         :ok <- accepted(question, options),
         {:ok, action} <- keep(view, skill, page, labels, options),
         do: {:ok, action, origin.commit, question}
  end

  defp keep(view, skill, page, labels, options) do
    metadata = with %{} = metadata <- page.data["metadata"], do: metadata, else: (_ -> %{})

    tags =
      with tags when is_binary(tags) <- metadata["tags"],
           do: String.split(tags, [",", " "], trim: true)

    title = with nil <- metadata["title"], do: skill.title

    fields =
      Map.merge(%{title: title, description: skill.description, tags: tags}, times(metadata))

    as = [by: :import] ++ Keyword.take(options, [:now])
    new = Map.merge(fields, %{name: skill.name, content: page.body, labels: labels})

    with {:error, %StoreError{kind: :exists}} = error <- Store.create(view, new, as) do
      if options[:force],
        do: Store.update(view, skill.name, Map.put(fields, :edit, {:replace, page.body}), as),
        else: error
    end
    |> case do
      {:ok, %Stored{}} -> {:ok, :imported}
      {:ok, %{entry: same, before: same}} -> {:ok, :unchanged}
      {:ok, _} -> {:ok, :updated}
      error -> error
    end
  end

  defp times(%{"schedule" => schedule} = metadata) when is_binary(schedule) do
    timezone = with text when not is_binary(text) <- metadata["timezone"], do: nil

    case Schedule.parse(schedule, timezone || "UTC") do
      {:ok, _} -> %{schedule: schedule, timezone: timezone}
      {:error, _} -> times(%{})
    end
  end

  defp times(_metadata), do: %{schedule: ""}

  defp alone(_skill, [{_item, page}]), do: Frontmatter.parse(page)

  defp alone(skill, files) do
    others = for {%{path: path}, _} <- files, path != "SKILL.md", do: path
    shown = others |> Enum.take(5) |> Enum.join(", ")

    PackageError.new(
      :skill,
      skill.title,
      "has #{if match?([_], others), do: "1 file", else: "#{length(others)} files"} beside its SKILL.md, which the store does not keep: #{shown}",
      "use `install`, which keeps them"
    )
  end

  @doc """
  Brings installed skills, or those of `names`, to what their sources have now: the branch that was asked for, the folder
  or archive. A tag may have moved; a commit stays what it is.
  """
  @spec update([String.t()], keyword()) :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def update(names \\ [], options \\ []) do
    validate!(options)

    each_source(names, options, &LockFile.asked/1, fn origin, name, entry ->
      with {:ok, skill} <- again(origin, name, entry), do: put(origin, skill, entry, options)
    end)
  end

  @doc """
  Brings the folder, or the skills of `names`, to what the lock file says: what is missing is fetched at the locked commit
  and must have the locked hash. A skill that was changed by hand is an error without `:force`.
  """
  @spec restore([String.t()], keyword()) :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def restore(names \\ [], options \\ []) do
    validate!(options)
    to = to(options)

    with {:ok, entries} <- chosen(names, options) do
      {same, other} =
        Enum.split_with(entries, fn {name, entry} ->
          Installed.compare(to, name, entry) == :same
        end)

      done =
        for {name, entry} <- same,
            do: %Outcome{name: name, action: :unchanged, commit: entry["commit"]}

      {by_hand, missing} =
        Enum.split_with(other, fn {name, entry} ->
          not (options[:force] || false) and Installed.compare(to, name, entry) != :missing
        end)

      refused =
        for {name, entry} <- by_hand,
            do: outcome(name, unchanged_by_hand(to, name, entry, options))

      # A commit stays what it is, whatever the branch is at.
      asked = fn entry -> if entry["kind"] == "git", do: %{commit: entry["commit"]}, else: %{} end
      restored = sources(missing, options, asked, &put_back(&1, &2, &3, options))
      {:ok, Enum.sort_by(done ++ refused ++ restored, & &1.name)}
    end
  end

  @doc "Takes installed skills away; one that was changed by hand only with `:force`."
  @spec remove([String.t()], keyword()) :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def remove(names, options \\ []) do
    validate!(options)
    to = to(options)

    with {:ok, entries} <- chosen(names, options) do
      outcomes =
        for {name, entry} <- entries do
          removed =
            locked(to, options, name, entry, fn ->
              with :ok <- unchanged_by_hand(to, name, entry, options),
                   :ok <- Installed.delete(to, name),
                   do: {:ok, :removed, nil, nil}
            end)

          outcome(name, removed)
        end

      {:ok, outcomes}
    end
  end

  @doc """
  What is installed, and how it stands: `:current`, `:outdated` (its source has something else now), `:pinned` (to a commit), `:changed`
  (by hand) or `:failed` (the source cannot be reached, or the folder is missing).

  Of a git repository it compares commits, which may differ although the skill is the same.
  """
  @spec outdated([String.t()], keyword()) :: {:ok, [Outcome.t()]} | {:error, PackageError.t()}
  def outdated(names \\ [], options \\ []) do
    validate!(options)
    to = to(options)

    with {:ok, entries} <- chosen(names, options) do
      newest = newest(entries, options)

      outcomes =
        for {name, entry} <- entries do
          now = newest[{entry["source"], LockFile.asked(entry)}]

          case {Installed.compare(to, name, entry), LockFile.asked(entry)} do
            {:missing, _} ->
              outcome(
                name,
                PackageError.new(
                  :unknown,
                  name,
                  "is in the lock file, but not in the folder",
                  "bring it back with `restore`"
                )
              )

            {{:changed, changes}, _} ->
              %Outcome{name: name, action: :changed, commit: entry["commit"], changes: changes}

            {:same, %{commit: commit}} ->
              %Outcome{name: name, action: :pinned, commit: commit}

            {:same, _} ->
              stands(name, entry, now, options)
          end
        end

      {:ok, outcomes}
    end
  end

  @doc "The entries of the lock file by name: maps with string keys, as the file has them."
  @spec installed(Path.t()) :: {:ok, %{String.t() => map()}} | {:error, PackageError.t()}
  def installed(folder \\ @to), do: folder |> Path.expand() |> LockFile.read()

  # Sources

  defp open(source, options, fun) do
    asked = options |> Keyword.take([:branch, :tag, :commit]) |> Map.new()

    with {:ok, identity} <- Origin.identify(source, asked),
         do: Origin.open(identity, asked, options, fun)
  end

  defp below(options),
    do: options |> Keyword.get(:path, "") |> String.trim("/") |> String.replace_prefix("./", "")

  defp choose([], _names, place) do
    PackageError.new(
      :skills,
      place,
      "has no skill: a folder with a SKILL.md",
      "name the folder below it that has them with --path"
    )
  end

  defp choose([skill], nil, _place), do: {:ok, [skill]}

  defp choose(skills, nil, place),
    do:
      PackageError.new(
        :skills,
        place,
        "has #{length(skills)} skills",
        "name those that you want, or take all of them with --all: #{names(skills)}"
      )

  defp choose(skills, :all, place),
    do: skills |> Enum.group_by(& &1.name) |> Map.keys() |> then(&choose(skills, &1, place))

  defp choose(skills, names, place) do
    Options.each(names, fn name ->
      case Enum.filter(
             skills,
             &(name in [&1.name, &1.title] or (&1.path != "" and &1.path == name))
           ) do
        [skill] ->
          {:ok, skill}

        [] ->
          PackageError.new(
            :skills,
            place,
            "has no skill #{inspect(name)}",
            "it has #{names(skills)}"
          )

        several ->
          paths = Enum.map_join(several, ", ", &if(&1.path == "", do: ".", else: &1.path))

          PackageError.new(
            :skills,
            place,
            "has #{length(several)} different skills of the name #{name}",
            "name one of their paths: #{paths}"
          )
      end
    end)
  end

  defp names(skills),
    do: skills |> Enum.map(& &1.name) |> Enum.uniq() |> Enum.sort() |> Enum.join(", ")

  # For each of the names, grouped so that a source is opened once.
  defp each_source(names, options, asked, fun) do
    with {:ok, entries} <- chosen(names, options),
         do: {:ok, sources(entries, options, asked, fun)}
  end

  defp sources(entries, options, asked, fun) do
    entries
    |> Enum.group_by(fn {_name, entry} -> {LockFile.origin(entry), asked.(entry)} end)
    |> Enum.flat_map(fn {{from, asked}, group} ->
      opened =
        Origin.open(from, asked, options, fn origin ->
          for {name, entry} <- group do
            tell(options, name)
            outcome(name, fun.(origin, name, entry))
          end
        end)

      with {:error, _} = error <- opened, do: for({name, _} <- group, do: outcome(name, error))
    end)
    |> Enum.sort_by(& &1.name)
  end

  # The same skill of its source, now.
  defp again(origin, name, entry) do
    with {:ok, at_path} <- Origin.skills(origin, entry["path"]),
         nil <- Enum.find(at_path, &(&1.path == entry["path"])),
         {:ok, all} <- Origin.skills(origin, ""),
         nil <- Enum.find(all, &(&1.name == name)) do
      PackageError.new(
        :skills,
        origin.place,
        "has no skill #{name} any more",
        "keep it as it is, or take it away with `remove`"
      )
    else
      %Skill{} = skill -> {:ok, %{skill | name: name}}
      error -> error
    end
  end

  # Putting

  defp put(origin, skill, entry, options) do
    to = to(options)

    with :ok <- sound(skill),
         {:ok, files} <- in_skill(skill, Origin.files(origin, skill)),
         :ok <- same_source(origin, skill, entry, to, options),
         :ok <- unchanged_by_hand(to, skill.name, entry, options) do
      hash = Item.hash(files)

      if entry && entry["hash"] == hash && Installed.compare(to, skill.name, entry) == :same do
        new_commit(origin, skill, entry, options)
      else
        asked_and_put(origin, skill, files, hash, entry, options)
      end
    end
  end

  defp asked_and_put(origin, skill, files, hash, entry, options) do
    to = to(options)

    with {:ok, question} <- question(origin, skill, files, entry, to),
         :ok <- strict(question, options),
         :ok <- accepted(question, options) do
      inspection = question.inspection
      new = entry(origin, skill, files, hash, inspection, options)

      locked(to, options, skill.name, entry, fn ->
        with :ok <- same_source(origin, skill, entry, to, options),
             :ok <- unchanged_by_hand(to, skill.name, entry, options),
             :ok <- Installed.put(to, skill.name, files, new),
             do: {:ok, if(entry, do: :updated, else: :installed), origin.commit, question}
      end)
    end
  end

  # The skill is as it was, but it is asked for in another way now, or its branch has gone on.
  defp new_commit(origin, skill, entry, options) do
    new =
      entry
      |> Map.drop(["branch", "tag", "asked_commit", "commit"])
      |> Map.merge(place(origin, skill))

    if new == entry do
      {:ok, :unchanged, origin.commit, nil}
    else
      locked(to(options), options, skill.name, entry, fn ->
        with :ok <- LockFile.put(to(options), skill.name, new),
             do: {:ok, :unchanged, origin.commit, nil}
      end)
    end
  end

  defp put_back(origin, name, entry, options) do
    to = to(options)

    with {:ok, skill} <- again(origin, name, entry),
         {:ok, files} <- in_skill(skill, Origin.files(origin, skill)),
         :ok <- same_hash(name, Item.hash(files), entry) do
      locked(to, options, name, entry, fn ->
        with :ok <- unchanged_by_hand(to, name, entry, options),
             :ok <- Installed.put(to, name, files, entry),
             do: {:ok, :restored, entry["commit"], nil}
      end)
    end
  end

  defp same_hash(_name, hash, %{"hash" => hash}), do: :ok

  defp same_hash(name, hash, entry) do
    PackageError.new(
      :hash,
      name,
      "is not what was installed: #{entry["source"]} has content with the hash #{hash}, and the lock file says #{entry["hash"]}",
      "look at what changed and take it with `update`"
    )
  end

  defp sound(%{problem: nil}), do: :ok
  defp sound(%{problem: problem, title: title}), do: PackageError.new(:skill, title, problem)

  # Which skill a file is in that speaks against it.
  defp in_skill(_skill, {:ok, files}), do: {:ok, files}
  defp in_skill(%{path: ""}, error), do: error

  defp in_skill(%{path: path}, {:error, %{place: "the skill"} = error}),
    do: {:error, %{error | place: path}}

  defp in_skill(%{path: path}, {:error, %{kind: :io} = error}) when path != "",
    do: {:error, error}

  defp in_skill(%{path: path}, {:error, error}),
    do: {:error, %{error | place: path <> "/" <> error.place}}

  # Nobody's folder is taken for an older state of this skill.
  defp same_source(origin, skill, entry, to, options) do
    path = Path.join(to, skill.name)

    cond do
      options[:force] ->
        :ok

      entry == nil and match?({:ok, _}, File.lstat(path)) ->
        PackageError.new(
          :exists,
          path,
          "is there already, and was not installed",
          "move it away, or replace it with --force"
        )

      entry != nil and LockFile.origin(entry) != {origin.kind, origin.place} ->
        PackageError.new(
          :exists,
          skill.name,
          "is installed from #{entry["source"]}",
          "remove that first, or replace it with --force"
        )

      true ->
        :ok
    end
  end

  defp unchanged_by_hand(_to, _name, nil, _options), do: :ok

  defp unchanged_by_hand(to, name, entry, options) do
    case Installed.compare(to, name, entry) do
      {:changed, changes} ->
        if options[:force] do
          :ok
        else
          shown =
            changes |> Enum.take(5) |> Enum.map_join(", ", fn {how, path} -> "#{path} #{how}" end)

          more = if length(changes) > 5, do: " and #{length(changes) - 5} more", else: ""

          PackageError.new(
            :changed,
            name,
            "was changed by hand (#{shown}#{more})",
            "keep a copy of it, then replace it with --force"
          )
        end

      _ ->
        :ok
    end
  end

  defp question(origin, skill, files, entry, to) do
    inspection = Inspection.of(files)
    new = entry == nil or LockFile.origin(entry) != {origin.kind, origin.place}
    grown = Inspection.grown(inspection, if(new, do: [], else: entry["accepted"]))

    {:ok,
     %Question{
       name: skill.name,
       description: skill.description,
       source: origin.place,
       commit: origin.commit,
       new: new,
       inspection: inspection,
       grown: grown,
       diffs: if(new, do: [], else: diffs(files, grown, to, skill.name)),
       diagnostics: diagnostics(skill.name, files)
     }}
  end

  defp diffs(files, grown, to, name) do
    for path <- grown |> Enum.map(& &1.file) |> Enum.uniq(),
        old = Installed.text(to, name, path),
        {_, new} <- [Enum.find(files, fn {item, _} -> item.path == path end)],
        String.valid?(new),
        do: {path, old |> Diff.unified(new) |> String.split("\n", trim: true)}
  end

  # The pages alone, where nobody else looks, under the name that the skill will have.
  defp diagnostics(name, files) do
    scratch =
      Path.join(
        System.tmp_dir!(),
        "skillbook-lint-#{System.pid()}-#{System.unique_integer([:positive])}"
      )

    root = Path.join(scratch, name)

    try do
      for {item, bytes} <- files, String.ends_with?(String.downcase(item.path), ".md") do
        path = Path.join(root, item.path)
        File.mkdir_p!(Path.dirname(path))
        File.write!(path, bytes, [:exclusive])
      end

      for one <- Lint.run([scratch], strict: true),
          one.severity != :info,
          do: %{one | path: Path.relative_to(one.path, root)}
    after
      File.rm_rf(scratch)
    end
  end

  defp strict(question, options) do
    case options[:strict] && Enum.filter(question.diagnostics, &(&1.severity == :error)) do
      [first | _] ->
        PackageError.new(
          :skill,
          question.name,
          "does not pass the check: #{first.message}",
          "install it without --strict, or ask its author to mend it"
        )

      _ ->
        :ok
    end
  end

  defp accepted(%{new: false, grown: []}, _options), do: :ok

  defp accepted(question, options) do
    if Keyword.get(options, :accept, fn _ -> false end).(question) do
      :ok
    else
      what = if question.new, do: "was not accepted", else: "can do more than what was accepted"

      {:error,
       %PackageError{
         kind: :not_accepted,
         place: question.name,
         reason: what,
         hint: "read what it can do, then accept it with --yes"
       }}
      |> with_question(question)
    end
  end

  defp with_question({:error, error}, question), do: {:error, error, question}

  defp entry(origin, skill, files, hash, inspection, options) do
    Map.merge(place(origin, skill), %{
      "hash" => hash,
      "installed" =>
        options
        |> Keyword.get_lazy(:now, &DateTime.utc_now/0)
        |> DateTime.truncate(:second)
        |> DateTime.to_iso8601(),
      "executable" => for({item, _} <- files, item.executable, do: item.path),
      "files" => Map.new(files, fn {item, bytes} -> {item.path, Installed.digest(bytes)} end),
      "accepted" => Inspection.keys(inspection)
    })
  end

  defp place(origin, skill) do
    said = %{
      "kind" => to_string(origin.kind),
      "source" => origin.place,
      "branch" => origin.asked[:branch],
      "tag" => origin.asked[:tag],
      "asked_commit" => origin.asked[:commit],
      "commit" => origin.commit,
      "path" => skill.path
    }

    for {key, value} <- said, value != nil, into: %{}, do: {key, value}
  end

  # The folder

  # Ends what a killed process left, then says what is installed.
  defp begin(options) do
    to = to(options)

    with :ok <- to |> File.mkdir_p() |> made(to),
         :ok <- FolderLock.take(to, patience(options), fn -> Installed.recover(to) end),
         do: LockFile.read(to)
  end

  # Nobody was asked while others waited; so what was looked at must be as it was.
  defp locked(to, options, name, entry, fun) do
    FolderLock.take(to, patience(options), fn ->
      with {:ok, entries} <- LockFile.read(to) do
        if entries[name] == entry,
          do: fun.(),
          else:
            PackageError.new(
              :busy,
              name,
              "was changed by another process meanwhile",
              "look at it, then run this again"
            )
      end
    end)
  end

  defp chosen(names, options) do
    to = to(options)

    with {:ok, entries} <- if(File.dir?(to), do: begin(options), else: {:ok, %{}}) do
      case {names, Enum.find(names, &(not Map.has_key?(entries, &1)))} do
        {[], nil} ->
          {:ok, Enum.sort(entries)}

        {names, nil} ->
          {:ok, entries |> Map.take(names) |> Enum.sort()}

        {_, name} ->
          PackageError.new(:unknown, name, "is not installed in #{to}", installed_are(entries))
      end
    end
  end

  defp installed_are(entries) when entries == %{}, do: "nothing is"

  defp installed_are(entries),
    do: "installed are #{entries |> Map.keys() |> Enum.sort() |> Enum.join(", ")}"

  defp newest(entries, options) do
    for {place, asked} <-
          Enum.uniq(
            for(
              {_, %{"kind" => "git"} = entry} <- entries,
              do: {entry["source"], LockFile.asked(entry)}
            )
          ),
        into: %{} do
      tell(options, "asking #{place}")
      {{place, asked}, Git.newest(place, asked)}
    end
  end

  defp stands(name, %{"kind" => "git"} = entry, now, _options) do
    case now do
      {:ok, commit} ->
        %Outcome{
          name: name,
          action: if(commit == entry["commit"], do: :current, else: :outdated),
          commit: commit
        }

      error ->
        outcome(name, error)
    end
  end

  defp stands(name, entry, _now, options) do
    hash =
      Origin.open(LockFile.origin(entry), %{}, options, fn origin ->
        with {:ok, skill} <- again(origin, name, entry),
             {:ok, files} <- Origin.files(origin, skill),
             do: {:ok, Item.hash(files)}
      end)

    case hash do
      {:ok, hash} ->
        %Outcome{name: name, action: if(hash == entry["hash"], do: :current, else: :outdated)}

      error ->
        outcome(name, error)
    end
  end

  defp outcome(name, {:ok, action, commit, question}),
    do: %Outcome{name: name, action: action, commit: commit, question: question}

  defp outcome(name, {:error, error, question}),
    do: %Outcome{name: name, action: :failed, error: error, question: question}

  defp outcome(name, {:error, error}), do: %Outcome{name: name, action: :failed, error: error}

  defp to(options), do: options |> Keyword.get(:to, @to) |> Path.expand()
  defp patience(options), do: Keyword.get(options, :patience, @patience)
  defp tell(options, text), do: Keyword.get(options, :progress, fn _ -> :ok end).(text)

  defp made(:ok, _folder), do: :ok
  defp made({:error, reason}, folder), do: PackageError.io(folder, reason)

  defp validate!(options, only \\ nil) do
    schema = if only, do: Keyword.take(schema(), only), else: schema()

    with {:error, %OptionError{} = error} <- Options.validate(options, "packages", schema),
         do: raise(error)
  end

  defp schema do
    flag = {"a boolean", &is_boolean/1}
    text = {"text", &Options.text?/1}

    [
      to: {"a folder", &Options.text?/1},
      names: {"a list of names or :all", &(&1 == :all or Options.texts?(&1))},
      branch: text,
      tag: text,
      commit: text,
      path: text,
      accept: {"a function of one argument", &is_function(&1, 1)},
      strict: flag,
      force: flag,
      progress: {"a function of one argument", &is_function(&1, 1)},
      patience: {"milliseconds", &(is_integer(&1) and &1 >= 0)},
      http: {"options of Skillbook.HTTP", &Keyword.keyword?/1},
      now: {"a DateTime", &is_struct(&1, DateTime)}
    ]
  end
end
