defmodule Skillbook.Web.Page.Status do
  @moduledoc false
  # The parts of a book that can fail: sources, the database, vaults, the embedder, schedules,
  # skills that the circuit breaker watches; and what operators did. For operators.

  import Skillbook.Web.Html, only: [tag: 3]
  import Skillbook.Web.Page.Report

  alias Skillbook.Book.Cache
  alias Skillbook.Embedding.Entries
  alias Skillbook.MCP.Client
  alias Skillbook.Support.PrivateFile
  alias Skillbook.{Book, Catalog, Profile, Scheduler, SQL, View}
  alias Skillbook.Run.{CircuitBreaker, Operations}
  alias Skillbook.Web.Caller
  alias Skillbook.Web.Page.Parts

  # Operations, skills with failures, and profiles of each, that are shown.
  @max_operations 50
  @max_skills 200
  @max_profiles 3

  def show(request, _values) do
    for_operators(request, fn ->
      book = Book.fetch!(book(request))
      all = Caller.all(request)

      data = %{
        book: inspect(book.name),
        version: to_string(Application.spec(:skillbook, :vsn)),
        generation: generation(book, all),
        entries: View.count(all),
        sources: sources(book, all),
        services: [
          store(book),
          scheduler(book, all),
          embedder(book, all),
          agent(book) | vaults(book, all)
        ],
        breaker: CircuitBreaker.list(book, all),
        operations: operations(book, all)
      }

      reply(request, data, :health, :status, "Status", fn -> content(request, data) end)
    end)
  end

  @doc "Resets the circuit breaker of a skill."
  def reset(request, _values),
    do: submit(request, &Caller.all/1, ["status"], %{nil => :reset_breaker})

  # It counts the changes of all tenants, so no operator of one tenant sees it.
  defp generation(_book, %{profile: %{tenant: tenant}}) when is_binary(tenant), do: nil
  defp generation(book, _all), do: Catalog.generation(book.catalog)

  # A database that does not answer is shown as such.
  defp operations(%{store: nil}, _view), do: []

  defp operations(book, view) do
    case query(book, &Operations.list(&1, view.profile, @max_operations)) do
      {:ok, rows} -> rows
      {:error, _error} -> []
    end
  end

  defp sources(book, all) do
    # Before the counts: those may be newer than their key, but never older.
    key = {:sources, Catalog.generation(book.catalog), all.profile.tenant}
    {entries, errors} = Cache.keep(book.name, key, fn -> {entries(all), errors(book)} end)

    for source <- book.sources, Profile.reads?(all.profile, source.tenant) do
      {state, problem} = state(source, book)

      %{
        name: source.name,
        kind: source.kind,
        path: if(source.kind in [:skills, :notes], do: source.path),
        trust: source.trust,
        tenant: source.tenant,
        labels: source.labels,
        optional: source.optional,
        state: state,
        problem: problem,
        entries: Map.get(entries, source.name, 0),
        errors: Map.get(errors, source.name, 0)
      }
    end
  end

  defp entries(all), do: all |> View.entries() |> Enum.frequencies_by(& &1.source)

  defp errors(book) do
    paths = for error <- Catalog.errors(book.catalog), do: error.path

    Map.new(book.sources, fn source ->
      {source.name, Enum.count(paths, &below?(&1, source.path))}
    end)
  end

  defp below?(nil, _folder), do: false
  defp below?(path, folder), do: path == folder or String.starts_with?(path, folder <> "/")

  defp state(%{kind: kind}, _book) when kind in [:stored, :code], do: {:ok, nil}

  defp state(%{kind: :mcp} = source, book) do
    failed = &(&1.code == :server_unavailable)

    case Enum.find(Client.diagnostics(%{book | sources: [source]}), failed) do
      nil -> {:ok, waiting(source, book)}
      diagnostic -> {:failed, diagnostic.message}
    end
  end

  defp state(source, _book) do
    case File.ls(source.path) do
      {:ok, _names} -> {:ok, nil}
      {:error, :enoent} when source.optional -> {:missing, "it is optional"}
      {:error, reason} -> {:failed, to_string(:file.format_error(reason))}
    end
  end

  defp waiting(source, book) do
    offers = Enum.filter(Client.offers(book.name), &(&1.server == source.name))
    count = Enum.count(offers, &(&1.status in [:new, :changed]))

    if count > 0,
      do: Parts.count(count, "tool or skill is", "tools and skills are") <> " not approved"
  end

  defp store(%{store: nil}), do: service("Database", :off, "none")

  defp store(book) do
    {adapter, options} = book.store

    case query(book, &SQL.query(&1, "select 1", [])) do
      {:ok, _} -> service("Database", :ok, inspect(adapter) <> exposed(options[:path]))
      {:error, error} -> service("Database", :failed, Exception.message(error))
    end
  end

  defp exposed(path) when path in [nil, ":memory:"], do: ""

  defp exposed(path) do
    advice = path |> PrivateFile.exposed() |> PrivateFile.advice()
    if advice, do: "; " <> advice, else: ""
  end

  defp query(book, fun) do
    fun.(Book.sql(book))
  rescue
    # It is restarting.
    error in ArgumentError -> {:error, error}
  catch
    :exit, _reason -> {:error, SQL.Error.closed()}
  end

  defp scheduler(%{of_parts: %{scheduler: false}}, _all),
    do: service("Schedules", :off, "off: nothing runs on its schedule")

  defp scheduler(book, all) do
    {engine, _argument} = book.of_parts.scheduler
    jobs = Enum.count(Scheduler.Server.tenants(book.name), &Profile.reads?(all.profile, &1))
    service("Schedules", :ok, "#{inspect(engine)}, #{Parts.count(jobs, "job", "jobs")}")
  catch
    :exit, _reason -> service("Schedules", :failed, "the scheduler does not answer")
  end

  defp embedder(%{embedder: nil}, _all), do: service("Embedder", :off, "search by words")

  defp embedder(book, all) do
    %{done: done, total: total} = Entries.progress(all)
    name = inspect(book.embedder.__struct__)

    state = if done == total, do: :ok, else: :working
    service("Embedder", state, "#{name}, #{done} of #{total} entries have a vector")
  end

  defp agent(%{of_parts: %{agent: nil}}),
    do: service("Agent", :off, "no model is configured")

  defp agent(%{of_parts: %{agent: options}}) do
    model = options[:model]
    service("Agent", :ok, if(is_struct(model), do: inspect(model.__struct__), else: "a model"))
  end

  defp vaults(book, all) do
    for vault <- book.of_parts.vaults, Profile.reads?(all.profile, vault.tenant), do: vault(vault)
  end

  defp vault(%{name: name} = vault) do
    case Map.get(vault, :path) do
      nil ->
        service("Vault #{name}", :ok, "documents of the application")

      path ->
        case File.ls(path) do
          {:ok, _names} ->
            service("Vault #{name}", :ok, path)

          {:error, reason} ->
            service("Vault #{name}", :failed, "#{path}: #{:file.format_error(reason)}")
        end
    end
  end

  defp service(name, state, text), do: %{name: name, state: state, text: text}

  defp content(request, data) do
    [
      Parts.live("book", "skills", [
        Parts.facts([
          {"Book", data.book},
          {"Skillbook", data.version},
          {"Generation", data.generation && Parts.number(data.generation)},
          {"Entries", Parts.number(data.entries)}
        ]),
        section("sources", "Sources", [
          Parts.table(
            "Sources, a later one wins",
            ["Source", "State", "Kind", "Entries", "Errors", "Trust", "Labels"],
            for source <- data.sources do
              [
                [source.name, path(source.path)],
                [badge(source.state), if(source.problem, do: [" ", source.problem])],
                to_string(source.kind),
                Parts.number(source.entries),
                if(source.errors > 0,
                  do: Parts.badge(Parts.number(source.errors), :bad),
                  else: "0"
                ),
                to_string(source.trust),
                if(source.labels == [], do: "–", else: Enum.join(source.labels, ", "))
              ]
            end
          )
        ])
      ]),
      section("services", "Services", [
        Parts.table(
          "Services of the book",
          ["Service", "State", "Details"],
          for(one <- data.services, do: [one.name, badge(one.state), one.text])
        )
      ]),
      Parts.live("operations", "runs", [
        section("breaker", "Circuit breaker", breaker(request, data.breaker)),
        section("done", "Done by operators", done(data.operations))
      ])
    ]
  end

  defp breaker(_request, []), do: Parts.none("All skills work.")

  # A row for each skill, since a reset is for all of its profiles.
  defp breaker(request, rows) do
    operates? = operates?(request)

    {skills, more} = rows |> Enum.group_by(& &1.name) |> Enum.sort() |> Enum.split(@max_skills)

    skills =
      for {name, rows} <- skills do
        {shown, others} = rows |> Enum.map(& &1.profile) |> Enum.split(@max_profiles)
        others = if others == [], do: [], else: ["#{length(others)} more"]

        [
          entry(request, name),
          breaker_state(rows),
          Enum.join(shown ++ others, ", "),
          rows |> Enum.map(& &1.failures) |> Enum.max() |> Parts.number(),
          rows |> Enum.flat_map(&List.wrap(&1.since)) |> Enum.min(DateTime, fn -> nil end) |> at()
        ] ++ if(operates?, do: [reset_button(request, name)], else: [])
      end

    [
      Parts.table(
        "Skills that have failed since their last success, on this node",
        ["Skill", "State", "Profiles", "Failures in a row", "Out of service since"] ++
          if(operates?, do: ["Change"], else: []),
        skills
      ),
      if(more != [], do: tag(:p, [], "and #{length(more)} more skills"))
    ]
  end

  defp at(nil), do: "–"
  defp at(time), do: Parts.time(time)

  defp breaker_state(rows) do
    cond do
      Enum.all?(rows, &(&1.state == :closed)) -> Parts.badge("runs", :plain)
      Enum.any?(rows, &(&1.state == :open)) -> Parts.badge("out of service", :bad)
      true -> Parts.badge("is tried again", :warn)
    end
  end

  defp reset_button(request, name) do
    text = ["Reset", tag(:span, [class: "hidden"], [" ", name])]
    Parts.button(request, ["status"], text, class: "quiet", fields: [name: name])
  end

  defp done([]), do: Parts.none("No operator has changed anything.")

  defp done(rows) do
    Parts.table(
      "Operations, the newest first",
      ["Time", "Operation", "Skill", "By", "Reason"],
      for row <- rows do
        [
          Parts.time(row.at),
          operation(row.action),
          [row.name, if(row.profile, do: " for #{row.profile}")],
          row.by,
          row.reason || "–"
        ]
      end
    )
  end

  defp operation("pause"), do: "schedule paused"
  defp operation("resume"), do: "schedule resumed"
  defp operation("run"), do: "run as scheduled"
  defp operation("reset"), do: "breaker reset"

  defp path(nil), do: nil
  defp path(path), do: [" ", tag(:span, [class: "help"], path)]

  defp badge(:ok), do: Parts.badge("works", :good)
  defp badge(:working), do: Parts.badge("in progress", :info)
  defp badge(:off), do: Parts.badge("off", :plain)
  defp badge(:missing), do: Parts.badge("missing", :warn)
  defp badge(:failed), do: Parts.badge("failed", :bad)
end
