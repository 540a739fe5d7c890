defmodule Skillbook.Package.IntoStore do
  @moduledoc false
  # Imports skills of a source into a book's store. Consent is asked for as at an installation,
  # and `by: :import` gives the entries low trust, so their schedules never run.

  alias Skillbook.Package.{Consent, Install, IntoFolder, Origin, Outcome, Skill}
  alias Skillbook.Support.Count
  alias Skillbook.{Frontmatter, PackageError, Schedule, Store, StoreError, Stored, View}

  @max_listed_files 5
  # Skills that are written together.
  @step 50
  @label "imported"

  @doc "The label of skills that nobody has reviewed, as that of `{:installed, folder}`."
  def label, do: @label

  @doc "See `Skillbook.Package.into_store/3`."
  def run(view, source, labels, options) do
    Install.with_skills(source, options, fn origin, skills ->
      outcomes =
        skills
        |> Enum.chunk_every(@step)
        |> Enum.flat_map(&import_skills(origin, &1, view, labels, options))

      {:ok, outcomes}
    end)
  end

  defp import_skills(origin, skills, view, labels, options) do
    read =
      for skill <- skills do
        options[:progress].(skill.name)
        {skill, read_skill(origin, skill, view, labels, options)}
      end

    pages = for {skill, {:ok, %{place: :store} = page}} <- read, do: {skill, page.text}
    written = write_all(view, pages, labels, options)

    for {skill, result} <- read do
      outcome =
        with {:ok, page} <- result,
             {:ok, action} <- written[skill] || put(view, page, labels),
             do: {:ok, action, origin.commit, page.question}

      Outcome.new(skill.name, outcome)
    end
  end

  @doc """
  Writes a skill that was sent to a running book, with the label `imported`.

  Nobody has reviewed it yet. So it replaces only an entry that was imported before, and only
  profiles that hold the label see it.
  """
  @spec receive(View.t(), String.t(), binary(), keyword()) ::
          {:ok, :imported | :updated | :unchanged} | {:error, Exception.t()}
  def receive(view, name, text, options \\ []) do
    with :ok <- check_name(name),
         {:ok, skill} <- Origin.named(name, text, "send it under that name"),
         :ok <- no_command(skill, data(text)) do
      force = match?({:ok, %Stored{source: :import, name: ^name}}, Store.fetch(view, name))
      write(view, skill, text, [@label], Keyword.put(options, :force, force))
    end
  end

  defp check_name(name) do
    if Skill.plain?(name) do
      :ok
    else
      name = inspect(name, printable_limit: 80)
      hint = "write at most 64 small letters, digits and hyphens"
      PackageError.new(:skill, name, "is not a name of the Agent Skills format", hint)
    end
  end

  defp read_skill(origin, skill, view, labels, options) do
    with {:ok, files} <- Origin.read_skill(origin, skill),
         {:ok, text} <- only_page(skill, files),
         data = data(text),
         {:ok, place} <- place(view, data, labels, options),
         {:ok, question} <- Consent.ask(origin, skill, files, nil, options),
         do: {:ok, %{place: place, text: text, data: data, question: question}}
  end

  # The store has no commands, so a workflow becomes a page of the folder for workflows.
  defp place(view, data, labels, options) do
    case IntoFolder.command(data) do
      nil ->
        {:ok, :store}

      command ->
        with {:ok, folder} <- IntoFolder.check(view, command, data, labels, options),
             do: {:ok, {command, folder}}
    end
  end

  defp put(view, %{place: {command, folder}} = page, labels),
    do: IntoFolder.write(view, folder, command, labels, page.text, page.data)

  defp only_page(_skill, [{_item, text}]), do: {:ok, text}

  defp only_page(skill, files) do
    others = for {%{path: path}, _} <- files, path != "SKILL.md", do: path
    listed = others |> Enum.take(@max_listed_files) |> Enum.join(", ")
    count = Count.text(length(others), "file")

    PackageError.new(
      :skill,
      skill.title,
      "has #{count} beside its SKILL.md, which the store cannot hold: #{listed}",
      "use `install`, which copies them"
    )
  end

  # The store would make a text of it, and nobody has agreed to a page.
  defp no_command(skill, data) do
    case IntoFolder.command(data) do
      nil ->
        :ok

      name ->
        PackageError.new(
          :skill,
          skill.title,
          "is the command #{inspect(name, printable_limit: 80)}, and the store holds " <>
            "skills and notes",
          "use `install`, which keeps it a command"
        )
    end
  end

  # The results by skill. An entry that is replaced keeps its labels, so it is not one of many.
  defp write_all(view, pages, labels, options) do
    if options[:force] do
      Map.new(pages, fn {skill, text} -> {skill, write(view, skill, text, labels, options)} end)
    else
      items = for {skill, text} <- pages, do: new(skill, text, labels)
      {skills, author} = {Enum.map(pages, &elem(&1, 0)), [existing: :refuse] ++ author(options)}

      results =
        case Store.put_all(view, items, author) do
          {:ok, results} -> results
          error -> Enum.map(items, fn _ -> error end)
        end

      skills |> Enum.zip(results) |> Map.new(fn {skill, result} -> {skill, action(result)} end)
    end
  end

  defp write(view, skill, text, labels, options) do
    new = new(skill, text, labels)

    created =
      with {:error, %StoreError{kind: :exists}} = error <-
             Store.create(view, new, author(options)) do
        if options[:force] do
          changes =
            new |> Map.drop([:name, :content, :labels]) |> Map.put(:edit, {:replace, text})

          Store.update(view, skill.name, changes, author(options))
        else
          error
        end
      end

    action(created)
  end

  defp author(options), do: [by: :import] ++ Keyword.take(options, [:now])

  # The whole text is stored, so nothing that its frontmatter says is lost.
  defp new(skill, text, labels) do
    skill
    |> fields(data(text))
    |> Map.merge(%{name: skill.name, content: text, labels: labels})
  end

  defp action({:ok, %Stored{}}), do: {:ok, :imported}
  defp action({:ok, %{before: nil}}), do: {:ok, :imported}
  defp action({:ok, %{entry: same, before: same}}), do: {:ok, :unchanged}
  defp action({:ok, _changed}), do: {:ok, :updated}
  defp action(error), do: error

  # The store refuses a text whose restrictions cannot be read, so its data does not matter.
  defp data(text) do
    case Frontmatter.access(text) do
      {:ok, %{data: %{} = data}} -> data
      _ -> %{}
    end
  end

  # The fields that `Skillbook.Package.Export` writes into `metadata`, unless the text itself has
  # them.
  defp fields(skill, data) do
    metadata = if is_map(data["metadata"]), do: data["metadata"], else: %{}
    title = Enum.find([data["title"], metadata["title"]], skill.title, &is_binary/1)
    fields = %{title: title, description: skill.description, tags: tags(data, metadata)}
    Map.merge(fields, schedule(metadata))
  end

  defp tags(%{"tags" => _}, _metadata), do: nil

  defp tags(_data, %{"tags" => tags}) when is_binary(tags),
    do: String.split(tags, [",", " "], trim: true)

  defp tags(_data, _metadata), do: nil

  # A schedule that cannot be read is left out.
  defp schedule(%{"schedule" => schedule} = metadata) when is_binary(schedule) do
    timezone = with text when not is_binary(text) <- metadata["timezone"], do: nil

    case Schedule.parse(schedule, timezone || "UTC") do
      {:ok, _} -> %{schedule: schedule, timezone: timezone}
      {:error, _} -> %{schedule: ""}
    end
  end

  defp schedule(_metadata), do: %{schedule: ""}
end
