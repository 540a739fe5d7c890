defmodule Skillbook.Scheduler.Job do
  @moduledoc """
  An entry that runs by its schedule.

  ## Fields

    * `:name` - the entry's name
    * `:schedule` - its `Skillbook.Schedule`
    * `:entry` - the entry
    * `:profile` - the profile that it runs as
    * `:author` - the profile of its author, or `nil` if the book has none of that id
  """

  alias Skillbook.{Book, Entry, Profile, Schedule, View}

  @type t :: %__MODULE__{
          name: String.t(),
          schedule: Schedule.t(),
          entry: Entry.t(),
          profile: Profile.t(),
          author: Profile.t() | nil
        }

  @enforce_keys [:name, :schedule, :entry, :profile]
  defstruct [:name, :schedule, :entry, :profile, :author]

  @doc false
  # All of a book: jobs, and why others are none.
  @spec all(Book.t()) :: [{String.t(), {:ok, t()} | {:error, String.t()} | :none}]
  def all(book) do
    for entry <- View.entries(View.all(book.catalog)), scheduled?(entry), do: {entry.name, new(book, entry)}
  end

  @doc false
  @spec fetch(Book.t(), String.t()) :: {:ok, t()} | {:error, String.t()} | :none
  def fetch(book, name) do
    case View.fetch(View.all(book.catalog), name) do
      {:ok, %Entry{name: ^name} = entry} -> if(scheduled?(entry), do: new(book, entry), else: :none)
      _ -> :none
    end
  end

  # Of a source of low trust a schedule is not read; that it is there has to be said.
  defp scheduled?(%Entry{trust: :low, data: data}), do: data["schedule"] != nil
  defp scheduled?(%Entry{schedule: schedule}), do: schedule != nil

  # Its own page would say as whom a stranger's text runs.
  @spec new(Book.t(), Entry.t()) :: {:ok, t()} | {:error, String.t()} | :none
  defp new(_book, %Entry{trust: :low, source: source}) do
    {:error,
     "expected a page of a source of medium or high trust, got one of the source #{source}, which has low trust; " <>
       "once you have read it, copy it into a folder of yours"}
  end

  defp new(book, entry) do
    with {:ok, schedule} <- schedule(entry),
         {:ok, profile} <- profile(book, entry.source, entry.data["run_as"] || book.schedules[:run_as]),
         author = author(book, entry),
         {:ok, profile} <- within(profile, author) do
      {:ok, %__MODULE__{name: entry.name, schedule: schedule, entry: entry, profile: profile, author: author}}
    end
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
  # Who is shown the entry: by its profile and, if the book knows the author, by the author too.
  @spec shown?(Book.t(), t()) :: boolean()
  def shown?(book, job) do
    Enum.all?([job.profile, job.author], fn
      nil ->
        true

      profile ->
        {:ok, view} = View.new(book.catalog, profile)
        match?({:ok, entry} when entry == job.entry, View.fetch(view, job.name))
    end)
  end
end
