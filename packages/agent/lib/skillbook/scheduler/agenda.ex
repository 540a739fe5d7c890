defmodule Skillbook.Agenda do
  @moduledoc """
  The next runs of scheduled entries and the results of the last ones, as one view may see them.

  ## Fields

    * `:now` - the time after which the next runs are, UTC
    * `:next` - a map for each entry with a schedule, the soonest first:
      * `:name` - the name of the entry
      * `:schedule`, `:timezone` - as texts
      * `:means` - the schedule in words
      * `:off` - whether its schedule is off, as those of built-in skills are that the option
        `:schedules` does not name. Then it has no next times
      * `:run_as` - the id of the profile that it runs as: that of its page, or that of the option
        `:schedules`, and for an entry of the store the creator's. Only this profile and an
        unrestricted view get an id that is not in the page. `nil` if there is none, and if the
        schedule is off
      * `:at` - the next times, UTC
      * `:local` - the same times in the time zone, as texts
      * `:paused` - `nil`, or a map: `:at`, since when the schedule is paused; `:by` and
        `:reason`, which only an unrestricted view gets. At the next times it does not run, but
        it is listed with them
    * `:last` - a map for each firing, the newest first: `:name`, `:at`, `:status`, `:profile`,
      `:node`, `:attempts`, `:started_at`, `:finished_at`, `:duration` in milliseconds, and
      `:text`

  The status of a firing is one of:

    * `:queued` - dispatched to another queue
    * `:running`
    * `:ok`
    * `:template` - the page has no commands and the book has no agent; its text is the result
    * `:pending` - it waits for an approval, see `Skillbook.approvals/2`
    * `:failed`
    * `:interrupted` - the book stopped while it ran; a part of its work may be done
    * `:skipped` - the firing before it was still running
    * `:missed` - no node could run it in time

  ## Access

  Only entries that the view shows now are listed. A profile with all grants and all skills sees
  the results of all profiles, any other profile only its own.
  """

  alias Skillbook.Schedule.Clock
  alias Skillbook.Scheduler.{Firings, Job, Operations}
  alias Skillbook.Book.Cache
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Catalog, Entry, OptionError, Profile, SQL, Schedule, View}

  @type t :: %__MODULE__{now: DateTime.t(), next: [map()], last: [map()]}

  @enforce_keys [:now, :next, :last]
  defstruct @enforce_keys

  @max_count 1_000

  @doc """
  Returns the agenda of a running book.

  Raises `ArgumentError` for the view of a catalog without a book.

  ## Options

    * `:now` - a `DateTime`. Default: the book's clock
    * `:names` - globs over names, as in `Skillbook.Profile`. Default: all
    * `:times` - how many next times each entry has, 1 to 1,000. Default: 1
    * `:limit` - how many entries `:next` has, the soonest first. Default: all
    * `:last` - how many firings to return, 1 to 1,000. Default: 20
    * `:after` - the firings after this one: the last of the page before, or its time and name as
      text, such as `"2026-03-09T08:00:00Z digest"`

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "agenda_example")
      iex> File.mkdir_p!(folder)
      iex> page = "---\\nname: digest\\ndescription: Digest\\nschedule: 0 8 * * 1\\n---\\n"
      iex> File.write!(Path.join(folder, "digest.md"), page)
      iex> {:ok, _pid} = Skillbook.start_link(name: :agenda, builtins: false, sources: [folder])
      iex> view = Skillbook.view(:agenda)
      iex> {:ok, agenda} = Skillbook.schedule(view, now: ~U[2026-03-03 12:00:00Z])
      iex> for row <- agenda.next, do: {row.name, row.means, row.at}
      [{"digest", "at 08:00 on Mondays, UTC", [~U[2026-03-09 08:00:00Z]]}]
  """
  @spec report(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, t()} | {:error, OptionError.t() | SQL.Error.t()}
  def report(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.Agenda.report/2")
    book = Book.of!(view)

    with :ok <- Options.validate(options, "an agenda", schema()),
         now = Keyword.get_lazy(options, :now, fn -> Clock.now(book) end),
         {:ok, narrowed} <- narrow(book, view, options[:names]),
         place = place(options[:after]),
         {:ok, last} <- last(book, narrowed, view.profile, options[:last] || 20, place),
         {:ok, pauses} <- pauses(book) do
      next = next(book, narrowed, view.profile, now, options[:times] || 1, options[:limit])
      next = for {key, row} <- next, do: Map.put(row, :paused, paused(view.profile, pauses[key]))
      {:ok, %__MODULE__{now: now, next: next, last: last}}
    end
  end

  defp narrow(_book, view, nil), do: {:ok, view}
  defp narrow(book, view, globs), do: View.new(book.catalog, Profile.narrow(view.profile, globs))

  defp pauses(%{store: nil}), do: {:ok, %{}}
  defp pauses(book), do: book |> Book.sql() |> Operations.pauses()

  # The rows with the keys of their pauses. They are the next ones until the first has come.
  defp next(book, view, profile, now, times, limit) do
    key = {:agenda, View.state(view), Catalog.generation(book.catalog), times, limit}
    until_next(book, key, now, fn -> make(book, view, profile, now, times, limit) end)
  end

  # Keeps rows that `make` returns with the first of their times.
  defp until_next(book, key, now, make) do
    valid? = fn {from, {until, _rows}} ->
      DateTime.compare(from, now) != :gt and
        (until == nil or DateTime.compare(now, until) == :lt)
    end

    {_now, {_until, rows}} = Cache.keep(book.name, key, fn -> {now, make.()} end, valid?)
    rows
  end

  # The schedules of entries with their next times. A change of another entry makes none anew.
  defp upcoming(book, entries, now, times) do
    texts = for entry <- entries, uniq: true, do: {entry.schedule, entry.timezone || "UTC"}
    texts = Enum.sort(texts)

    until_next(book, {:upcoming, texts, times}, now, fn ->
      found =
        for {text, timezone} <- texts,
            {:ok, schedule} <- [Schedule.parse(text, timezone)],
            do: {{text, timezone}, {schedule, Schedule.upcoming(schedule, now, times)}}

      firsts = for {_key, {_schedule, [at | _]}} <- found, do: at
      {Enum.min(firsts, DateTime, fn -> nil end), Map.new(found)}
    end)
  end

  # Those that are left out by the limit are only sorted.
  defp make(book, view, profile, now, times, limit) do
    entries =
      for %Entry{schedule: text} = entry when text != nil <- scheduled(book, view), do: entry

    upcoming = upcoming(book, entries, now, times)

    rows =
      for entry <- entries,
          {schedule, at} <- List.wrap(upcoming[{entry.schedule, entry.timezone || "UTC"}]) do
        record = View.record(view, entry.name)
        off? = record == nil and not Job.enabled?(book, entry)
        {entry, schedule, record, off?, if(off?, do: [], else: at)}
      end

    rows = Enum.sort_by(rows, fn {entry, _, _, _, at} -> {unix(List.first(at)), entry.name} end)
    until = with [{_, _, _, _, at} | _] <- rows, do: List.first(at), else: ([] -> nil)
    rows = if limit, do: Enum.take(rows, limit), else: rows
    stored? = Enum.any?(rows, fn {_, _, record, _, _} -> record != nil end)
    creators = if stored?, do: creators(book), else: %{}

    rows =
      for {entry, schedule, record, off?, at} <- rows do
        row = %{
          name: entry.name,
          off: off?,
          schedule: schedule.expression,
          timezone: schedule.timezone,
          means: Schedule.describe(schedule),
          run_as: if(not off?, do: run_as(book, profile, entry, record, creators)),
          at: at,
          local: Enum.map(at, &Schedule.local(schedule, &1))
        }

        {Job.key(entry.name, record), row}
      end

    {until, rows}
  end

  # Those of the jobs that the view shows, so that the other entries are not read.
  defp scheduled(book, view) do
    for {_record, _authors, %Entry{name: name}} <- Catalog.scheduled(book.catalog),
        %Entry{name: ^name} = entry <- [View.find(view, name)],
        uniq: true,
        do: entry
  end

  # Its author may be a profile that this one does not know.
  defp paused(_profile, nil), do: nil

  defp paused(profile, pause),
    do: if(only(profile), do: %{pause | by: nil, reason: nil}, else: pause)

  # By record, since entries of the store may share a name.
  defp creators(book) do
    for {record, [creator | _], entry} <- Catalog.scheduled(book.catalog),
        into: %{},
        do: {{entry.name, record}, if(creator == "", do: book.schedules[:run_as], else: creator)}
  end

  # A profile that sees an entry need not be allowed to know its creator, or the profile of the
  # book's option.
  defp run_as(book, profile, entry, nil, _creators),
    do: entry.data["run_as"] || own(profile, Job.run_as(book, entry))

  defp run_as(_book, profile, entry, record, creators),
    do: own(profile, creators[{entry.name, record}])

  defp own(profile, id), do: if(only(profile) in [nil, id], do: id)

  # Atoms sort after numbers, so entries without a next time, and those that are off, come last.
  defp unix(nil), do: :never
  defp unix(at), do: DateTime.to_unix(at)

  defp last(%{store: nil}, _view, _profile, _count, _place), do: {:ok, []}

  defp last(book, view, profile, count, place) do
    read = &Firings.list(Book.sql(book), profile, &1, &2)
    shown? = &(View.record(view, &1.name) == &1.record)

    with {:ok, rows} <- View.first_named(view, count, place, read, shown?),
         do: {:ok, Enum.map(rows, &Map.delete(&1, :record))}
  end

  # A view shows one record of a name, so no firing after the last record is another one's.
  @last_record 9_223_372_036_854_775_807

  defp place(nil), do: nil
  defp place(%{at: at, name: name}), do: %{at: at, name: name, record: @last_record}

  defp place(text) do
    [time, name] = String.split(text, " ", parts: 2)
    {:ok, at, 0} = DateTime.from_iso8601(time)
    place(%{at: at, name: name})
  end

  @longest_place 300

  defp place?(%{at: %DateTime{}, name: name}), do: is_binary(name)

  defp place?(text) when is_binary(text) and byte_size(text) <= @longest_place do
    with [time, name] when name != "" <- String.split(text, " ", parts: 2),
         {:ok, _at, 0} <- DateTime.from_iso8601(time),
         do: String.valid?(name) and not String.contains?(name, "\0"),
         else: (_other -> false)
  end

  defp place?(_other), do: false

  # The only profile whose results it may see, since results may hold its secrets; `nil` for all.
  defp only(%Profile{} = profile),
    do: if(profile.grants == :all and Profile.globs(profile) == [], do: nil, else: profile.id)

  defp schema do
    count = &(Options.positive?(&1) and &1 <= @max_count)

    [
      now: {"a DateTime", &is_struct(&1, DateTime)},
      names: {"a list of globs", &Options.texts?/1},
      times: {"a number from 1 to #{@max_count}", count},
      last: {"a number from 1 to #{@max_count}", count},
      limit: {"a number from 1 or nil", &(is_nil(&1) or Options.positive?(&1))},
      after: {"a firing, its time and name as text, or nil", &(is_nil(&1) or place?(&1))}
    ]
  end
end
