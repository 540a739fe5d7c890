defmodule Skillbook.Handlers.Workflow.Build do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Context, Document, DocumentError, FlagError, Flags, Frontmatter, Result, Schedule, View}
  alias Skillbook.Handlers.Workflow.Index

  @flags ~w(name description steps domain schedule timezone tags)

  # `get_skill email.all` and `--help` would never reach a command of these names.
  @reserved ~w(all help)

  @impl true
  def execute(flags, context) do
    with {:ok, root} <- Context.fetch_write_to(context),
         {:ok, flags} <- Flags.known(flags, @flags),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, []),
         :ok <- Flags.require(flags, ["name", "description"]),
         {:ok, flags} <- cast_name(flags, "name", "weekly_report"),
         {:ok, flags} <- cast_name(flags, "domain", "workflows"),
         {:ok, flags} <- Flags.cast_text(flags, "description", line: true, max: 500),
         {:ok, flags} <- cast_steps(flags),
         {:ok, flags} <- cast_schedule(flags),
         {:ok, flags} <- Flags.cast_list(flags, "tags"),
         flags = Flags.apply_defaults(flags, %{"domain" => "workflows"}),
         workflow = workflow(flags),
         everything = everything(context),
         :ok <- free(workflow, everything),
         :ok <- folder_of_commands(root, workflow),
         {:ok, path} <- write(root, workflow, context),
         index = refresh_index(root, workflow, everything),
         :ok <- publish(context) do
      {:ok,
       Result.ok(text(workflow, index),
         data: %{name: workflow.name, path: path},
         effects: [:skill_created],
         metadata: %{skill_name: workflow.name, skill_path: path}
       )}
    end
  end

  # Checks

  defp cast_name(flags, name, example) do
    expected =
      "a name of at most 64 small letters, digits and underscores that begins with a letter, without a dot"

    with {:ok, flags} <-
           Flags.cast(flags, name, expected, example, fn value ->
             if is_binary(value) and value =~ ~r/\A[a-z][a-z0-9_]{0,63}\z/, do: {:ok, value}, else: :error
           end),
         do: Flags.cast(flags, name, "a name other than all and help", example, &unreserved/1)
  end

  defp unreserved(name), do: if(name in @reserved, do: :error, else: {:ok, name})

  # Several quoted texts are steps; several single words are one text whose quotes were forgotten.
  defp cast_steps(flags) do
    flags =
      case flags do
        %{"steps" => [_, _ | _] = steps} -> %{flags | "steps" => numbered(steps)}
        flags -> flags
      end

    Flags.cast_text(flags, "steps", max: 20_000)
  end

  defp numbered(steps) do
    if Enum.all?(steps, &is_binary/1) and Enum.any?(steps, &(&1 =~ ~r/\S\s+\S/)) do
      steps
      |> Enum.with_index(1)
      |> Enum.map_join("\n", fn {step, n} ->
        "#{n}. " <> (step |> String.trim() |> String.replace("\n", "\n   "))
      end)
    else
      steps
    end
  end

  defp cast_schedule(flags) do
    with {:ok, flags} <- Flags.cast_text(flags, "schedule", line: true, max: 500),
         {:ok, flags} <- Flags.cast_text(flags, "timezone", line: true, max: 100),
         :ok <- if(flags["timezone"], do: Flags.require(flags, ["schedule"]), else: :ok),
         do: read_schedule(flags)
  end

  defp read_schedule(%{"schedule" => expression} = flags) do
    with {:ok, schedule} <- Schedule.parse(expression, flags["timezone"] || "UTC") do
      timezone = if flags["timezone"], do: schedule.timezone
      {:ok, Map.merge(flags, %{"schedule" => schedule.expression, "timezone" => timezone})}
    end
  end

  defp read_schedule(flags), do: {:ok, flags}

  # Hidden entries count: a page of the same name would take the place of one that others rely on.
  defp everything(%{book: nil, view: view}), do: view
  defp everything(%{book: book}), do: View.all(book)

  defp free(workflow, everything) do
    case View.fetch(everything, workflow.name) do
      {:ok, _} -> taken(workflow)
      {:error, _} -> :ok
    end
  end

  defp taken(workflow) do
    action = workflow.flags["name"]
    expected = "a name that is free; there is a #{workflow.name} already"

    {:error,
     %FlagError{kind: :invalid, flag: "name", value: action, expected: expected, example: action <> "_2"}}
  end

  # In the folder of a skill every page is a resource of that skill and never a command.
  defp folder_of_commands(root, workflow) do
    with {:ok, text} <- Document.read(root, workflow.index),
         {:ok, %{data: %{"name" => _} = data}} when not is_map_key(data, "domain") <- Frontmatter.parse(text) do
      domain = workflow.flags["domain"]
      expected = "a folder of commands, and #{domain} is a skill"

      {:error,
       %FlagError{kind: :invalid, flag: "domain", value: domain, expected: expected, example: "workflows"}}
    else
      _ -> :ok
    end
  end

  # Files

  defp workflow(%{"domain" => domain, "name" => action} = flags) do
    %{
      name: "#{domain}.#{action}",
      description: flags["description"],
      file: "#{domain}/#{action}.md",
      index: "#{domain}/SKILL.md",
      flags: flags
    }
  end

  defp write(root, workflow, context) do
    case Document.create(root, workflow.file, page(workflow, context)) do
      {:error, %DocumentError{kind: :exists}} -> taken(workflow)
      other -> other
    end
  end

  defp page(%{name: name, description: description, flags: flags}, context) do
    pairs =
      for {key, value} <- [
            {"name", name},
            {"description", description},
            {"schedule", flags["schedule"]},
            {"timezone", flags["timezone"]},
            {"tags", flags["tags"]},
            {"author", "assistant"},
            {"created", context.now |> DateTime.to_date() |> Date.to_iso8601()}
          ],
          value != nil,
          do: {key, value}

    steps = flags["steps"] || "Do what is described above, step by step, with the commands you have."

    Frontmatter.write(pairs, """
    # #{name}

    #{description}

    ## Usage

    #{name}

    ## Behavior

    #{String.trim(steps)}

    ## Examples

    #{name}
    """)
  end

  # Hidden commands are listed too: a view leaves out the lines of those it does not show.
  defp refresh_index(root, workflow, everything) do
    others =
      for entry <- View.entries(everything, domain: workflow.flags["domain"], kind: :command),
          do: {entry.name, entry.description}

    rows = [{workflow.name, workflow.description} | others]

    with {:ok, text} <- index_text(root, workflow, everything),
         {:ok, _} <- Document.replace(root, workflow.index, Index.refresh(text, rows)),
         do: :ok
  end

  defp index_text(root, workflow, everything) do
    domain = workflow.flags["domain"]

    case Document.read(root, workflow.index) do
      {:error, %DocumentError{kind: :missing}} ->
        {:ok, everything |> View.domains() |> Enum.find(&(&1.name == domain)) |> new_index(domain)}

      other ->
        other
    end
  end

  # A domain of another source keeps its index: this file takes that one's place and begins as its copy.
  defp new_index(%{path: path, description: description, body: body}, domain) when is_binary(path),
    do: Frontmatter.write([{"domain", domain}, {"description", description}], body)

  defp new_index(_, domain) do
    title = domain |> String.replace("_", " ") |> String.capitalize()
    Frontmatter.write([{"domain", domain}, {"description", "#{title}: workflows"}], "# #{title}\n")
  end

  defp publish(%{book: nil}), do: :ok
  defp publish(%{book: book}), do: Skillbook.reload(book)

  defp text(workflow, index) do
    scheduled = if workflow.flags["schedule"], do: " Its schedule is #{workflow.flags["schedule"]}.", else: ""

    problem =
      case index do
        :ok -> ""
        {:error, e} -> "\nThe list in #{workflow.index} was not brought up to date: #{Exception.message(e)}"
      end

    "Built #{workflow.name} in #{workflow.file}.#{scheduled} From your next reply on, run it with: #{workflow.name}#{problem}"
  end
end
