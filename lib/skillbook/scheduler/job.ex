defmodule Skillbook.Scheduler.Job do
  @moduledoc """
  An entry that runs by its schedule.

  ## Fields

    * `:key` - what engines know it by, and say when its time has come: the entry's name, or `{name, record}` for one of the store
    * `:name` - the entry's name
    * `:record` - the number that an entry of the store has there, since several of them may have one name; `nil` for one of a file
    * `:schedule` - its `Skillbook.Schedule`
    * `:entry` - the entry
    * `:profile` - the profile that it runs as
    * `:owner` - the id of the profile that it runs for, whose agenda shows what came of it
    * `:author` - the profile of its author, or `nil` if the book has none of that id. Those who wrote an entry of the store have narrowed
      its `:profile` already
  """

  alias Skillbook.Store.Authors
  alias Skillbook.{Book, Catalog, Entry, Profile, Schedule, View}

  @type key :: String.t() | {String.t(), pos_integer()}

  @type t :: %__MODULE__{
          key: key(),
          name: String.t(),
          record: pos_integer() | nil,
          schedule: Schedule.t(),
          entry: Entry.t(),
          profile: Profile.t(),
          owner: String.t(),
          author: Profile.t() | nil
        }

  @enforce_keys [:key, :name, :schedule, :entry, :profile, :owner]
  defstruct [:key, :name, :record, :schedule, :entry, :profile, :owner, :author]

  @doc false
  @spec key(String.t(), pos_integer() | nil) :: key()
  def key(name, nil), do: name
  def key(name, record), do: {name, record}

  @doc false
  # All of a book: jobs, and why others are none.
  @spec all(Book.t()) :: [{key(), {:ok, t()} | {:error, String.t()} | :none}]
  def all(book) do
    for {record, writers, entry} <- Catalog.scheduled(book.catalog),
        do: {key(entry.name, record), new(book, record, writers, entry)}
  end

  @doc false
  @spec fetch(Book.t(), String.t(), pos_integer() | nil) ::
          {:ok, t()} | {:error, String.t()} | :none
  def fetch(book, name, record) do
    scheduled = Catalog.scheduled(book.catalog, name)

    Enum.find_value(scheduled, :none, fn
      {^record, writers, entry} -> new(book, record, writers, entry)
      _other -> nil
    end)
  end

  # Of what has low trust the schedule is not read; that it is there has to be said. A page of a stranger would say as whom it runs.
  defp new(_book, nil, _writers, %Entry{schedule: nil, source: source}) do
    {:error,
     "expected a page of a source of medium or high trust, got one of the source #{source}, which has low trust; " <>
       "once you have read it, copy it into a folder of yours"}
  end

  defp new(_book, _record, _writers, %Entry{schedule: nil}) do
    {:error,
     "expected an entry that was written here, got an imported one, which has low trust; create it anew"}
  end

  defp new(book, record, writers, entry) do
    # First what is quicker to find out: all are looked at whenever anything changes.
    with {:ok, profile, owner, author} <- runner(book, record, writers, entry),
         {:ok, schedule} <- schedule(entry) do
      job = %__MODULE__{
        key: key(entry.name, record),
        name: entry.name,
        record: record,
        schedule: schedule,
        entry: entry,
        profile: profile,
        owner: owner,
        author: author
      }

      # The store may have put another one into its place for its profile, or only for others.
      if record || used?(book, entry) || view(book, job) != :error,
        do: {:ok, job},
        else: :none
    end
  end

  defp used?(book, entry), do: View.fetch(View.all(book.catalog), entry.name) == {:ok, entry}

  defp runner(book, nil, [], entry) do
    with {:ok, profile} <-
           profile(book, entry.source, entry.data["run_as"] || book.schedules[:run_as]),
         author = author(book, entry),
         {:ok, profile} <- within(profile, author),
         do: {:ok, profile, profile.id, author}
  end

  defp runner(book, _record, writers, _entry) do
    with {:ok, profile, owner} <-
           Authors.profile(writers, book.profiles, book.schedules[:run_as]),
         do: {:ok, profile, owner, nil}
  end

  defp schedule(entry) do
    with {:error, error} <- Schedule.parse(entry.schedule, entry.timezone || "UTC"),
         do: {:error, Exception.message(error)}
  end

  # A page that comes with Skillbook waits for somebody to say as whom it runs; nobody has to be told at each start.
  defp profile(_book, "builtin", nil), do: :none

  defp profile(_book, _source, nil) do
    {:error,
     "expected the id of a profile as `run_as` in its frontmatter, got nothing; write `run_as: default`, or give the book " <>
       "the option schedules: [run_as: \"default\"]"}
  end

  defp profile(book, _source, id) do
    case book.profiles do
      %{^id => profile} ->
        {:ok, profile}

      profiles ->
        known = profiles |> Map.keys() |> Enum.sort() |> Enum.join(", ")
        {:error, "expected one of the profiles #{known} as `run_as`, got #{inspect(id)}"}
    end
  end

  defp author(book, entry), do: book.profiles[entry.data["author"]]

  defp within(profile, nil), do: {:ok, profile}

  defp within(profile, author) do
    with {:error, _} <- Profile.meet(profile, author) do
      {:error,
       "expected its author #{author.id} to see what it writes as #{profile.id}; " <>
         "write `run_as` with a profile whose labels #{author.id} is granted"}
    end
  end

  @doc false
  # The view of its profile, if that shows the entry and, if the book knows the author, the author's does too.
  @spec view(Book.t(), t()) :: {:ok, View.t()} | :error
  def view(book, job) do
    views =
      for %Profile{} = profile <- [job.profile, job.author] do
        {:ok, view} = View.new(book.catalog, profile)
        view
      end

    if Enum.all?(views, &(View.fetch(&1, job.name) == {:ok, job.entry})),
      do: {:ok, hd(views)},
      else: :error
  end
end
