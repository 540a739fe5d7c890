defmodule Skillbook.Package.IntoStore do
  @moduledoc false
  # Imports skills of a source into a book's store. Consent is asked for as at an installation,
  # and `by: :import` gives the entries low trust, so their schedules never run.

  alias Skillbook.Package.{Consent, Install, IntoFolder, Origin, Outcome, Skill}
  alias Skillbook.Support.Count
  alias Skillbook.{Frontmatter, PackageError, Schedule, Store, StoreError, Stored, View}

  @max_listed_files 5
  @label "imported"

  @doc "The label of skills that nobody has reviewed, as that of `{:installed, folder}`."
  def label, do: @label

  @doc "See `Skillbook.Package.into_store/3`."
  def run(view, source, labels, options) do
    Install.with_skills(source, options, fn origin, skills ->
      outcomes =
        for skill <- skills do
          options[:progress].(skill.name)
          Outcome.new(skill.name, import_skill(origin, skill, view, labels, options))
        end

      {:ok, outcomes}
    end)
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

  defp import_skill(origin, skill, view, labels, options) do
    with {:ok, files} <- Origin.read_skill(origin, skill),
         {:ok, text} <- only_page(skill, files),
         data = data(text),
         {:ok, place} <- place(view, data, labels, options),
         {:ok, question} <- Consent.ask(origin, skill, files, nil, options),
         {:ok, action} <- put(view, place, skill, text, data, labels, options),
         do: {:ok, action, origin.commit, question}
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

  defp put(view, :store, skill, text, _data, labels, options),
    do: write(view, skill, text, labels, options)

  defp put(view, {command, folder}, _skill, text, data, labels, _options),
    do: IntoFolder.write(view, folder, command, labels, text, data)

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

  # The whole text is stored, so nothing that its frontmatter says is lost.
  defp write(view, skill, text, labels, options) do
    fields = fields(skill, data(text))
    author = [by: :import] ++ Keyword.take(options, [:now])
    new = Map.merge(fields, %{name: skill.name, content: text, labels: labels})

    created =
      with {:error, %StoreError{kind: :exists}} = error <- Store.create(view, new, author) do
        if options[:force],
          do: Store.update(view, skill.name, Map.put(fields, :edit, {:replace, text}), author),
          else: error
      end

    case created do
      {:ok, %Stored{}} -> {:ok, :imported}
      {:ok, %{entry: same, before: same}} -> {:ok, :unchanged}
      {:ok, _} -> {:ok, :updated}
      error -> error
    end
  end

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
