defmodule Skillbook.Telemetry.Events do
  @moduledoc false
  # The only list of the events: `Skillbook.Telemetry` documents it, and docs/telemetry.md has the
  # same table. The `:telemetry` of the tests refuses an event that is not as listed here.

  @type t :: %{
          name: [atom(), ...],
          measurements: [atom()],
          metadata: [atom()],
          optional: [atom()],
          about: String.t()
        }

  @start [:monotonic_time, :system_time]
  @stop [:duration, :monotonic_time]

  @command [:book, :profile, :tenant, :generation, :skill, :effect]
  @workflow [:book, :profile, :skill]
  @firing [:book, :profile, :skill, :at, :attempt]
  @agent [:book, :profile, :tenant, :skill, :depth, :continued, :provider, :model]
  @preflight [:book, :profile, :among]
  @model [:book, :profile, :turn, :provider, :model]
  @breaker [:failures, :system_time]
  @failing [:book, :profile, :tenant, :skill]
  @reload [:duration, :entries, :added, :changed, :removed]

  # {name after :skillbook, when, measurements, metadata}
  @rows [
    {[:command, :start],
     "a command is about to run; also for unknown commands, `get_skill` and `--help`, which " <>
       "run nothing", @start, @command},
    {[:command, :stop], "the command has its result, even if it was refused", @stop,
     @command ++ [:status, :reads]},
    {[:command, :exception],
     "its handler is missing, crashed, timed out or returned an invalid answer, or the book " <>
       "stopped before it ran", @stop, @command ++ [:status, :kind]},
    {[:policy, :decision], "a command with side effects was allowed or refused", [:duration],
     [:book, :profile, :skill, :writes, :decision]},
    {[:approval, :changed], "a call waits for an approval, or its status changed", [:system_time],
     [:book, :profile, :skill, :ref, :status]},
    {[:queue, :wait], "a command was queued for a free slot, and the wait is over", [:duration],
     [:book, :skill, :granted]},
    {[:breaker, :opened], "a skill goes out of service", @breaker, @failing},
    {[:breaker, :half_open], "one call is about to be let through", @breaker, @failing},
    {[:breaker, :closed], "that call succeeded; the skill is in service again", @breaker,
     @failing},
    {[:breaker, :reset], "an operator reset it; the skill is in service again", @breaker,
     @failing},
    {[:operation, :done],
     "a schedule was paused, resumed or asked to run, or a circuit breaker was reset",
     [:system_time], [:book, :profile, :skill, :action]},
    {[:result, :cut], "a result was truncated", [:characters, :shown],
     [:book, :profile, :skill, :kept]},
    {[:catalog, :reload], "a book has a new generation", @reload, [:book, :generation]},
    {[:store, :away], "a book can no longer read its database", [:system_time], [:book, :kind]},
    {[:store, :late],
     "a writer has waited 15 seconds for the catalog to show its write, and continues " <>
       "without; the entry is written", [:revision], [:book]},
    {[:store, :back], "the book can read its database again, and has caught up", [:duration],
     [:book]},
    {[:store, :fetched],
     "entries that were not in memory were read from the database, at a start or for a reader " <>
       "of their tenant, or that failed", [:duration, :rows], [:book, :tenant, :kind]},
    {[:connection, :changed],
     "a profile was connected to an account or disconnected, or the " <>
       "vendor withdrew the connection", [:system_time], [:book, :profile, :account, :status]},
    {[:connection, :renewed],
     "the token of a connection was renewed or read from the database, or that failed",
     [:duration], [:book, :profile, :account, :status]},
    {[:mcp_client, :listed], "an MCP server was asked for its tools, prompts and skills",
     [:duration, :tools, :prompts, :skills, :refused], [:book, :server, :status]},
    {[:embedding, :batch], "the embedder answered for a batch of texts, or failed",
     [:duration, :texts], [:book, :kind]},
    {[:embedding, :progress], "more texts of a book have a vector", [:done, :total], [:book]},
    {[:embedding, :retry], "embedding failed, and the next attempt waits", [:delay],
     [:book, :kind]},
    {[:embedding, :query],
     "the embedder answered for the query of a search, or failed; then the search goes by words",
     [:duration], [:book, :kind]},
    {[:vault, :progress], "a batch of a large vault was indexed", [:done, :total],
     [:book, :vault]},
    {[:vault, :indexed], "a vault was indexed, and had changes",
     [:indexed, :removed, :unchanged, :skipped], [:book, :vault]},
    {[:workflow, :start], "a run of a workflow begins", @start, @workflow},
    {[:workflow, :stop], "it ended, for any reason", @stop, @workflow ++ [:status, :steps]},
    {[:workflow, :exception], "an error in the application's code ended it, such as its model's",
     @stop, @workflow ++ [:kind]},
    {[:firing, :start], "an entry runs on its schedule", @start, @firing},
    {[:firing, :stop], "it ended", @stop, @firing ++ [:status]},
    {[:firing, :exception], "an error in the application's code ended it, such as its model's",
     @stop, @firing ++ [:kind]},
    {[:agent, :start], "a run of `Skillbook.Agent` begins", @start, @agent},
    {[:agent, :stop], "it ended, for any reason", @stop,
     @agent ++ [:status, :turns, :usage, :cost]},
    {[:agent, :exception], "an error in its caller's code ended it", @stop, @agent ++ [:kind]},
    {[:preflight, :start], "the router picks skills or a profile for a message", @start,
     @preflight},
    {[:preflight, :stop], "it has picked; failed stages do not change that", @stop,
     @preflight ++ [:picks, :cached]},
    {[:preflight, :exception], "an error in its own code", @stop, @preflight ++ [:kind]},
    {[:preflight, :stage], "a stage ended, or was not needed", [:duration],
     @preflight ++ [:stage, :status]},
    {[:prompt, :section], "a section of the application was made, or left out", [:duration],
     [:book, :profile, :section, :status]},
    {[:model, :start], "a run asks its model", @start, @model},
    {[:model, :stop], "the model answered", @stop,
     @model ++ [:finish_reason, :usage, :cost, :answered_by]},
    {[:model, :exception], "it did not answer, or not completely", @stop, @model ++ [:kind]},
    {[:connection, :request], "a request to the service of a connection ended, after its repeats",
     [:duration], [:book, :profile, :account, :method, :status, :kind, :attempts]},
    {[:web, :request, :stop],
     "a request of HTTP has its response; the parts of a stream follow later", [:duration],
     [:book, :profile, :route, :method, :status, :client]},
    {[:mcp, :request, :stop], "a request of a client of MCP has its answer", [:duration],
     [:book, :profile, :method, :revision, :status]},
    {[:model, :retry], "an attempt failed, and the next one waits", [:delay],
     @model ++ [:attempt, :kind]}
  ]

  @events (for {name, about, measurements, metadata} <- @rows do
             optional = if hd(name) == :command, do: [:flags], else: []

             %{
               name: [:skillbook | name],
               measurements: measurements,
               metadata: metadata,
               optional: optional,
               about: about
             }
           end)

  @doc "All events, in the order of the docs."
  @spec all() :: [t()]
  def all, do: @events

  @doc "The events as a table in Markdown."
  @spec table() :: String.t()
  def table do
    rows =
      for event <- @events do
        cells = [
          code(inspect(event.name)),
          event.about,
          codes(event.measurements),
          codes(event.metadata)
        ]

        "| #{Enum.join(cells, " | ")} |\n"
      end

    "| event | when | measurements | metadata |\n|---|---|---|---|\n#{rows}"
  end

  defp codes(names), do: Enum.map_join(names, ", ", &code/1)
  defp code(name), do: "`#{name}`"
end
