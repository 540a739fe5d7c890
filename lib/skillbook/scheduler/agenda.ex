defmodule Skillbook.Agenda do
  @moduledoc """
  What runs by its schedule next, and what became of what ran, as a view may see it.

  ## Fields

    * `:now` - the time from which on the next runs are counted, UTC
    * `:next` - a map for each entry with a schedule, the soonest first: `:name`, `:schedule` and `:timezone` as texts, `:means`
      (the schedule in words), `:run_as` (the profile's id in its page, or `nil`; of an entry of the store the one that created it,
      for that and for a view that sees everything), `:at` (the next times, UTC) and `:local` (the same
      as clocks there show them)
    * `:last` - a map for each firing, the newest first: `:name`, `:at`, `:status`, `:profile`, `:node`, `:attempts`, `:started_at`,
      `:finished_at`, `:duration` in milliseconds, `:text`

  The status is `:queued`, `:running`, `:ok`, `:template` (the page is prose, the book has no agent to carry it out, and its text is
  the result), `:failed`, `:skipped` (the one before was under way) or `:missed`.

  ## Who sees what

  It shows only names that its view shows now. A profile with all grants and all skills sees the results of all
  profiles, any other one only its own.
  """

  alias Skillbook.Scheduler.{Clock, Firings}
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Catalog, Entry, OptionError, Profile, SQL, Schedule, View}

  @type t :: %__MODULE__{now: DateTime.t(), next: [map()], last: [map()]}

  @enforce_keys [:now, :next, :last]
  defstruct @enforce_keys

  # Rows of one query; hidden ones are left out of them.
  @rows 200
  @most 1_000

  @doc """
  The agenda of a running book.

  ## Options

    * `:now` - a `DateTime`; the clock's if it is left out
    * `:names` - globs over names, as in `Skillbook.Profile`; all if it is left out
    * `:times` - how many next times each entry has, 1 to 1,000; 1 by default
    * `:last` - how many firings there are at most, 1 to 1,000; 20 by default

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "agenda_example")
      iex> File.mkdir_p!(Path.join(folder, "digest"))
      iex> File.write!(Path.join(folder, "digest/SKILL.md"), "---\\nname: digest\\ndescription: x\\nschedule: 0 8 * * 1\\n---\\n")
      iex> {:ok, _pid} = Skillbook.start_link(name: :agenda, builtins: false, sources: [folder])
      iex> {:ok, agenda} = Skillbook.schedule(Skillbook.view(:agenda), now: ~U[2026-03-03 12:00:00Z])
      iex> for row <- agenda.next, do: {row.name, row.means, row.at}
      [{"digest", "at 08:00 on Mondays, UTC", [~U[2026-03-09 08:00:00Z]]}]
  """
  @spec new(View.t(), keyword()) :: {:ok, t()} | {:error, OptionError.t() | SQL.Error.t()}
  def new(view, options \\ [])

  def new(%View{book: nil}, _options),
    do: raise(ArgumentError, "expected the view of a running book, got one of a catalog alone")

  def new(%View{} = view, options) do
    book = Book.fetch!(view.book)

    with :ok <- Options.validate(options, "an agenda", schema()),
         now = Keyword.get_lazy(options, :now, fn -> Clock.now(book) end),
         {:ok, shown} <- shown(book, view, options[:names]),
         {:ok, last} <- last(book, shown, own(view.profile), options[:last] || 20) do
      {:ok, %__MODULE__{now: now, next: next(book, shown, now, options[:times] || 1), last: last}}
    end
  end

  defp shown(_book, view, nil), do: {:ok, view}
  defp shown(book, view, globs), do: View.new(book.catalog, Profile.narrow(view.profile, globs))

  defp next(book, view, now, times) do
    creators = creators(book)

    rows =
      for %Entry{schedule: text} = entry when text != nil <- View.entries(view),
          {:ok, schedule} <- [Schedule.parse(text, entry.timezone || "UTC")] do
        at = Schedule.upcoming(schedule, now, times)

        %{
          name: entry.name,
          schedule: schedule.expression,
          timezone: schedule.timezone,
          means: Schedule.describe(schedule),
          run_as: run_as(view, entry, creators),
          at: at,
          local: Enum.map(at, &Schedule.local(schedule, &1))
        }
      end

    Enum.sort_by(rows, &{&1.at |> List.first() |> unix(), &1.name})
  end

  # Of entries of the store of one name, each has its own.
  defp creators(book) do
    for {record, [creator | _], entry} <- Catalog.scheduled(book.catalog),
        into: %{},
        do: {{entry.name, record}, if(creator == "", do: book.schedules[:run_as], else: creator)}
  end

  # Who wrote the first version is known to who sees that, who need not see this view's.
  defp run_as(view, entry, creators) do
    case View.record(view, entry.name) do
      nil ->
        entry.data["run_as"]

      record ->
        creator = creators[{entry.name, record}]
        if own(view.profile) in [nil, creator], do: creator
    end
  end

  # Without a next time it comes last.
  defp unix(nil), do: :never
  defp unix(at), do: DateTime.to_unix(at)

  defp last(%{store: nil}, _shown, _of, _count), do: {:ok, []}

  defp last(book, shown, of, count) do
    names = shown |> View.entries() |> MapSet.new(& &1.name)
    shows? = &(&1.name in names and View.record(shown, &1.name) == &1.record)
    collect(Book.sql(book), shows?, of, count, 0, [])
  end

  defp collect(sql, shows?, profile, count, offset, done) do
    with {:ok, rows} <- Firings.list(sql, profile, @rows, offset) do
      # What fires between two queries moves a row into the next one as well.
      done = Enum.uniq_by(done ++ Enum.filter(rows, shows?), &{&1.name, &1.record, &1.at})

      if length(done) >= count or length(rows) < @rows,
        do: {:ok, done |> Enum.take(count) |> Enum.map(&Map.delete(&1, :record))},
        else: collect(sql, shows?, profile, count, offset + @rows, done)
    end
  end

  # A result may tell what only its profile may know.
  defp own(%Profile{} = profile),
    do: if(profile.grants == :all and Profile.globs(profile) == [], do: nil, else: profile.id)

  defp schema do
    count = &(Options.positive?(&1) and &1 <= @most)

    [
      now: {"a DateTime", &is_struct(&1, DateTime)},
      names: {"a list of globs", &Options.texts?/1},
      times: {"a number from 1 to #{@most}", count},
      last: {"a number from 1 to #{@most}", count}
    ]
  end
end
