defmodule Skillbook.Store.Authors do
  @moduledoc false
  # Decides which profile a scheduled entry of the store runs as.
  #
  # An entry runs for its creator, with no more rights than any other of its writers.
  # `:writers` of an entry holds the ids of these profiles, the creator first. `nil` in it is a
  # profile whose rights differ from the book's profile of that id, such as the narrowed profile
  # of a sub-agent: its rights are not stored, so such an entry cannot run.

  alias Skillbook.{Profile, Stored}

  @type t :: [String.t() | nil]

  # Fields that are executed. Changing another field, such as the tags, makes no one a writer.
  @executed_fields ~w(kind title description content attachments schedule timezone)a

  @doc "The writers of an entry after the profile has changed it; `before` is its previous state."
  @spec add(Stored.t(), Stored.t() | nil, atom(), Profile.t(), map()) :: t()
  def add(stored, before, action, profile, profiles) do
    if action in [:create, :restore, :enable] or
         (action == :update and
            Map.take(before, @executed_fields) != Map.take(stored, @executed_fields)),
       do: Enum.uniq(stored.writers ++ [writer(profile, profiles)]),
       else: stored.writers
  end

  @doc "The id that `:writers` stores for a profile; nil if the book's profile differs from it."
  @spec writer(Profile.t(), map()) :: String.t() | nil
  def writer(%Profile{id: id} = profile, profiles) do
    known = if id == "", do: Profile.unrestricted(), else: Map.get(profiles, id, profile)
    if %{known | role: nil} == %{profile | role: nil}, do: id
  end

  # Private data of a profile, such as its memories, belongs to its id. A joined id belongs to no
  # profile.
  @id_separator " ∧ "

  @doc """
  The profile to run an entry as, and the id of its creator.

  The profile has the creator's rights, reduced to those that all other writers have too. If there
  are others, it gets a joined id, so that it reads nobody's private data. Entries that the
  application wrote with an unrestricted view run as `run_as` and reduce nothing.
  """
  @spec profile(t(), map(), String.t() | nil) ::
          {:ok, Profile.t(), String.t()} | {:error, String.t()}
  def profile([creator | others], profiles, run_as) do
    with {:ok, profile} <- creator(creator, profiles, run_as),
         others = Enum.uniq(others) -- ["", profile.id],
         {:ok, narrowed} <- narrow(others, profile, profiles) do
      id = Enum.join([profile.id | others], @id_separator)

      {:ok, %{narrowed | id: id, others: Enum.uniq([profile.id | narrowed.others]) -- [id]},
       profile.id}
    end
  end

  def profile([], _profiles, _run_as),
    do: {:error, "expected the profile that created the entry, got none; create the entry again"}

  defp narrow(others, profile, profiles) do
    Enum.reduce_while(others, {:ok, profile}, fn id, {:ok, profile} ->
      with {:ok, other} <- fetch(id, profiles, "changed"),
           {:ok, profile} <- meet(profile, other) do
        {:cont, {:ok, profile}}
      else
        error -> {:halt, error}
      end
    end)
  end

  defp creator("", _profiles, nil) do
    {:error,
     "expected a profile to run an entry of the application as, got none; " <>
       "give the book the option schedules: [run_as: \"default\"]"}
  end

  defp creator("", profiles, run_as), do: fetch(run_as, profiles, "created")
  defp creator(id, profiles, _run_as), do: fetch(id, profiles, "created")

  defp fetch(nil, _profiles, verb) do
    {:error,
     "expected the entry to be #{verb} by a profile of the book, got a profile with fewer " <>
       "rights; restore an earlier version, or create the entry again"}
  end

  defp fetch(id, profiles, verb) do
    with :error <- Map.fetch(profiles, id) do
      known = profiles |> Map.keys() |> Enum.sort() |> Enum.join(", ")

      {:error,
       "expected the entry to be #{verb} by one of the profiles #{known}, got: " <>
         "#{inspect(id)}; " <>
         "add that profile to the book, or create the entry again"}
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
