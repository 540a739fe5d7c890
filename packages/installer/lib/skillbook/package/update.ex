defmodule Skillbook.Package.Update do
  @moduledoc false
  # Works on installed skills, by their entries in the lock file: updates, restores and removes
  # them, and compares them with their sources. Each source is opened once for all its skills.

  alias Skillbook.Package.{Git, Install, Installed, Item, LockFile, Origin, Outcome, Site, Skill}
  alias Skillbook.PackageError

  @doc "See `Skillbook.Package.update/2`."
  def run(names, options) do
    with {:ok, entries} <- Installed.select(names, options) do
      outcomes =
        each_source(entries, options, &LockFile.asked/1, fn origin, name, entry ->
          with {:ok, skill} <- find(origin, name, entry),
               do: Install.put(origin, skill, entry, options)
        end)

      {:ok, outcomes}
    end
  end

  @doc "See `Skillbook.Package.restore/2`."
  def restore(names, options) do
    with {:ok, entries} <- Installed.select(names, options) do
      groups =
        Enum.group_by(entries, fn {name, entry} ->
          case Installed.compare(options[:to], name, entry) do
            :same -> :same
            :missing -> :restore
            {:changed, _} -> if options[:force], do: :restore, else: :refuse
          end
        end)

      unchanged =
        for {name, entry} <- groups[:same] || [],
            do: %Outcome{name: name, action: :unchanged, commit: entry["commit"]}

      refused =
        for {name, entry} <- groups[:refuse] || [],
            do: Outcome.new(name, Installed.check_unchanged(name, entry, options))

      restored =
        each_source(groups[:restore] || [], options, &locked_commit/1, fn origin, name, entry ->
          put_back(origin, name, entry, options)
        end)

      {:ok, Enum.sort_by(unchanged ++ refused ++ restored, & &1.name)}
    end
  end

  # The locked commit, even if the branch has moved.
  defp locked_commit(%{"kind" => "git", "commit" => commit}), do: %{commit: commit}
  defp locked_commit(_entry), do: %{}

  defp put_back(origin, name, entry, options) do
    with {:ok, skill} <- find(origin, name, entry),
         {:ok, files} <- Origin.read_skill(origin, skill),
         :ok <- check_hash(name, Item.hash(files), entry) do
      Installed.change(name, entry, options, fn ->
        with :ok <- Installed.check_unchanged(name, entry, options),
             :ok <- Installed.put(options[:to], name, files, entry),
             do: {:ok, :restored, entry["commit"], nil}
      end)
    end
  end

  defp check_hash(_name, hash, %{"hash" => hash}), do: :ok

  defp check_hash(name, hash, entry) do
    PackageError.new(
      :hash,
      name,
      "is not the content that was installed: #{entry["source"]} has the hash #{hash}, " <>
        "the lock file has #{entry["hash"]}",
      "review the change and accept it with `update`"
    )
  end

  @doc "See `Skillbook.Package.remove/2`."
  def remove(names, options) do
    with {:ok, entries} <- Installed.select(names, options) do
      outcomes =
        for {name, entry} <- entries do
          removed =
            Installed.change(name, entry, options, fn ->
              with :ok <- Installed.check_unchanged(name, entry, options),
                   :ok <- Installed.delete(options[:to], name),
                   do: {:ok, :removed, nil, nil}
            end)

          Outcome.new(name, removed)
        end

      {:ok, outcomes}
    end
  end

  @doc "See `Skillbook.Package.outdated/2`."
  def outdated(names, options) do
    with {:ok, entries} <- Installed.select(names, options) do
      newest = newest(entries, options)
      {:ok, for({name, entry} <- entries, do: state(name, entry, newest, options))}
    end
  end

  defp state(name, entry, newest, options) do
    asked = LockFile.asked(entry)

    case {Installed.compare(options[:to], name, entry), asked} do
      {:missing, _} ->
        Outcome.new(
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
        compare_with_source(name, entry, newest[{entry["source"], asked}], options)
    end
  end

  defp compare_with_source(name, %{"kind" => "git"} = entry, newest, _options) do
    with {:ok, commit} <- newest do
      action = if commit == entry["commit"], do: :current, else: :outdated
      %Outcome{name: name, action: action, commit: commit}
    else
      error -> Outcome.new(name, error)
    end
  end

  defp compare_with_source(name, %{"kind" => "site"} = entry, newest, options) do
    with {:ok, index} <- newest do
      compare_content(name, entry, Origin.site(entry["source"], index, options))
    else
      error -> Outcome.new(name, error)
    end
  end

  defp compare_with_source(name, entry, _newest, options) do
    opened =
      Origin.open(LockFile.origin(entry), %{}, options, fn origin ->
        {:ok, compare_content(name, entry, origin)}
      end)

    with {:ok, outcome} <- opened, do: outcome, else: (error -> Outcome.new(name, error))
  end

  # The digest in a website's index is enough, if it has one.
  defp compare_content(name, entry, origin) do
    with {:ok, skill} <- find(origin, name, entry),
         {:ok, same?} <- same?(origin, skill, entry) do
      %Outcome{name: name, action: if(same?, do: :current, else: :outdated)}
    else
      error -> Outcome.new(name, error)
    end
  end

  defp same?(origin, skill, entry) do
    case Origin.digest(origin, skill) do
      nil ->
        with {:ok, files} <- Origin.files(origin, skill),
             do: {:ok, Item.hash(files) == entry["hash"]}

      digest ->
        {:ok, digest == entry["digest"]}
    end
  end

  # Each repository and each website is asked once.
  defp newest(entries, options) do
    sources =
      for {_, %{"kind" => kind} = entry} <- entries,
          kind in ["git", "site"],
          uniq: true,
          do: {kind, entry["source"], LockFile.asked(entry)}

    for {kind, place, asked} <- sources, into: %{} do
      options[:progress].("asking #{place}")
      newest = if kind == "git", do: Git.newest(place, asked), else: Site.index(place, options)
      {{place, asked}, newest}
    end
  end

  defp each_source(entries, options, asked, fun) do
    entries
    |> Enum.group_by(fn {_name, entry} -> {LockFile.origin(entry), asked.(entry)} end)
    |> Enum.flat_map(fn {{identity, asked}, group} ->
      opened =
        Origin.open(identity, asked, options, fn origin ->
          for {name, entry} <- group do
            options[:progress].(name)
            Outcome.new(name, fun.(origin, name, entry))
          end
        end)

      with {:error, _} = error <- opened,
           do: for({name, _} <- group, do: Outcome.new(name, error))
    end)
    |> Enum.sort_by(& &1.name)
  end

  # The skill at the locked path, or, if it has moved within its source, the one with its name.
  defp find(origin, name, entry) do
    with {:ok, at_path} <- Origin.skills(origin, entry["path"]),
         nil <- Enum.find(at_path, &(&1.path == entry["path"])),
         {:ok, all} <- Origin.skills(origin, ""),
         nil <- Enum.find(all, &(&1.name == name)) do
      PackageError.new(
        :skills,
        origin.place,
        "no longer has the skill #{name}",
        "keep the installed copy, or remove it with `remove`"
      )
    else
      %Skill{} = skill -> {:ok, %{skill | name: name}}
      error -> error
    end
  end
end
