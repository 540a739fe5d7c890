defmodule Skillbook.Scheduler.Job do
  @moduledoc """
  An entry that runs on its schedule, as engines get it.

  ## Fields

    * `:key` - the identifier for engines: the entry's name, or `{name, record}` for an entry of
      the store
    * `:name` - the name of the entry
    * `:record` - the number of an entry of the store, where several may share a name; `nil` for
      an entry of a file
    * `:schedule` - its `Skillbook.Schedule`
    * `:entry` - the `Skillbook.Entry`
    * `:profile` - the profile that it runs as; `nil` in the jobs of an engine if a function of
      the application has it, which is called when the job runs
    * `:owner` - the id of the profile whose agenda shows the results
    * `:author` - the profile of the author of a file, or `nil` if the book has no such profile.
      For an entry of the store, `:profile` is already narrowed to the rights of its authors
  """

  alias Skillbook.Book.Profiles
  alias Skillbook.Store.Authors
  alias Skillbook.{Book, Catalog, Declaration, Entry, Native, Profile, Schedule, View}

  @type key :: String.t() | {String.t(), pos_integer()}

  @type t :: %__MODULE__{
          key: key(),
          name: String.t(),
          record: pos_integer() | nil,
          schedule: Schedule.t(),
          entry: Entry.t(),
          profile: Profile.t() | nil,
          owner: String.t(),
          author: Profile.t() | nil
        }

  @enforce_keys [:key, :name, :schedule, :entry, :owner]
  defstruct [:key, :name, :record, :schedule, :entry, :profile, :owner, :author]

  @doc false
  @spec key(String.t(), pos_integer() | nil) :: key()
  def key(name, nil), do: name
  def key(name, record), do: {name, record}

  @doc false
  # All jobs of a book. Entries that cannot be jobs have the reason, or `:none` if nobody needs to
  # know it. No function of the application is called, since there may be thousands of profiles.
  @spec all(Book.t()) :: [{key(), {:ok, t()} | {:error, String.t()} | :none}]
  def all(book) do
    for {record, authors, entry} <- Catalog.scheduled(book.catalog),
        do: {key(entry.name, record), new(book, record, authors, entry, :listed)}
  end

  @doc false
  # Those of one name.
  @spec named(Book.t(), String.t()) :: [{key(), {:ok, t()} | {:error, String.t()} | :none}]
  def named(book, name) do
    for {record, authors, entry} <- Catalog.scheduled(book.catalog, name),
        do: {key(name, record), new(book, record, authors, entry, :listed)}
  end

  @doc false
  @spec fetch(Book.t(), String.t(), pos_integer() | nil) ::
          {:ok, t()} | {:error, String.t()} | :none
  def fetch(book, name, record) do
    scheduled = Catalog.scheduled(book.catalog, name)

    Enum.find_value(scheduled, :none, fn
      {^record, authors, entry} -> new(book, record, authors, entry, :all)
      _other -> nil
    end)
  end

  # Entries of low trust have no schedule, since a page names the profile that it runs as. The
  # user is told about them.
  defp new(_book, nil, _authors, %Entry{schedule: nil, source: source}, _profiles) do
    {:error,
     "expected a page of a source of medium or high trust, got one of the source #{source}, " <>
       "which has low trust; read it, then copy it into a folder of your own"}
  end

  defp new(_book, _record, _authors, %Entry{schedule: nil}, _profiles) do
    {:error,
     "expected an entry that was written here, got an imported one, which has low trust; " <>
       "create it anew"}
  end

  defp new(book, record, authors, entry, profiles) do
    # Quick checks first: every change of the catalog checks all entries.
    with {:ok, profile, owner, author} <- runner(book, record, authors, entry, profiles),
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

      # An entry of the store may replace a file for some profiles and not for others.
      if record || profile == nil || visible?(book, entry) || view(book, job) != :error,
        do: {:ok, job},
        else: :none
    end
  end

  defp visible?(book, entry) do
    view = View.all_of(book.catalog, Entry.tenant(entry))
    View.fetch(view, entry.name) == {:ok, entry}
  end

  defp runner(book, nil, [], entry, profiles) do
    run_as = run_as(book, entry)

    with true <- enabled?(book, entry) || :none,
         true <- read?(book, [run_as, entry.data["author"]], profiles) || {:ok, nil, run_as, nil},
         {:ok, profile} <- profile(book, run_as),
         {:ok, author} <- author(book, entry),
         {:ok, profile} <- limit_to_author(profile, author),
         do: {:ok, profile, profile.id, author}
  end

  defp runner(book, _record, authors, _entry, profiles) do
    ids = Authors.ids(authors, book)

    with true <- read?(book, ids, profiles) || {:ok, nil, hd(ids), nil},
         {:ok, profile, owner} <- Authors.profile(authors, book),
         do: {:ok, profile, owner, nil}
  end

  defp read?(_book, _ids, :all), do: true
  defp read?(book, ids, :listed), do: Enum.all?(ids, &Profiles.listed?(book, &1))

  defp schedule(entry) do
    with :ok <- check_flags(entry),
         {:error, error} <- Schedule.parse(entry.schedule, entry.timezone || "UTC"),
         do: {:error, Exception.message(error)}
  end

  # A schedule calls the command without flags.
  defp check_flags(%Entry{kind: :command} = entry) do
    with text when is_binary(text) <- entry |> Declaration.of() |> Declaration.required() do
      {:error,
       "expected a command that runs without flags, got one that requires #{text}; give each " <>
         "flag a default, or make it optional"}
    else
      nil -> :ok
    end
  end

  defp check_flags(_entry), do: :ok

  @doc false
  # The id of the profile that the entry of a file runs as, if it is set.
  @spec run_as(Book.t(), Entry.t()) :: String.t() | nil
  def run_as(book, entry), do: entry.data["run_as"] || book.schedules[:run_as]

  @doc false
  # Whether the schedule of an entry is on. Those of built-in skills are off, unless the book
  # names them.
  @spec enabled?(Book.t(), Entry.t()) :: boolean()
  def enabled?(book, entry) do
    not match?(%Entry{source: "builtin", trust: :high}, entry) or
      match?({:ok, [_]}, Native.globs_filter(book.schedules[:builtins], [entry.name]))
  end

  defp profile(_book, nil) do
    {:error,
     "expected the id of a profile as `run_as` in its frontmatter, got nothing; write " <>
       "`run_as: default`, or give the book the option schedules: [run_as: \"default\"]"}
  end

  defp profile(book, id) do
    case Profiles.fetch(book, id) do
      {:ok, profile} ->
        {:ok, profile}

      :error ->
        {:error, "expected #{Profiles.names(book)} as `run_as`, got #{inspect(id)}"}

      {:error, error} ->
        {:error, Exception.message(error)}
    end
  end

  # The author may be anybody's name. A profile that cannot be read might be the author's.
  defp author(book, entry) do
    case Profiles.fetch(book, entry.data["author"]) do
      {:ok, author} -> {:ok, author}
      :error -> {:ok, nil}
      {:error, error} -> {:error, Exception.message(error)}
    end
  end

  defp limit_to_author(profile, nil), do: {:ok, profile}

  defp limit_to_author(profile, author) do
    with {:error, _} <- Profile.meet(profile, author) do
      {:error,
       "expected its author #{author.id} to see the entries that #{profile.id} writes; " <>
         "write `run_as` with a profile whose labels #{author.id} is granted"}
    end
  end

  @doc false
  # The view of its profile, if that view and the author's both show the entry.
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
