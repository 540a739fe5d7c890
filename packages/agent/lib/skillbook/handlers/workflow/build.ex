defmodule Skillbook.Handlers.Workflow.Build do
  @moduledoc false
  # `workflow.build`: checks the name, steps, flags, schedule and labels of a new workflow, and
  # writes its page into the folder of `write_to:`.
  #
  # Pages that the builder cannot see must not show in an answer, so only visible ones take a
  # name. A built page says `replaces: false`: if a hidden page has its name, readers of both use
  # that one, and nobody takes over a page by building another. If the hidden page has its file,
  # the built page gets another file, which no answer mentions.

  @behaviour Skillbook.Handler

  alias Skillbook.{
    Book,
    Command,
    Context,
    Declaration,
    Entry,
    FlagError,
    Flags,
    Frontmatter,
    Profile,
    Result,
    Router,
    Schedule,
    Store,
    StoreError,
    View,
    Workflow,
    WorkflowError
  }

  alias Skillbook.Book.Profiles
  alias Skillbook.Workflow.Pages
  alias Skillbook.Store.ScheduleRules
  alias Skillbook.Workflow.Plan

  @impl true
  def execute(flags, context) do
    with {:ok, root} <- Context.fetch_write_to(context),
         {:ok, flags} <- cast_name(flags, "name", "weekly_report"),
         {:ok, flags} <- cast_name(flags, "domain", "workflows"),
         {:ok, flags} <- cast_steps(flags, context.command.raw),
         {:ok, flags} <- cast_flags(flags),
         {:ok, flags} <- cast_schedule(flags, context),
         {:ok, flags} <- cast_run_as(flags, context),
         {:ok, flags} <- cast_labels(flags, context),
         workflow = workflow(flags),
         {:ok, steps} <- steps(workflow),
         :ok <- check_scheduled(workflow, context),
         :ok <- check_visible(workflow, context),
         {:ok, view} <- Pages.current(context),
         :ok <- check_free(workflow, view),
         :ok <- check_count(workflow, context),
         {:ok, path} <- write(root, workflow, view, context),
         :ok <- Pages.reload(context) do
      {:ok,
       Result.ok(text(workflow, steps, context),
         data: %{name: workflow.name, path: path},
         effects: [:skill_created],
         metadata: %{skill_name: workflow.name, skill_path: path}
       )}
    end
  end

  # Checks

  defp cast_name(flags, name, example) do
    expected =
      "a name of at most 64 lower-case letters, digits and underscores, without a dot, that " <>
        "begins with a letter"

    with {:ok, flags} <-
           Flags.cast(flags, name, expected, example, fn value ->
             if is_binary(value) and Pages.word?(value), do: {:ok, value}, else: :error
           end),
         do: Flags.cast(flags, name, "a name other than all and help", example, &unreserved/1)
  end

  defp unreserved(name), do: if(Pages.reserved?(name), do: :error, else: {:ok, name})

  @flags_expected "a line for each flag of the workflow, as in the Flags section of a page"
  @flags_example ~s("--to  Who gets it (default: me\)")

  # Several quoted values are steps. Several single words are one text without its quotes.
  defp cast_steps(flags, line) do
    flags =
      case flags do
        %{"steps" => [_, _ | _] = steps} -> %{flags | "steps" => number(steps, line)}
        flags -> flags
      end

    Flags.cast_text(flags, "steps", max: 20_000)
  end

  # The first value is quoted, or an item of a JSON list.
  @quoted ~r/--steps[=\s]\s{0,9}["'“‘]|"steps"\s{0,9}:\s{0,9}\[/u

  defp number(steps, line) do
    if Enum.all?(steps, &is_binary/1) and
         (Enum.any?(steps, &(&1 =~ ~r/\S\s+\S/)) or line =~ @quoted) do
      steps
      |> Enum.with_index(1)
      |> Enum.map_join("\n", fn {step, n} ->
        "#{n}. " <> (step |> String.trim() |> String.replace("\n", "\n   "))
      end)
    else
      steps
    end
  end

  # Several quoted values are lines.
  defp cast_flags(flags) do
    flags =
      case flags do
        %{"flags" => [_, _ | _] = lines} -> %{flags | "flags" => Enum.join(lines, "\n")}
        flags -> flags
      end

    with {:ok, flags} <- Flags.cast_text(flags, "flags", max: 5_000),
         do: Flags.cast(flags, "flags", @flags_expected, @flags_example, &declaration/1)
  end

  defp declaration(text) do
    text = String.trim(text)
    lines = String.split(text, ~r/\R/)

    if Enum.all?(lines, &(&1 =~ ~r/\A(--[a-z][a-z0-9-]*(\s|\z)|\s|\z)/)) and
         Declaration.read(flags_section(text)),
       do: {:ok, text},
       else: :error
  end

  defp flags_section(text), do: "## Flags\n\n#{text}\n"

  defp cast_schedule(flags, context) do
    with :ok <- if(flags["timezone"], do: Flags.require(flags, ["schedule"]), else: :ok),
         do: read_schedule(flags, context)
  end

  defp read_schedule(%{"schedule" => expression} = flags, context) do
    with {:ok, schedule} <- Schedule.parse(expression, flags["timezone"] || "UTC"),
         :ok <- check_interval(schedule, context) do
      timezone = if flags["timezone"], do: schedule.timezone
      {:ok, Map.merge(flags, %{"schedule" => schedule.expression, "timezone" => timezone})}
    end
  end

  defp read_schedule(flags, _context), do: {:ok, flags}

  # The same rule as for entries of the store.
  defp check_interval(_schedule, %{book: nil}), do: :ok

  defp check_interval(schedule, context) do
    min_interval = Book.fetch!(context.book).schedules[:min_interval]
    ScheduleRules.check_interval(schedule, min_interval, context.now)
  end

  # A page never runs with more rights than its builder has, and never as another profile, which
  # has memories of its own. The error is the same for a profile that does not exist.
  defp cast_run_as(flags, %{profile: own} = context) do
    with :ok <- if(flags["run-as"], do: Flags.require(flags, ["schedule"]), else: :ok) do
      id = flags["run-as"] || own.id

      case is_map_key(flags, "schedule") && profile(context, id) do
        false -> {:ok, flags}
        %Profile{} = profile -> check_rights(flags, profile, own)
        nil when not is_map_key(flags, "run-as") -> {:ok, Map.put(flags, "run-as", id)}
        nil -> run_as_error(id)
      end
    end
  end

  defp check_rights(flags, profile, own) do
    if Profile.within?(profile, own) and (profile.id == own.id or Profile.unrestricted?(own)),
      do: {:ok, Map.put(flags, "run-as", profile.id)},
      else: run_as_error(profile.id)
  end

  defp run_as_error(id) do
    expected =
      "the id of your own profile, which must be in the book with the same rights; only a " <>
        "profile that may see everything can name another"

    FlagError.invalid("run-as", id, expected)
  end

  defp profile(%{book: nil}, _id), do: nil
  defp profile(%{book: book}, id), do: Profiles.find(Book.fetch!(book), id)

  # The same rule as for entries of the store.
  defp cast_labels(flags, context) do
    labels = Enum.sort(Enum.uniq((flags["labels"] || []) ++ context.profile.labels))

    with :ok <- Store.check_held_labels(context.view, labels),
         do: {:ok, Map.put(flags, "labels", labels)}
  end

  # The builder holds its labels, so only the name can hide it from the builder.
  defp check_visible(%{name: name}, %{profile: profile}) do
    if Profile.names?(profile, name),
      do: :ok,
      else: {:error, %StoreError{kind: :not_visible, name: name}}
  end

  defp check_free(workflow, view) do
    case View.fetch(view, workflow.name) do
      {:ok, _} -> taken(workflow)
      {:error, _} -> :ok
    end
  end

  defp taken(workflow) do
    action = workflow.flags["name"]

    FlagError.invalid(
      "name",
      action,
      "a free name; #{workflow.name} already exists",
      action <> "_2"
    )
  end

  # Counts the profile's own pages, also those that its agents with fewer rights cannot see.
  defp check_count(%{flags: %{"schedule" => _}}, %{book: book, profile: %{id: id} = profile})
       when book != nil and id != "" do
    whole = Profiles.find(Book.fetch!(book), id) || profile
    max = Book.fetch!(book).schedules[:max_per_profile]
    pages = View.entries(Skillbook.view(book, whole), kind: :command)

    if Enum.count(pages, &(&1.schedule != nil and &1.data["author"] == id)) < max,
      do: :ok,
      else: {:error, %StoreError{kind: :too_many, expected: max}}
  end

  defp check_count(_workflow, _context), do: :ok

  # Reads the page as a call would. Unknown commands are allowed: they may be added later.
  defp steps(%{text: text} = workflow) do
    case Workflow.read(entry(workflow), Declaration.read(text)) do
      {:ok, page} -> {:ok, page.steps}
      {:error, error} -> {:error, %{error | kind: :build}}
    end
  end

  defp entry(%{name: name, text: text, flags: flags}) do
    %Entry{
      name: name,
      kind: :command,
      description: flags["description"],
      body: text,
      path: "",
      source: "",
      data: %{"on_error" => flags["on-error"]}
    }
  end

  # A schedule calls the page without flags, which must not fail at its first time.
  defp check_scheduled(%{flags: %{"schedule" => _}} = workflow, context) do
    %{name: name, text: text} = workflow
    declaration = Declaration.read(text)
    command = %Command{name: name, raw: name}

    problem =
      with nil <- Declaration.required(declaration),
           {:ok, _plan} <- Plan.new(entry(workflow), declaration, command, context) do
        nil
      else
        {:error, error} -> error.text
        required -> "it requires #{required}"
      end

    if problem do
      text =
        "its schedule calls it without flags, and #{problem}. Give the flag a default in " <>
          "--flags, as in #{@flags_example}, or leave out --schedule"

      {:error, %WorkflowError{kind: :build, name: name, text: text}}
    else
      :ok
    end
  end

  defp check_scheduled(_workflow, _context), do: :ok

  # The page

  defp workflow(%{"domain" => domain, "name" => action} = flags) do
    name = "#{domain}.#{action}"

    %{
      name: name,
      description: flags["description"],
      text: body(name, flags),
      flags: flags
    }
  end

  defp write(root, workflow, view, context) do
    case Pages.create(root, workflow.name, page(workflow, context), view) do
      {:error, :taken} -> taken(workflow)
      {:error, :skill} -> skill_folder(workflow)
      written_or_error -> written_or_error
    end
  end

  defp skill_folder(workflow) do
    domain = workflow.flags["domain"]
    FlagError.invalid("domain", domain, "a folder of commands; #{domain} is a skill", "workflows")
  end

  defp page(%{name: name, description: description, flags: flags, text: text}, context) do
    pairs =
      for {key, value} <- [
            {"name", name},
            {"description", description},
            {"schedule", flags["schedule"]},
            {"timezone", flags["timezone"]},
            {"run_as", flags["run-as"]},
            {"on_error", if(flags["on-error"] == "continue", do: "continue")},
            {"tags", flags["tags"]},
            {"visibility_labels", flags["labels"]},
            {"replaces", false},
            {"author", if(context.profile.id != "", do: context.profile.id)},
            {"created", context.now |> DateTime.to_date() |> Date.to_iso8601()}
          ],
          value not in [nil, []],
          do: {key, value}

    Frontmatter.write(pairs, text)
  end

  defp body(name, flags) do
    steps =
      flags["steps"] || "Do what is described above, step by step, with the commands you have."

    flags_text = if flags["flags"], do: flags_section(flags["flags"]) <> "\n", else: ""

    """
    # #{name}

    #{flags["description"]}

    ## Usage

    #{Enum.join([name | usage(flags["flags"])], " ")}

    #{flags_text}## Behavior

    #{String.trim(steps)}
    #{examples(name, flags["flags"])}\
    """
  end

  # An example needs values for required flags, and only their text describes those.
  defp examples(name, flags) do
    if flags != nil and Enum.any?(Declaration.read(flags_section(flags)).flags, & &1.required),
      do: "",
      else: "\n## Examples\n\n#{name}\n"
  end

  defp usage(nil), do: []

  defp usage(text) do
    for flag <- Declaration.read(flags_section(text)).flags do
      several = if flag.several, do: "...", else: ""

      text =
        if flag.type == :switch,
          do: "--#{flag.name}",
          else: "--#{flag.name} <#{flag.name}>#{several}"

      if flag.required, do: text, else: "[#{text}]"
    end
  end

  # The answer

  defp text(%{name: name, flags: flags}, steps, context) do
    "Built #{name}.#{schedule_text(flags, context)} Run it with: #{name}" <>
      unknown_commands(steps, context)
  end

  defp unknown_commands(steps, context) do
    for step <- steps, {:error, error} <- [Router.find(context.view, step.line)], into: "" do
      "\nStep #{step.number} would fail now: #{Exception.message(error)}"
    end
  end

  defp schedule_text(%{"schedule" => expression} = flags, context) do
    " Its schedule is #{expression}" <>
      (missing_profile(flags, context) || next_time(flags, context.now))
  end

  defp schedule_text(_flags, _context), do: ""

  defp next_time(flags, now) do
    schedule = Schedule.parse!(flags["schedule"], flags["timezone"] || "UTC")
    at = Schedule.local(schedule, Schedule.next(schedule, now))
    ": #{Schedule.describe(schedule)}; the next time is #{at}."
  end

  defp missing_profile(_flags, %{book: nil}), do: nil

  defp missing_profile(%{"run-as" => id}, context) do
    unless profile(context, id) do
      ", but it does not run: expected one of the book's profiles as `run_as`, got " <>
        "#{inspect(id)}; pass one as --run-as, or write it into the page."
    end
  end
end
