defmodule Skillbook.Store.Authors do
  @moduledoc false
  # Decides which profile a scheduled entry of the store runs as.
  #
  # An entry runs for its creator, with no more rights than any other of its writers.
  # `:writers` of an entry holds the ids of these profiles, the creator first. `nil` in it is a
  # profile whose rights differ from the book's profile of that id, such as the narrowed profile
  # of a sub-agent: its rights are not stored, so such an entry cannot run.

  alias Skillbook.Book.Profiles
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Profile, Stored}

  @type t :: [String.t() | nil]

  # Fields that are executed. Changing another field, such as the tags, makes no one a writer.
  @executed_fields ~w(kind title description content attachments schedule timezone)a

  @doc """
  The writers of an entry after `writer`, an id of `writer/2`, has changed it; `before` is its
  previous state.
  """
  @spec add(Stored.t(), Stored.t() | nil, atom(), String.t() | nil) :: t()
  def add(stored, before, action, writer) do
    if action in [:create, :restore, :enable] or
         (action == :update and
            Map.take(before, @executed_fields) != Map.take(stored, @executed_fields)),
       do: Enum.uniq(stored.writers ++ [writer]),
       else: stored.writers
  end

  @doc """
  The id that `:writers` stores for a profile, `nil` if the book's profile differs from it; and
  whether the book has a profile to run an entry of this writer as.

  May call a function of the application, so call it before a transaction.
  """
  @spec writer(Profile.t(), Book.t()) ::
          {:ok, %{id: String.t() | nil, runs?: boolean()}} | {:error, Exception.t()}
  def writer(%Profile{id: ""} = profile, book) do
    id = if Profile.same?(Profile.unrestricted(), profile), do: ""
    run_as = if id, do: book.schedules[:run_as]

    with {:ok, known} <- known(book, run_as), do: {:ok, %{id: id, runs?: known != nil}}
  end

  def writer(%Profile{id: id} = profile, book) do
    with {:ok, known} <- known(book, id) do
      same? = Profile.same?(known || profile, profile)
      {:ok, %{id: if(same?, do: id), runs?: same? and known != nil}}
    end
  end

  defp known(book, id) do
    with :error <- Profiles.fetch(book, id), do: {:ok, nil}
  end

  # Private data of a profile, such as its memories, belongs to its id. A joined id belongs to no
  # profile.
  @id_separator " ∧ "

  @doc """
  The profile to run an entry as, and the id of its creator.

  The profile has the creator's rights, reduced to those that all other writers have too. If there
  are others, it gets a joined id and no assigns, so that it reads nobody's private data. Entries
  that the application wrote with an unrestricted view run as `run_as` and reduce nothing.
  """
  @spec profile(t(), Book.t()) :: {:ok, Profile.t(), String.t()} | {:error, String.t()}
  def profile([creator | others], book) do
    with {:ok, profile} <- creator(creator, book, book.schedules[:run_as]),
         others = Enum.uniq(others) -- ["", profile.id],
         {:ok, narrowed} <- narrow(others, profile, book) do
      id = Enum.join([profile.id | others], @id_separator)

      assigns = if others == [], do: profile.assigns, else: %{}
      others = Enum.uniq([profile.id | narrowed.others]) -- [id]
      {:ok, %{narrowed | id: id, others: others, assigns: assigns}, profile.id}
    end
  end

  def profile([], _book),
    do: {:error, "expected the profile that created the entry, got none; create the entry again"}

  @doc "The ids whose profiles `profile/2` reads."
  @spec ids(t(), Book.t()) :: [String.t() | nil]
  def ids(authors, book),
    do: Enum.map(authors, &if(&1 == "", do: book.schedules[:run_as], else: &1))

  defp narrow(others, profile, book) do
    UntilError.reduce(others, profile, fn id, profile ->
      with {:ok, other} <- fetch(id, book, "changed"), do: meet(profile, other)
    end)
  end

  defp creator("", _book, nil) do
    {:error,
     "expected a profile to run an entry of the application as, got none; " <>
       "give the book the option schedules: [run_as: \"default\"]"}
  end

  defp creator("", book, run_as), do: fetch(run_as, book, "created")
  defp creator(id, book, _run_as), do: fetch(id, book, "created")

  defp fetch(nil, _book, verb) do
    {:error,
     "expected the entry to be #{verb} by a profile of the book, got a profile with fewer " <>
       "rights; restore an earlier version, or create the entry again"}
  end

  defp fetch(id, book, verb) do
    case Profiles.fetch(book, id) do
      {:ok, profile} ->
        {:ok, profile}

      :error ->
        {:error,
         "expected the entry to be #{verb} by #{Profiles.names(book)}, got: #{inspect(id)}; " <>
           "add that profile to the book, or create the entry again"}

      {:error, error} ->
        {:error, Exception.message(error)}
    end
  end

  defp meet(profile, other) do
    with {:error, _} <- Profile.meet(profile, other) do
      {:error,
       "expected #{other.id}, which changed the entry, to see the entries that #{profile.id} " <>
         "writes; restore an earlier version, or create the entry again"}
    end
  end
end
