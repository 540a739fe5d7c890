defmodule Skillbook.MCP.Client do
  @moduledoc """
  Uses an MCP server as a source: its tools and prompts become commands, its skills entries.

      {Skillbook,
       name: MyApp.Skills,
       sources: [
         "skills",
         {:mcp, "https://docs.example/mcp",
          label: "docs-server", token: {:env, "DOCS_TOKEN"}, lock: "mcp.lock.json"},
         {:mcp, ["npx", "-y", "some-server"], label: "files", read: ["list_*"]}
       ]}

  A tool or prompt `search` of the server `docs-server` is the command `docs-server.search`, and a
  skill `refunds` the entry `docs-server/refunds`. [Skills over MCP](docs/mcp.md) describes the
  options and the rules.

  A server is a stranger. None of its tools, prompts and skills is used before somebody has
  approved it as it is now: all of its definition, or the digests of all files of a skill. After a
  change it is not used until it is approved again. Approvals are in the book's database, so they
  are of all its nodes; a book without one keeps them in the file `:lock` of the source. These
  functions are for operators, who see everything that a server offers.

  ## Examples

      iex> {:ok, [source]} =
      ...>   Skillbook.Source.list([{:mcp, "https://docs.example/mcp", label: "docs-server"}])
      iex> {source.name, source.kind, source.trust}
      {"docs-server", :mcp, :low}
  """

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.MCP.Client.{Approvals, Error, HTTP, Listener, Reader, Session, Settings}
  alias Skillbook.MCP.Client.{Skills, State, Stdio, Tools}
  alias Skillbook.Support.{Arguments, External, Options}
  alias Skillbook.{Book, Diagnostic, Source, SourceError, Telemetry}

  @typedoc """
  A tool, prompt or skill that a server offers.

    * `:server` - the label of the server
    * `:kind` - `:tool`, `:prompt` or `:skill`
    * `:id` - its name at the server; for a skill its URI
    * `:name` - the name of its entry
    * `:description` - the server's text
    * `:digest` - the digest of everything that an approval covers
    * `:files` - the paths of a skill's files; `[]` for all others
    * `:status` - `:approved`, `:new` (nobody has decided about it), `:changed` (its digest was
      another when somebody did) or `:refused`
    * `:decided_by`, `:decided_at` - the text of `by:` and the time of the last decision, also if
      that was about another digest; `nil` without one, and for those of a lock file
  """
  @type offer :: %{
          server: String.t(),
          kind: :tool | :prompt | :skill,
          id: String.t(),
          name: String.t(),
          description: String.t(),
          digest: String.t(),
          files: [String.t()],
          status: :approved | :new | :changed | :refused,
          decided_by: String.t() | nil,
          decided_at: DateTime.t() | nil
        }

  # Milliseconds between the beginnings of two listings, however many changes a server reports.
  @min_interval 1_000
  @first_pause 1_000
  @max_findings 100
  # Milliseconds until approvals that could not be read are read again.
  @read_again 5_000
  # Characters of `by:`.
  @max_by 1_000

  # Functions for operators

  @doc """
  Returns everything that the servers of a book offer, sorted by name, with its status.

  For operators: it has no view, and its texts are those of strangers.
  """
  @spec offers(atom()) :: [offer()]
  def offers(book) do
    Arguments.check!("Skillbook.MCP.Client.offers/1", book: {:book, book})

    book
    |> Book.fetch!()
    |> settings()
    |> Enum.flat_map(&State.offers/1)
    |> Enum.sort_by(& &1.name)
  end

  @doc """
  Returns an offer of a server, approved or not, for an operator who decides about it: the page of
  a tool or prompt, or the text of a skill or of one of its files.

  A text is fetched now, and checked like one that a model reads. Texts come from strangers: write
  them to a terminal or a page only with their control characters escaped.
  """
  @spec read(atom(), String.t(), String.t()) :: {:ok, binary()} | {:error, Exception.t()}
  def read(book, name, file \\ "SKILL.md") do
    Arguments.check!("Skillbook.MCP.Client.read/3",
      book: {:book, book},
      name: {:text, name},
      file: {:text, file}
    )

    label = name |> String.split([".", "/"], parts: 2) |> hd()

    with {:ok, settings} <- find(book, label),
         {:ok, offered} <- call(settings, {:offered, name}, :infinity) do
      case offered do
        %Tools{page: {_path, page, _lines}} -> {:ok, page}
        %Skills{files: %{^file => _}} = skill -> Reader.read(settings, skill, file)
        _other -> Session.error(settings, :declined, "#{name} has no such file")
      end
    end
  end

  @doc """
  Approves tools, prompts and skills of a server as they are now, by the names of their entries,
  or `:all`.

  In place of a name, `{name, digest}` with the digest of `offers/1` approves exactly that offer.
  It is an error if the server has changed it since somebody read it.

  A book with a database keeps it there, and all nodes use the offer at once. A book without one
  keeps it in the file `:lock` of the source; without that too, it lasts as long as the book.
  Returns the names that were approved, or an error that names the missing ones.

  ## Options

    * `:by` (text) - the person who decides, for `offers/1`. Defaults to `"the application"`
  """
  @spec approve(atom(), String.t(), [String.t() | {String.t(), String.t()}] | :all, options) ::
          {:ok, [String.t()]} | {:error, Exception.t()}
        when options: Skillbook.options()
  def approve(book, label, names, options \\ []),
    do: decide(book, label, names, options, :approved)

  @doc """
  Refuses tools, prompts and skills of a server as they are now, or takes approvals back. `:all`
  also takes back those of offers that the server does not list now.

  They are not used, and nobody is asked about them, until the server changes them or somebody
  approves them. A function as the option `:approve` does not. Options as for `approve/4`.
  """
  @spec revoke(atom(), String.t(), [String.t()] | :all, Skillbook.options()) ::
          {:ok, [String.t()]} | {:error, Exception.t()}
  def revoke(book, label, names, options \\ []),
    do: decide(book, label, names, options, :refused)

  defp decide(book, label, names, options, decision) do
    function =
      "Skillbook.MCP.Client.#{if(decision == :approved, do: "approve", else: "revoke")}/4"

    Arguments.check!(function,
      book: {:book, book},
      label: {:text, label},
      options: {:options, options}
    )

    unless names == :all or (is_list(names) and Enum.all?(names, &named?(&1, decision))) do
      raise ArgumentError,
            "expected :all or a list of names as the argument `names` of #{function}, " <>
              "got: #{inspect(names, limit: 5)}"
    end

    options = Options.keywords(options)
    schema = [by: {"text of 1 to #{@max_by} characters", &by?/1}]

    with :ok <- Options.validate(options, "a decision", schema),
         {:ok, settings} <- find(book, label) do
      by = options[:by] || "the application"
      call(settings, {:decide, decision, names, by}, :infinity)
    end
  end

  defp by?(text),
    do: Options.text?(text) and String.length(text) <= @max_by and not (text =~ "\0")

  defp named?({name, digest}, :approved), do: is_binary(name) and is_binary(digest)
  defp named?(name, _decision), do: is_binary(name)

  @doc """
  Lists the tools, prompts and skills of a book's servers again, and waits for it.

  Returns the servers that failed, with their errors.
  """
  @spec refresh(atom()) :: [{String.t(), Exception.t()}]
  def refresh(book) do
    Arguments.check!("Skillbook.MCP.Client.refresh/1", book: {:book, book})

    for settings <- book |> Book.fetch!() |> settings(),
        {:error, error} <- [call(settings, :refresh, :infinity)],
        do: {settings.label, error}
  end

  @doc """
  Waits until each server of a book was listed once, or has failed; at most `timeout`
  milliseconds.
  """
  @spec await(atom(), timeout()) :: :ok
  def await(book, timeout \\ 30_000) do
    Arguments.check!("Skillbook.MCP.Client.await/2", book: {:book, book})

    book
    |> Book.fetch!()
    |> settings()
    |> Enum.map(&Task.async(fn -> call(&1, :await, timeout) end))
    |> Enum.each(&Task.await(&1, :infinity))
  end

  defp find(book, label) do
    servers = book |> Book.fetch!() |> settings()

    case Enum.find(servers, &(&1.label == label)) do
      nil ->
        labels = Enum.map_join(servers, ", ", & &1.label)
        known = if labels == "", do: "it has none", else: "its servers are #{labels}"

        {:error,
         %Error{kind: :stopped, server: label, reason: "the book has no such server; #{known}"}}

      settings ->
        {:ok, settings}
    end
  end

  defp call(settings, request, timeout) do
    GenServer.call(State.client(settings) || exit(:noproc), request, timeout)
  catch
    :exit, {:timeout, _call} ->
      Session.error(settings, :timeout, "no answer within the time limit")

    :exit, _reason ->
      Session.error(settings, :stopped, "its client does not run")
  end

  # For the rest of Skillbook

  @doc false
  # The settings of a book's servers.
  @spec settings(Book.t() | map()) :: [Settings.t()]
  def settings(%{sources: sources}), do: servers(sources)

  defp servers(sources),
    do: for(%{kind: :mcp, trust: :low, code: {:mcp, settings}} <- sources, do: settings)

  @doc false
  @spec diagnostics(Book.t()) :: [Diagnostic.t()]
  def diagnostics(book), do: book |> settings() |> Enum.flat_map(&State.findings/1)

  @doc false
  # The children of a book: each server alone, so that one does not end another.
  @spec children(Book.t()) :: [Supervisor.child_spec()]
  def children(book) do
    for settings <- settings(book) do
      transport =
        case settings.place do
          {:url, _} -> [{Listener, settings}]
          {:command, _} -> []
        end

      stdio =
        case settings.place do
          {:url, _} -> []
          {:command, _} -> [{Stdio, settings}]
        end

      children = stdio ++ [{__MODULE__, settings}] ++ transport
      options = [strategy: :one_for_one, max_restarts: 30, max_seconds: 60]

      %{
        id: {__MODULE__, settings.label},
        start: {Supervisor, :start_link, [children, options]},
        type: :supervisor
      }
    end
  end

  @doc false
  # The database has new decisions about the servers among a book's sources.
  @spec follow([Source.t()]) :: :ok
  def follow(sources), do: sources |> servers() |> Enum.each(&cast(&1, :decided))

  @doc false
  # The database has new connections: a server that failed without one is asked again.
  @spec signed_in([Source.t()]) :: :ok
  def signed_in(sources) do
    for %{oauth: oauth} = settings when oauth != nil <- servers(sources),
        do: cast(settings, :signed_in)

    :ok
  end

  @doc false
  # A server has sent a notification.
  @spec notified(Settings.t(), String.t()) :: :ok
  def notified(settings, method) do
    if String.ends_with?(method, "/list_changed") or method == "notifications/resources/updated",
      do: cast(settings, :changed)

    :ok
  end

  @doc false
  # A file of a skill did not pass its check.
  @spec failed(Settings.t(), Skills.t(), String.t(), String.t()) :: :ok
  def failed(settings, skill, path, reason), do: cast(settings, {:failed, skill, path, reason})

  defp cast(settings, message) do
    if pid = State.client(settings), do: GenServer.cast(pid, message)
    :ok
  end

  # The process

  def start_link(settings) do
    with {:error, {:required, error}} <- GenServer.start_link(__MODULE__, settings),
         do: {:error, error}
  end

  @impl true
  def init(settings) do
    Process.flag(:trap_exit, true)
    State.put_client(settings, self())

    state = %{
      settings: settings,
      # `nil` until they were read once.
      decisions: nil,
      # Why they cannot be read, or written, and the timer of the next attempt to read them.
      unread: nil,
      unsaved: nil,
      read_again: nil,
      # The last good listing, and the error of the last one.
      listing: nil,
      error: nil,
      rejected: %{},
      task: nil,
      again: false,
      began: nil,
      timer: nil,
      pause: @first_pause,
      waiting: []
    }

    state = read(state)
    if settings.optional, do: {:ok, start(state)}, else: required(state)
  end

  # Known decisions stay while the database cannot be read. Without any, nothing is approved.
  defp read(%{settings: settings} = state) do
    if state.read_again, do: Process.cancel_timer(state.read_again)

    read = if state.decisions, do: Approvals.load(settings), else: Approvals.start(settings)

    case read do
      {:ok, decisions} ->
        %{state | decisions: decisions, unread: nil, read_again: nil}

      {:error, reason} ->
        timer = Process.send_after(self(), :read, @read_again)
        %{state | unread: reason, read_again: timer}
    end
  end

  # After a decision of somebody else.
  defp read_and_use(state) do
    before = state.decisions || %{}
    state = state |> read() |> render()
    if newer?(state, before), do: start(state), else: state
  end

  # Another node has listed something that this one has not.
  defp newer?(state, before) do
    offers = Map.new(State.offers(state.settings), &{key(&1), &1.digest})

    Enum.any?(state.decisions || %{}, fn {key, one} ->
      one.decision == :approved and before[key] != one and offers[key] != one.digest
    end)
  end

  # The book does not start without it.
  defp required(%{settings: settings} = state) do
    case listing(settings, decisions(state)) do
      {:ok, listing} ->
        {:ok, state |> listed(listing) |> schedule(settings.refresh)}

      {:error, error} ->
        path = Settings.place_text(settings)
        reason = Exception.message(error)
        {:stop, {:required, %SourceError{source: settings.label, path: path, reason: reason}}}
    end
  end

  @impl true
  def handle_call(:await, _from, %{listing: listing, error: error} = state)
      when listing != nil or error != nil,
      do: {:reply, :ok, state}

  def handle_call(:await, from, state),
    do: {:noreply, %{state | waiting: [from | state.waiting]}}

  def handle_call(:refresh, from, state),
    do: {:noreply, start(%{state | waiting: [from | state.waiting]})}

  def handle_call({:offered, name}, _from, %{listing: listing} = state) do
    all = if listing, do: listing.tools ++ listing.prompts ++ listing.skills, else: []

    case Enum.find(all, &(&1.name == name)) do
      nil -> {:reply, no_offer(state, name), state}
      offered -> {:reply, {:ok, offered}, state}
    end
  end

  def handle_call({:decide, decision, names, by}, _from, state) do
    offers = State.offers(state.settings)
    given = if names == :all, do: Enum.map(offers, & &1.name), else: names
    wanted = Enum.map(given, &name/1)
    chosen = Enum.filter(offers, &(&1.name in wanted))
    missing = wanted -- Enum.map(chosen, & &1.name)

    with [] <- missing,
         :ok <- unchanged(chosen, for({name, digest} <- given, do: {name, digest})),
         :ok <- possible(state.settings, decision),
         new =
           decisions(state, for(offer <- chosen, do: {key(offer), offer.digest}), decision, by),
         unlisted = {names, decision} == {:all, :refused},
         fun = &if(unlisted, do: Map.merge(withdrawn(&1, state, by), new), else: new),
         {:ok, state} <- save(state, fun) do
      {:reply, {:ok, Enum.map(chosen, & &1.name)}, render(state)}
    else
      [name | _] ->
        {:reply, no_offer(state, name), state}

      {:error, reason} ->
        {:reply, Session.error(state.settings, :declined, reason), state}
    end
  end

  defp possible(%{approve: :all}, :refused),
    do: {:error, "its option `approve: :all` uses everything; take that away to refuse anything"}

  defp possible(_settings, _decision), do: :ok

  # All approvals, also of offers that are not listed now.
  defp withdrawn(stored, state, by) do
    approved = for {key, %{decision: :approved} = one} <- stored, do: {key, one.digest}
    decisions(state, approved, :refused, by)
  end

  defp name({name, _digest}), do: name
  defp name(name), do: name

  defp unchanged(chosen, read) do
    Enum.find_value(read, :ok, fn {name, digest} ->
      unless Enum.any?(chosen, &(&1.name == name and &1.digest == digest)),
        do: {:error, "it has changed #{name} since that was read; read it again"}
    end)
  end

  defp no_offer(state, name) do
    reason = "it offers no tool, prompt or skill named #{External.line(name, 100)}"
    Session.error(state.settings, :declined, reason)
  end

  defp decisions(state), do: state.decisions || %{}

  defp decisions(state, digests, decision, by) do
    at = Approvals.now(state.settings)

    for {key, digest} <- digests,
        into: %{},
        do: {key, %{digest: digest, decision: decision, by: by, at: at}}
  end

  defp save(state, fun) do
    with {:ok, decisions} <- Approvals.save(state.settings, decisions(state), fun),
         do: {:ok, %{state | decisions: decisions, unread: nil, unsaved: nil}}
  end

  defp key(%{kind: kind, id: id}), do: "#{kind}:#{id}"

  @impl true
  def handle_cast(:changed, state) do
    # One listing is enough for all that have come.
    drop_changes()
    {:noreply, start(state)}
  end

  def handle_cast(:decided, state), do: {:noreply, read_and_use(state)}

  def handle_cast(:signed_in, %{error: nil, task: nil} = state), do: {:noreply, state}
  def handle_cast(:signed_in, state), do: {:noreply, start(state)}

  def handle_cast({:failed, skill, path, reason}, state) do
    few = state.rejected |> Enum.take(@max_findings) |> Map.new()
    rejected = Map.put(few, {skill.uri, path}, {skill.name, reason})
    {:noreply, start(render(%{state | rejected: rejected}))}
  end

  defp drop_changes do
    receive do
      {:"$gen_cast", :changed} -> drop_changes()
    after
      0 -> :ok
    end
  end

  @impl true
  def handle_info(:refresh, state), do: {:noreply, start(%{state | timer: nil})}

  def handle_info(:read, state), do: {:noreply, read_and_use(state)}

  def handle_info({ref, result}, %{task: %Task{ref: ref}} = state) do
    Process.demonitor(ref, [:flush])
    {:noreply, finished(%{state | task: nil}, result)}
  end

  def handle_info({:DOWN, ref, :process, _pid, _reason}, %{task: %Task{ref: ref}} = state) do
    error = %Error{kind: :stopped, server: state.settings.label, reason: "its listing crashed"}
    {:noreply, finished(%{state | task: nil}, {:error, error})}
  end

  def handle_info(_other, state), do: {:noreply, state}

  @impl true
  def terminate(_reason, %{settings: %{place: {:url, _}} = settings}), do: HTTP.leave(settings)
  def terminate(_reason, _state), do: :ok

  # Listings

  # A listing runs, or has begun just now: the next one comes after it.
  defp start(%{task: task} = state) when task != nil, do: %{state | again: true}

  defp start(state) do
    left = if state.began, do: state.began + @min_interval - now(), else: 0

    if left > 0 do
      schedule(state, left)
    else
      settings = state.settings
      decisions = decisions(state)
      supervisor = Skillbook.Run.Worker.supervisor(settings.book)
      task = Task.Supervisor.async_nolink(supervisor, fn -> listing(settings, decisions) end)
      %{cancel(state) | task: task, began: now(), again: false}
    end
  catch
    # The supervisor of the book restarts.
    :exit, _reason -> schedule(state, @first_pause)
  end

  defp finished(state, result) do
    state =
      case result do
        {:ok, listing} ->
          %{state | error: nil, pause: @first_pause}
          |> listed(listing)
          |> schedule(state.settings.refresh)

        {:error, error} ->
          pause = min(state.pause * 2, state.settings.refresh)
          %{state | error: error, pause: pause} |> render() |> schedule(state.pause)
      end

    answer = if state.error, do: {:error, state.error}, else: :ok
    for from <- state.waiting, do: GenServer.reply(from, answer)
    state = %{state | waiting: []}
    if state.again, do: start(%{state | again: false}), else: state
  end

  defp schedule(state, pause) do
    state = cancel(state)
    %{state | timer: Process.send_after(self(), :refresh, pause)}
  end

  defp cancel(%{timer: nil} = state), do: state

  defp cancel(%{timer: timer} = state) do
    Process.cancel_timer(timer)
    %{state | timer: nil}
  end

  # Runs in a process of its own.
  defp listing(settings, decisions) do
    began = System.monotonic_time()

    result =
      with {:ok, session} <- Session.session(settings),
           {:ok, tools} <- tools(settings, session),
           {tools, refused_tools} = unique(tools, & &1.tool),
           {:ok, prompts} <- prompts(settings, session, tools),
           {:ok, skills} <- skills(settings, session) do
        {prompts, refused_prompts} = unique(prompts, & &1.tool)
        {skills, refused_skills} = unique(skills, & &1.uri)
        listing = %{tools: tools, prompts: prompts, skills: Skills.named(settings, skills)}
        refused = refused_tools ++ refused_prompts ++ refused_skills
        listing = Map.put(listing, :refused, refused)
        {:ok, Map.put(listing, :accepted, accepted(settings, listing, decisions))}
      end

    Telemetry.event(
      [:skillbook, :mcp_client, :listed],
      Map.merge(%{duration: System.monotonic_time() - began}, counts(result)),
      %{book: settings.book, server: settings.label, status: status(result)}
    )

    result
  end

  defp counts({:ok, listing}),
    do: %{
      tools: length(listing.tools),
      prompts: length(listing.prompts),
      skills: length(listing.skills),
      refused: length(listing.refused)
    }

  defp counts({:error, _error}), do: %{tools: 0, prompts: 0, skills: 0, refused: 0}

  defp status({:ok, _listing}), do: :ok
  defp status({:error, error}), do: error.kind

  defp tools(%{tools: false}, _session), do: {:ok, []}

  defp tools(settings, session) do
    if Session.has?(session, :tools) do
      with {:ok, list} <- Session.list(settings, "tools/list", "tools", settings.max_tools) do
        {:ok, list |> Enum.map(&Tools.read(settings, &1)) |> Enum.filter(&wanted?(settings, &1))}
      end
    else
      {:ok, []}
    end
  end

  defp prompts(%{prompts: false}, _session, _tools), do: {:ok, []}

  defp prompts(settings, session, tools) do
    if Session.has?(session, :prompts) do
      with {:ok, list} <- Session.list(settings, "prompts/list", "prompts", settings.max_tools) do
        read = Enum.map(list, &Tools.read_prompt(settings, &1, tools))
        {:ok, read |> Enum.filter(&wanted?(settings, &1)) |> Enum.map(&free(&1, tools))}
      end
    else
      {:ok, []}
    end
  end

  # A tool may also be named `prompt.NAME`.
  defp free({:ok, %{name: name, tool: prompt}} = read, tools) do
    if Enum.any?(tools, &(&1.name == name)),
      do: {:error, prompt, "tools have its names"},
      else: read
  end

  defp free(error, _tools), do: error

  defp wanted?(settings, {:ok, %{kind: :tool} = tool}), do: Settings.tool?(settings, tool.tool)
  defp wanted?(settings, {:ok, prompt}), do: Settings.prompt?(settings, prompt.tool)
  defp wanted?(_settings, {:error, _id, _reason}), do: true

  defp skills(%{skills: false}, _session), do: {:ok, []}

  defp skills(settings, session) do
    if Session.has?(session, :skills) do
      with {:ok, list} <- Session.list(settings, "skills/list", "skills", settings.max_skills),
           do: {:ok, Enum.map(list, &Skills.read/1)}
    else
      {:ok, []}
    end
  end

  # Of two with one name neither is used: nobody could say which of them was approved.
  defp unique(read, key) do
    good = for {:ok, item} <- read, do: item
    counts = Enum.frequencies_by(good, key)
    {used, double} = Enum.split_with(good, &(counts[key.(&1)] == 1))
    double = for id <- double |> Enum.map(key) |> Enum.uniq(), do: {id, "it is listed twice"}
    {used, double ++ for({:error, id, reason} <- read, do: {id, reason})}
  end

  # The keys that the function of the application accepts now, with their digests.
  defp accepted(%{approve: approve} = settings, listing, decisions) when is_function(approve) do
    for offer <- all(settings, listing, decisions),
        offer.status in [:new, :changed],
        accept?(approve, offer),
        into: %{},
        do: {key(offer), offer.digest}
  end

  defp accepted(_settings, _listing, _decisions), do: %{}

  defp accept?(approve, offer) do
    approve.(offer) == true
  rescue
    _error -> false
  end

  defp listed(state, %{accepted: accepted} = listing) do
    state = %{state | listing: Map.delete(listing, :accepted), error: nil}
    # A file that was wrong may be right now.
    state = %{state | rejected: %{}}

    if accepted == %{} do
      render(state)
    else
      new = decisions(state, accepted, :approved, "the option :approve")

      case save(state, &Map.reject(new, fn one -> refused?(&1, one) end)) do
        {:ok, state} -> render(state)
        {:error, reason} -> render(%{state | unsaved: reason})
      end
    end
  end

  # The function replaces no refusal of the same offer, which may be newer than its listing.
  defp refused?(stored, {key, %{digest: digest}}),
    do: match?(%{decision: :refused, digest: ^digest}, stored[key])

  # Publishes the approved part of the last good listing, and the findings.
  defp render(%{listing: nil} = state) do
    State.put_findings(state.settings, findings(state, []))
    state
  end

  defp render(%{settings: settings, listing: listing} = state) do
    offers = all(settings, listing, decisions(state))
    used = for %{status: :approved} = offer <- offers, into: MapSet.new(), do: key(offer)
    commands = listing.tools ++ listing.prompts
    tools = for tool <- commands, "#{tool.kind}:#{tool.tool}" in used, do: tool
    skills = for skill <- listing.skills, "skill:#{skill.uri}" in used, do: skill

    before = State.entries(settings)

    entries = %{
      pages: Enum.map(tools ++ skills, & &1.page),
      tools: Map.new(tools, &{&1.name, &1}),
      skills: Map.new(skills, &{&1.name, &1})
    }

    State.put_entries(settings, entries)
    State.put_offers(settings, offers)
    State.put_findings(settings, findings(state, offers))
    if entries.pages != before.pages, do: publish(settings)
    state
  end

  # A watcher that restarts reads all sources.
  defp publish(settings) do
    Watcher.refresh_pages(settings.book)
  catch
    :exit, _reason -> :ok
  end

  @spec all(Settings.t(), map(), Approvals.t()) :: [offer()]
  defp all(settings, listing, decisions) do
    tools =
      for tool <- listing.tools ++ listing.prompts,
          do: offer(settings, tool.kind, tool.tool, tool, [], decisions)

    skills =
      for skill <- listing.skills do
        files = skill.files |> Map.keys() |> Enum.sort()
        offer(settings, :skill, skill.uri, skill, files, decisions)
      end

    tools ++ skills
  end

  defp offer(settings, kind, id, item, files, decisions) do
    decision = decisions["#{kind}:#{id}"]

    status = if settings.approve == :all, do: :approved, else: status_of(decision, item.digest)

    %{
      server: settings.label,
      kind: kind,
      id: id,
      name: item.name,
      description: item.about,
      digest: item.digest,
      files: files,
      status: status,
      decided_by: decision[:by],
      decided_at: decision[:at]
    }
  end

  defp status_of(nil, _digest), do: :new
  defp status_of(%{digest: digest, decision: decision}, digest), do: decision
  defp status_of(_other, _digest), do: :changed

  # Diagnostics

  defp findings(state, offers) do
    refused = if state.listing, do: state.listing.refused, else: []

    of_entries = for {id, reason} <- refused, do: refused(state, id, reason)
    of_files = for {{_uri, path}, {name, why}} <- state.rejected, do: file(state, name, path, why)
    waiting = for offer <- offers, offer.status in [:new, :changed], do: waits(state, offer)
    found = unkept(state) ++ unavailable(state) ++ of_entries ++ of_files ++ waiting
    {shown, more} = Enum.split(found, @max_findings)

    if more == [] do
      shown
    else
      message = "this server has #{length(more)} more findings"
      shown ++ [finding(state, :server_entry_refused, :warning, message, nil)]
    end
  end

  # The decisions cannot be read or written.
  defp unkept(state) do
    for reason <- Enum.uniq([state.unread, state.unsaved]), reason != nil do
      hint = if reason =~ ~r/\Athe lock file/, do: "restore it, or move it away and approve again"
      finding(state, :server_unavailable, :error, reason, hint)
    end
  end

  defp unavailable(%{error: nil}), do: []

  defp unavailable(state) do
    last =
      if state.listing,
        do: "its last tools and skills stay in use",
        else: "it has no tools and skills until it answers"

    message = "#{Exception.message(state.error)}; #{last}"
    [finding(state, :server_unavailable, :error, message, nil)]
  end

  defp refused(state, nil, reason),
    do: finding(state, :server_entry_refused, :warning, "an entry is not used: #{reason}", nil)

  defp refused(state, id, reason) do
    message = "#{External.line(id, 120)} is not used: #{reason}"
    finding(state, :server_entry_refused, :warning, message, nil)
  end

  defp file(state, name, path, reason) do
    message = "the file #{External.line(path)} of #{name} was not shown: #{reason}"
    finding(state, :server_entry_refused, :error, message, nil)
  end

  defp waits(state, %{status: status} = offer) do
    change =
      if status == :new,
        do: "was never approved",
        else: "has changed since it was #{decisions(state)[key(offer)].decision}"

    message = "the #{offer.kind} #{offer.name} is not used: it #{change}"

    hint =
      "read it, then approve it with Skillbook.MCP.Client.approve/4 or " <>
        "`skillbook servers --approve #{offer.name}`"

    finding(state, :server_entry_unapproved, :warning, message, hint)
  end

  defp finding(state, code, severity, message, hint) do
    path = "mcp:#{state.settings.label}"
    %Diagnostic{code: code, severity: severity, path: path, message: message, hint: hint}
  end

  defp now, do: System.monotonic_time(:millisecond)
end
