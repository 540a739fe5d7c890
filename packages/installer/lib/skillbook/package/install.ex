defmodule Skillbook.Package.Install do
  @moduledoc false
  # Installs skills of a source: opens it, selects the skills, asks for consent, and writes each
  # skill's folder and its entry in the lock file. Updates write through `put/4` too.
  #
  # The folder is not locked while the source is fetched and consent is asked for, which may take
  # minutes. So the checks run twice: before the question, and again under the lock.

  alias Skillbook.Package.{Consent, Inspection, Installed, Item, LockFile, Origin, Outcome, Site}
  alias Skillbook.PackageError
  alias Skillbook.Support.UntilError

  @doc "See `Skillbook.Package.find/2`."
  def find(source, options) do
    with {:ok, options} <- with_name(source, options) do
      open(source, options, fn origin ->
        with {:ok, skills} <- Origin.skills(origin, below(options)),
             {:ok, skills} <- named(skills, options[:names], origin.place),
             do: {:ok, Enum.map(skills, &%{&1 | items: []})}
      end)
    end
  end

  @doc "See `Skillbook.Package.install/2`."
  def run(source, options) do
    with_skills(source, options, fn origin, skills ->
      with {:ok, entries} <- Installed.entries(options) do
        outcomes =
          for {skill, number} <- Enum.with_index(skills, 1) do
            options[:progress].("#{skill.name} (#{number} of #{length(skills)})")
            Outcome.new(skill.name, put(origin, skill, entries[skill.name], options))
          end

        {:ok, outcomes}
      end
    end)
  end

  @doc "Opens a source and calls the function with it and the skills that `:names` selects."
  def with_skills(source, options, fun) do
    with {:ok, options} <- with_name(source, options) do
      open(source, options, fn origin ->
        with {:ok, skills} <- Origin.skills(origin, below(options)),
             {:ok, selected} <- select(skills, options[:names], origin.place),
             do: fun.(origin, selected)
      end)
    end
  end

  # `https://example.com#name` is one skill of a website.
  defp with_name(source, options) do
    with true <- Site.address?(source),
         {:ok, {place, name}} when name != nil <- Site.identify(source) do
      if options[:names],
        do: PackageError.new(:option, place, "is given with a name after # and with other names"),
        else: {:ok, Keyword.put(options, :names, [name])}
    else
      _ -> {:ok, options}
    end
  end

  defp open(source, options, fun) do
    asked = options |> Keyword.take([:branch, :tag, :commit]) |> Map.new()

    with {:ok, identity} <- Origin.identify(source, asked),
         do: Origin.open(identity, asked, options, fun)
  end

  defp below(options),
    do: options[:path] |> String.trim("/") |> String.replace_prefix("./", "")

  # Selecting skills

  defp named(skills, nil, _place), do: {:ok, skills}
  defp named(skills, names, place), do: select(skills, names, place)

  defp select([], _names, place) do
    PackageError.new(
      :skills,
      place,
      "has no skill: a folder with a SKILL.md",
      "name the folder below it that has them with --path"
    )
  end

  defp select([skill], nil, _place), do: {:ok, [skill]}

  defp select(skills, nil, place) do
    PackageError.new(
      :skills,
      place,
      "has #{length(skills)} skills",
      "name those that you want, or take all of them with --all: #{names(skills)}"
    )
  end

  defp select(skills, :all, place),
    do: skills |> Enum.group_by(& &1.name) |> Map.keys() |> then(&select(skills, &1, place))

  defp select(skills, names, place) do
    by_name = by_name(skills)

    UntilError.map(names, fn name ->
      case by_name[name] do
        [skill] ->
          {:ok, skill}

        nil ->
          PackageError.new(
            :skills,
            place,
            "has no skill #{inspect(name)}",
            "it has #{names(skills)}"
          )

        several ->
          several = Enum.sort_by(several, & &1.path)
          paths = Enum.map_join(several, ", ", &if(&1.path == "", do: ".", else: &1.path))

          PackageError.new(
            :skills,
            place,
            "has #{length(several)} different skills named #{name}",
            "name one of their paths: #{paths}"
          )
      end
    end)
  end

  # A skill has its name, its title and its path.
  defp by_name(skills) do
    for skill <- skills,
        name <- Enum.uniq([skill.name, skill.title, skill.path]),
        name != "",
        reduce: %{},
        do: (done -> Map.update(done, name, [skill], &[skill | &1]))
  end

  defp names(skills),
    do: skills |> Enum.map(& &1.name) |> Enum.uniq() |> Enum.sort() |> Enum.join(", ")

  # Writing

  @doc """
  Installs a skill, or updates the installed one with this lock file entry.

  Returns the action, the commit and the question as `Outcome.new/2` takes them, or an error.
  """
  def put(origin, skill, entry, options) do
    if same_digest?(origin, skill, entry, options),
      do: {:ok, :unchanged, nil, nil},
      else: fetch_and_put(origin, skill, entry, options)
  end

  # A website's index tells without a download that nothing has changed.
  defp same_digest?(_origin, _skill, nil, _options), do: false

  defp same_digest?(origin, skill, entry, options) do
    digest = Origin.digest(origin, skill)

    digest != nil and entry["digest"] == digest and
      LockFile.origin(entry) == {origin.kind, origin.place} and
      Installed.compare(options[:to], skill.name, entry) == :same
  end

  defp fetch_and_put(origin, skill, entry, options) do
    with {:ok, files} <- Origin.read_skill(origin, skill),
         :ok <- check_source(origin, skill, entry, options),
         :ok <- Installed.check_unchanged(skill.name, entry, options) do
      hash = Item.hash(files)

      if entry && entry["hash"] == hash &&
           Installed.compare(options[:to], skill.name, entry) == :same do
        update_revision(origin, skill, entry, options)
      else
        ask_and_write(origin, skill, files, hash, entry, options)
      end
    end
  end

  defp ask_and_write(origin, skill, files, hash, entry, options) do
    with {:ok, question} <- Consent.ask(origin, skill, files, entry, options) do
      new = entry(origin, skill, files, hash, question.inspection, options)

      Installed.change(skill.name, entry, options, fn ->
        with :ok <- check_source(origin, skill, entry, options),
             :ok <- Installed.check_unchanged(skill.name, entry, options),
             :ok <- Installed.put(options[:to], skill.name, files, new),
             do: {:ok, if(entry, do: :updated, else: :installed), origin.commit, question}
      end)
    end
  end

  # The content is the same, but the branch has moved or another revision was requested.
  defp update_revision(origin, skill, entry, options) do
    new =
      entry
      |> Map.drop(["branch", "tag", "asked_commit", "commit", "digest"])
      |> Map.merge(source_fields(origin, skill))

    if new == entry do
      {:ok, :unchanged, origin.commit, nil}
    else
      Installed.change(skill.name, entry, options, fn ->
        with :ok <- LockFile.put(options[:to], skill.name, new),
             do: {:ok, :unchanged, origin.commit, nil}
      end)
    end
  end

  # Refuses to replace a folder that was not installed, and a skill of another source.
  defp check_source(origin, skill, entry, options) do
    path = Path.join(options[:to], skill.name)

    cond do
      options[:force] ->
        :ok

      entry == nil and match?({:ok, _}, File.lstat(path)) ->
        PackageError.new(
          :exists,
          path,
          "already exists and was not installed",
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

  defp entry(origin, skill, files, hash, inspection, options) do
    Map.merge(source_fields(origin, skill), %{
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

  defp source_fields(origin, skill) do
    fields = %{
      "kind" => to_string(origin.kind),
      "source" => origin.place,
      "branch" => origin.asked[:branch],
      "tag" => origin.asked[:tag],
      "asked_commit" => origin.asked[:commit],
      "commit" => origin.commit,
      "path" => skill.path,
      "digest" => Origin.digest(origin, skill)
    }

    for {key, value} <- fields, value != nil, into: %{}, do: {key, value}
  end
end
