defmodule Skillbook.Usage do
  @moduledoc """
  Reports how often the skills of a book were read and run, and how often they failed.

      {:ok, report} = Skillbook.Usage.report(Skillbook.View.all(MyApp.Skills), by: :profile)
      for row <- report.rows, do: {row.key, row.read, row.run, row.failed}

  A book with a database counts the commands of replies, tools and the shell. Counts are kept in
  memory and stored every few seconds and when the book stops; a virtual machine that is killed
  loses the unstored ones. Several nodes on one database add up. Elixir calls that only read, such
  as `Skillbook.get/2` and `Skillbook.View.fetch/2`, are not counted.

  ## Events

    * `:read` - the text was returned: by `get_skill`, by a domain's `.all`, or as the template of
      an entry without a handler
    * `:run` - the handler returned a result
    * `:failed` - the command failed, crashed or was refused

  ## Fields

    * `:by` - the grouping of the rows
    * `:since`, `:until` - the period, in whole hours in UTC; days that ended 30 days ago count as
      a whole
    * `:rows` - maps with `:key` (a name, a profile's id, an event, an hour such as
      `"2026-03-01T09"` or a day such as `"2026-03-01"`; a list of these if `:by` is a list),
      `:read`, `:run`, `:failed`, their sum `:count`, and `:duration`, the average milliseconds of
      a run, or `nil` without runs. The highest counts come first; hours and days are in order
    * `:total` - a map of the same form for all rows together, with the key `nil`
    * `:unnamed` - the number of events without a name, because there were too many different
      names at once; 0 in the report of a restricted profile

  ## Access

  A report contains only names that its view sees now. A profile with all grants and all skills
  sees the counts of all profiles, and so does the name of a book without `:profile`. Any other
  profile sees its own, unless trusted code passes `profiles: :all`.
  """

  alias Skillbook.Book.Cache
  alias Skillbook.SQL.Tenants
  alias Skillbook.Support.{Operation, Options}
  alias Skillbook.Usage.{Counter, Writer}
  alias Skillbook.{Book, OptionError, Profile, SQL, View}

  @type group :: :name | :profile | :event | :time
  @type by :: group() | [group(), ...]
  @type row :: %{
          key: String.t() | [String.t(), ...] | nil,
          read: non_neg_integer(),
          run: non_neg_integer(),
          failed: non_neg_integer(),
          count: non_neg_integer(),
          duration: float() | nil
        }
  @type t :: %__MODULE__{
          by: by(),
          since: DateTime.t(),
          until: DateTime.t(),
          rows: [row()],
          total: row(),
          unnamed: non_neg_integer()
        }

  @typedoc "What calls of models used; `:cost` is in the currency of the book's `:prices`."
  @type cost :: %{
          key: String.t() | [String.t(), ...] | nil,
          prompt_tokens: non_neg_integer(),
          completion_tokens: non_neg_integer(),
          cached_tokens: non_neg_integer(),
          cost: float()
        }

  @enforce_keys [:by, :since, :until, :rows, :total, :unnamed]
  defstruct @enforce_keys

  @day 86_400
  @groups [:name, :profile, :event, :time]
  @groups_of_costs [:name, :profile, :tenant, :time]

  @doc false
  def operations do
    row = [text?: [:key], number: ~w(read run failed count)a, number?: [:duration]]

    [
      %Operation{
        name: :usage,
        doc: "Reports how often skills were read and run, and how often they failed.",
        input: [
          by: {{:one_of, @groups}, "the groups, `name` by default"},
          limit: {{:number, 1, 100_000}, "the most rows, all by default"},
          after: {{:text, 300}, "the `key` of the last row of the page before"}
        ],
        output:
          [text: [:by], time: ~w(since until)a, number: [:unnamed]] ++
            [objects: [rows: [row]], object: [total: row]],
        run: &report/2
      }
    ]
  end

  @doc """
  Returns the counts that the view of a running book may see.

  ## Options

    * `:since`, `:until` - a `DateTime` each. Default: the last 7 days
    * `:by` - `:name` (the default), `:profile`, `:event` or `:time`, or a list of them:
      `[:time, :name]` has a row for each name and hour
    * `:names` - globs for names, as in `Skillbook.Profile`. Default: all names
    * `:profiles` - `:own` or `:all`. Default: `:all` for an unrestricted profile, else `:own`
    * `:limit` - the largest number of rows; all by default
    * `:after` - the rows after that of this `:key`. The period of all pages should have ended,
      since new counts change the order

  A book without a database, or with `usage: false`, counts nothing, and its reports are empty.

      iex> options = [name: UsageExample, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> view = Skillbook.view(UsageExample)
      iex> Skillbook.run(view, "```cmd\\nmemory.save --content Milk\\nmemory.save\\n```")
      iex> {:ok, report} = Skillbook.Usage.report(view)
      iex> for row <- report.rows, do: {row.key, row.read, row.run, row.failed}
      [{"memory.save", 0, 1, 1}]
  """
  @spec report(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, t()} | {:error, OptionError.t() | SQL.Error.t()}
  def report(view_or_book, options \\ []) do
    {view, options} = from(view_or_book, options, "Skillbook.Usage.report/2")
    book = Book.of!(view)

    with :ok <- Options.validate(options, "a report of usage", pages() ++ schema()),
         {:ok, named} <- narrow(book, view, options[:names]),
         {since, until} = period(options),
         {:ok, rows} <- rows(book, since, until, view.profile, options) do
      {:ok, build(rows, view.profile, named, since, until, options)}
    end
  end

  @doc """
  Returns what runs of `Skillbook.Agent` used of models: tokens, and their cost by the book's
  `:prices`.

  Takes the options of `report/2` except `:names`; `:by` may be `:name` (the default), `:profile`,
  `:tenant`, `:time`, or a list of them. The name is that of the skill that ran the agent: a
  workflow of prose, or a command that dispatches agents. Conversations, skills that the view does
  not show, and profiles without a tenant have the key `""`.

  The rows and the total are maps with `:key`, `:prompt_tokens`, `:completion_tokens`,
  `:cached_tokens` and `:cost`. Calls of models without a price cost nothing here.

      iex> {:ok, _} = Skillbook.start_link(name: CostsExample, store: ":memory:")
      iex> Skillbook.Usage.costs(Skillbook.view(CostsExample)) |> elem(1) |> Map.get(:total)
      %{key: nil, prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, cost: 0.0}
  """
  @spec costs(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, %{rows: [cost()], total: cost(), since: DateTime.t(), until: DateTime.t()}}
          | {:error, OptionError.t() | SQL.Error.t()}
  def costs(view_or_book, options \\ []) do
    {view, options} = from(view_or_book, options, "Skillbook.Usage.costs/2")
    book = Book.of!(view)
    schema = Keyword.drop(schema(), [:names])
    groups = ":name, :profile, :tenant or :time, or a list of them"
    schema = Keyword.put(schema, :by, {groups, &costs?/1})

    with :ok <- Options.validate(options, "a report of costs", schema),
         {since, until} = period(options),
         {:ok, rows} <-
           rows(book, since, until, view.profile, Map.put(Map.new(options), :costs, true)) do
      by = options[:by] || :name
      hidden = hidden(view, rows)
      rows = for [name | row] <- rows, do: [if(name in hidden, do: "", else: name) | row]
      grouped = rows |> Enum.group_by(&key(&1, by)) |> Enum.map(&cost/1)
      grouped = if time?(by), do: Enum.sort_by(grouped, & &1.key), else: dearest(grouped)
      {:ok, %{rows: grouped, total: cost({nil, rows}), since: since, until: until}}
    end
  end

  @doc false
  # A book without a profile means everybody, as in `Skillbook.approvals/2`.
  @spec from(Skillbook.view_or_book(), Skillbook.options(), String.t()) :: {View.t(), keyword()}
  def from(view_or_book, options, function) do
    named? = view_or_book not in [nil, true, false] and is_atom(view_or_book)
    named? = named? and Options.options?(options)
    options = if named?, do: Options.keywords(options), else: options

    if named? and not Keyword.has_key?(options, :profile),
      do: View.from(View.all(view_or_book), options, function),
      else: View.from(view_or_book, options, function)
  end

  defp dearest(rows), do: Enum.sort_by(rows, &{-&1.cost, -&1.prompt_tokens, &1.key})

  defp costs?(by), do: groups?(by, @groups_of_costs)

  defp cost({key, rows}) do
    sums = Enum.group_by(rows, &Enum.at(&1, 2), &Enum.at(&1, 5))
    of = fn event -> sums |> Map.get(event, []) |> Enum.sum() end

    %{
      key: key,
      prompt_tokens: of.("prompt"),
      completion_tokens: of.("completion"),
      cached_tokens: of.("cached"),
      cost: of.("cost") / 1_000_000_000
    }
  end

  @doc false
  # The costs of today's runs, in UTC and billionths, of a `:tenant`, a `:profile` and the
  # `:name` of a skill if given.
  @spec cost_of_day(Book.t(), keyword()) :: {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def cost_of_day(book, scope) do
    hours = div(System.os_time(:second), @day) * 24
    day = hours |> Kernel.*(3600) |> DateTime.from_unix!() |> DateTime.to_date()
    columns = for {column, value} <- scope, do: {column, value(column, value)}
    {conditions, values} = columns |> Enum.with_index(2) |> Enum.map(&condition/1) |> Enum.unzip()

    statement =
      "select cast(coalesce(sum(count), 0) as bigint) from skillbook_usage where " <>
        Enum.join(["event = 'cost'", "bucket >= $1" | conditions], " and ")

    unstored = Counter.unstored_cost(book.name, hours, scope)

    with {:ok, %{rows: [[stored]]}} <-
           SQL.query(Book.sql(book), statement, [Date.to_iso8601(day) | values]),
         do: {:ok, stored + unstored}
  end

  defp value(:tenant, tenant), do: Tenants.to_column(tenant)
  defp value(_column, text), do: text

  defp condition({{column, value}, number}), do: {"#{column} = $#{number}", value}

  defp narrow(book, view, globs) do
    if globs == nil or literal?(globs),
      do: {:ok, view},
      else: View.new(book.catalog, Profile.narrow(view.profile, globs))
  end

  # Few names without the characters of a glob. The database looks for them.
  @max_literal 50

  defp literal?(globs),
    do: length(globs) <= @max_literal and not Enum.any?(globs, &(&1 =~ ~r/[*?\[\]{}!\\]/))

  defp period(options) do
    until = Keyword.get_lazy(options, :until, &DateTime.utc_now/0)
    {Keyword.get_lazy(options, :since, fn -> DateTime.add(until, -7 * @day, :second) end), until}
  end

  defp rows(%{store: store, usage: usage}, _since, _until, _profile, _options)
       when store == nil or usage == false,
       do: {:ok, []}

  # An hour or a day counts if a part of it lies within the period.
  defp rows(book, since, until, profile, options) do
    by = List.wrap(options[:by])
    column = fn group, column -> if group in by, do: column, else: "''" end
    {within, params} = within(since, until, profile, options)

    statement = """
    select name, #{column.(:profile, "profile")}, event, #{column.(:time, "bucket")},
      #{column.(:tenant, "tenant")}, cast(sum(count) as bigint), cast(sum(duration) as bigint)
    from skillbook_usage where #{within}
    group by 1, 2, 3, 4, 5
    """

    with :ok <- Writer.flush(book.name),
         {:ok, %{rows: rows}} <- SQL.query(Book.sql(book), statement, params),
         do: {:ok, rows}
  end

  # A day is less than its hours as a text, so the key finds both.
  defp within(since, until, profile, options) do
    all_profiles? =
      options[:profiles] == :all or (options[:profiles] == nil and Profile.unrestricted?(profile))

    {own, params} = if all_profiles?, do: {"", []}, else: {"and profile = $4", [profile.id]}
    hour = hour(since)
    params = [hour, binary_part(hour, 0, 10), hour(until)] ++ params
    {readable, tenants} = Tenants.readable(profile, "tenant", length(params) + 1)
    {named, params} = named(options[:names], params ++ tenants)

    within =
      "bucket >= $2 and bucket <= $3 and (bucket >= $1 or length(bucket) = 10) " <>
        "and #{readable} #{own} #{named} and event in (#{events(options)})"

    {within, params}
  end

  @doc false
  # A value that differs if a report of a period has changed, for lists that are kept of it: if
  # there are new counts, or if the view shows other ones of their names.
  @spec state(View.t(), DateTime.t(), DateTime.t()) ::
          {:ok, term()} | {:error, SQL.Error.t()}
  def state(view, since, until) do
    book = Book.of!(view)

    if book.store == nil or book.usage == false do
      {:ok, nil}
    else
      statement = "select value from skillbook_settings where key = 'usage'"

      with :ok <- Writer.flush(book.name),
           {:ok, %{rows: [[number]]}} <- SQL.query(Book.sql(book), statement),
           rights = view |> View.state() |> Tuple.delete_at(0),
           key = {:usage_names, rights, hour(since), hour(until), number},
           shown = {:usage_shown, View.state(view), key},
           {:ok, missing} <-
             Cache.keep_ok(view.book, shown, fn -> missing(view, key, since, until) end),
           do: {:ok, {key, missing}}
    end
  end

  # A digest of the names that the view does not show. New counts rarely have new names, and a
  # change of the catalog rarely shows or hides one.
  defp missing(view, key, since, until) do
    with {:ok, names} <- Cache.keep_ok(view.book, key, fn -> names(view, since, until) end),
         do: {:ok, Cache.key(View.missing(view, names))}
  end

  defp names(view, since, until) do
    {within, params} = within(since, until, view.profile, %{all_events: true})
    statement = "select distinct name from skillbook_usage where #{within}"

    with {:ok, %{rows: rows}} <- SQL.query(Book.sql(Book.of!(view)), statement, params),
         do: {:ok, Enum.concat(rows)}
  end

  # Those without a name are counted, too.
  defp named(nil, params), do: {"", params}

  defp named(names, params) do
    if literal?(names) do
      places = for number <- 1..length(names)//1, do: "$#{length(params) + number}"
      {"and name in (#{Enum.join(["''" | places], ", ")})", params ++ names}
    else
      {"", params}
    end
  end

  @counts "'read', 'run', 'failed'"
  @costs "'prompt', 'completion', 'cached', 'cost'"

  defp events(%{all_events: true}), do: "#{@counts}, #{@costs}"
  defp events(%{costs: true}), do: @costs
  defp events(_options), do: @counts

  defp hour(time),
    do: time |> DateTime.shift_zone!("Etc/UTC") |> DateTime.to_iso8601() |> binary_part(0, 13)

  defp build(rows, profile, view, since, until, options) do
    {unnamed, named} = Enum.split_with(rows, fn [name | _] -> name == "" end)
    hidden = hidden(view, named)
    named = Enum.reject(named, &(hd(&1) in hidden))
    by = options[:by] || :name

    %__MODULE__{
      by: by,
      since: since,
      until: until,
      rows: named |> Enum.group_by(&key(&1, by)) |> Enum.map(&sum/1) |> sort(by) |> page(options),
      total: sum({nil, named}),
      unnamed: if(Profile.unrestricted?(profile), do: sum({nil, unnamed}).count, else: 0)
    }
  end

  # The names of rows that the view does not show.
  defp hidden(view, rows),
    do: view |> View.missing(rows |> Enum.map(&hd/1) |> Enum.uniq()) |> MapSet.new()

  defp key(row, groups) when is_list(groups), do: Enum.map(groups, &key(row, &1))
  defp key([name | _], :name), do: name
  defp key([_, profile | _], :profile), do: profile
  defp key([_, _, event | _], :event), do: event
  defp key([_, _, _, bucket | _], :time), do: bucket
  defp key([_, _, _, _, tenant | _], :tenant), do: tenant

  defp sum({key, rows}) do
    {read, run, failed, time} =
      Enum.reduce(rows, {0, 0, 0, 0}, fn [_, _, event, _, _, count, time], {a, b, c, sum} ->
        case event do
          "read" -> {a + count, b, c, sum + time}
          "run" -> {a, b + count, c, sum + time}
          "failed" -> {a, b, c + count, sum + time}
        end
      end)

    timed = run + failed

    %{
      key: key,
      read: read,
      run: run,
      failed: failed,
      count: read + run + failed,
      # Whole microseconds.
      duration: if(timed > 0, do: round(time / timed) / 1000)
    }
  end

  defp sort(rows, by) do
    if time?(by), do: Enum.sort_by(rows, & &1.key), else: Enum.sort_by(rows, &{-&1.count, &1.key})
  end

  defp page(rows, options) do
    last = options[:after]
    rows = if last, do: rows |> Enum.drop_while(&(&1.key != last)) |> Enum.drop(1), else: rows
    if options[:limit], do: Enum.take(rows, options[:limit]), else: rows
  end

  defp pages do
    [
      limit: Options.positive_or_nil(),
      after: {"the key of a row or nil", &(is_nil(&1) or Options.text?(&1) or Options.texts?(&1))}
    ]
  end

  defp time?(by), do: by == :time or match?([:time | _], by)

  defp schema do
    [
      since: {"a DateTime", &is_struct(&1, DateTime)},
      until: {"a DateTime", &is_struct(&1, DateTime)},
      by: {":name, :profile, :event or :time, or a list of them", &groups?(&1, @groups)},
      names: {"a list of globs", &Options.texts?/1},
      profiles: {":own or :all", &(&1 in [:own, :all])}
    ]
  end

  defp groups?([_ | _] = groups, known), do: Enum.uniq(groups) == groups and groups -- known == []
  defp groups?(group, known), do: group in known
end
