defmodule Skillbook.Agent.Part do
  @moduledoc false
  # Agents, the router, approvals and stored conversations of a book.

  use Skillbook.Part

  alias Skillbook.Agent.{Prices, Prose, Runs, Settings}
  alias Skillbook.Approval.Decision
  alias Skillbook.Model.JSONSchema
  alias Skillbook.{Approval, Book, Entry, OptionError, Preflight, Source}
  alias Skillbook.Support.{Operation, Options}
  alias Skillbook.Transcript.Conversations

  @approvals [expire: 604_800, keep: 90, max_waiting: 100, lease: 60_000]
  # Those of stored conversations, which are off by default.
  @conversations [keep: 30, max: 200]
  @durable [keep: 7, lease: 60_000, max_continued: 3, max_running: 5, continue: true]

  @impl true
  def options do
    [
      approvals: {"a keyword list", &Keyword.keyword?/1},
      prices:
        {"a map of names of models to [input: number, output: number, cached: number, " <>
           "cache_write: number], of which the first two are needed", &Prices.valid?/1},
      budget: {"a keyword list", &Keyword.keyword?/1},
      agent: {"a keyword list or nil", &(is_nil(&1) or Keyword.keyword?(&1))},
      preflight: {"a keyword list, false or nil", &(&1 in [nil, false] or Keyword.keyword?(&1))},
      conversations: {"[keep: days, max: number] or false", &conversations?/1},
      durable: {"a boolean or a keyword list", &(is_boolean(&1) or Keyword.keyword?(&1))}
    ]
  end

  @impl true
  def read(book, options) do
    approvals = options[:approvals] || []

    with :ok <- Options.validate(approvals, "a book's :approvals", approvals()),
         {:ok, agent} <- Settings.read_book(options[:agent]),
         {:ok, budget} <- budget(options[:budget], options),
         {:ok, durable} <- durable(options[:durable], options[:store]),
         :ok <- Preflight.Settings.validate(options[:preflight], "a book's :preflight") do
      conversations = options[:conversations] || false

      {:ok,
       Book.put(book,
         agent: agent,
         prices: Map.new(options[:prices] || []),
         budget: budget,
         preflight: options[:preflight],
         approvals: Keyword.merge(@approvals, approvals),
         conversations: conversations && Keyword.merge(@conversations, conversations),
         durable: durable
       )}
    end
  end

  defp budget(nil, _options), do: {:ok, []}

  # Costs are counted in the database.
  defp budget(budget, options) do
    each = {"a number above 0 or a map of names to such numbers", &(amount?(&1) or amounts?(&1))}
    all = {"a number above 0", &amount?/1}
    limits = [day: all, tenant_day: each, profile_day: each, skill_day: each]

    with :ok <- Options.validate(budget, "a book's :budget", limits) do
      if budget != [] and (options[:store] == nil or options[:usage] == false) do
        problem = {:invalid, "none without a :store that counts :usage,", budget}
        {:error, %OptionError{subject: "a book", option: :budget, problem: problem}}
      else
        {:ok, budget}
      end
    end
  end

  defp amount?(amount), do: is_number(amount) and amount > 0

  defp amounts?(by_name),
    do:
      is_map(by_name) and
        Enum.all?(by_name, fn {name, max} -> Options.text?(name) and amount?(max) end)

  defp durable(no, _store) when no in [nil, false], do: {:ok, false}

  defp durable(durable, nil) do
    problem = {:invalid, "false for a book without a :store,", durable}
    {:error, %OptionError{subject: "a book", option: :durable, problem: problem}}
  end

  defp durable(true, _store), do: {:ok, @durable}

  defp durable(options, _store) do
    schema = [
      keep: {"a number of days from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1},
      max_continued: {"a whole number from 1", &Options.positive?/1},
      max_running: {"a whole number from 1", &Options.positive?/1},
      continue: {"a boolean", &is_boolean/1}
    ]

    with :ok <- Options.validate(options, "a book's :durable", schema),
         do: {:ok, Keyword.merge(@durable, options)}
  end

  defp approvals do
    [
      expire: {"a number of seconds from 1", &Options.positive?/1},
      keep: {"a number of days from 1", &Options.positive?/1},
      max_waiting: {"a whole number from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1}
    ]
  end

  defp conversations?(false), do: true

  defp conversations?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn {key, value} -> key in [:keep, :max] and Options.positive?(value) end)
  end

  @impl true
  def children(%{of_parts: %{durable: false}}), do: []
  def children(book), do: [{Runs.Server, book}]

  # Conversations and runs may be left of a time when the book stored them.
  @impl true
  def ages(%{of_parts: %{approvals: approvals, conversations: conversations} = parts}) do
    [
      {:approvals, approvals[:keep], &Approval.Table.prune/3},
      {:conversations, (conversations || @conversations)[:keep], &Conversations.prune/3},
      {:agent_runs, (parts.durable || @durable)[:keep], &Runs.Table.prune/3}
    ]
  end

  @impl true
  def check_profile(options, subject),
    do: Preflight.Settings.validate(options[:preflight], "the :preflight of #{subject}")

  @impl true
  def builtins(book) do
    domains = ["agent", "workflow", "workflows"]
    agent = %{source: Source.builtin(:agent), of: domains, domains: domains, names: %{}}
    # A command that could never succeed would only fill the prompt.
    if (book.of_parts[:agent] || [])[:hand_over] in [nil, []],
      do: [agent],
      else: [agent, %{agent | source: Source.builtin(:hand_over), of: ["agent"]}]
  end

  @impl true
  def operations do
    doc = "Runs a command. The agent follows a page of prose."
    carry_out = %Operation{name: :carry_out, doc: doc, subject: :line, run: &Prose.carry_out/3}
    [%{carry_out | caller: :trusted} | Decision.operations() ++ Runs.operations()]
  end

  @impl true
  def check_page(%Entry{name: name, data: %{"output" => schema}}) do
    JSONSchema.check!(schema)
  rescue
    ArgumentError ->
      problem = {:invalid, ~s(a JSON schema with "type" => "object"), schema}
      {:error, %OptionError{subject: "the skill #{name}", option: :output, problem: problem}}
  end

  def check_page(_entry), do: :ok

  @impl true
  defdelegate store_call(routed, context, written, ref), to: Approval.Pending, as: :store
end
