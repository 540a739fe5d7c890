defmodule Skillbook.Store.Authors do
  @moduledoc false
  # Who had a part in what an entry of the store runs, and as whom that makes it run. `nil` is a profile with other rights than
  # the book's profile of its id, as that of an agent that was started for a part of a work: what it may do is not kept.

  alias Skillbook.{Profile, Stored}

  @type t :: [String.t() | nil]

  # Who changes tags or labels has changed nothing of what runs.
  @runs ~w(kind title description content attachments schedule timezone)a

  @doc "The writers of an entry once the profile has made a version of it; `before` is the entry as it was."
  @spec add(Stored.t(), Stored.t() | nil, atom(), Profile.t(), map()) :: t()
  def add(stored, before, action, profile, profiles) do
    if action in [:create, :restore, :enable] or
         (action == :update and Map.take(before, @runs) != Map.take(stored, @runs)),
       do: Enum.uniq(stored.writers ++ [writer(profile, profiles)]),
       else: stored.writers
  end

  @doc "A profile as it is kept."
  @spec writer(Profile.t(), map()) :: String.t() | nil
  def writer(%Profile{id: id} = profile, profiles) do
    known = if id == "", do: Profile.unrestricted(), else: Map.get(profiles, id, profile)
    if %{known | role: nil} == %{profile | role: nil}, do: id
  end

  # What commands keep for a profile alone, such as its memories, is kept by its id: no profile has this one.
  @joined " ∧ "

  @doc """
  As whom it runs, and the id of whom it runs for: its creator, with no more rights than any of the others have. Where there are
  others, the id is that of none of them, for what is one's own is nobody else's. What an application wrote by a view of all runs
  as `run_as`, and narrows nothing.
  """
  @spec profile(t(), map(), String.t() | nil) ::
          {:ok, Profile.t(), String.t()} | {:error, String.t()}
  def profile([creator | others], profiles, run_as) do
    with {:ok, profile} <- creator(creator, profiles, run_as),
         others = Enum.uniq(others) -- ["", profile.id],
         {:ok, narrowed} <- narrow(others, profile, profiles) do
      id = Enum.join([profile.id | others], @joined)

      {:ok, %{narrowed | id: id, others: Enum.uniq([profile.id | narrowed.others]) -- [id]},
       profile.id}
    end
  end

  def profile([], _profiles, _run_as),
    do: {:error, "expected to know which profile created it, got nothing; create it anew"}

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
     "expected the id of a profile for what the application itself created, got nothing; give the book the option " <>
       "schedules: [run_as: \"default\"]"}
  end

  defp creator("", profiles, run_as), do: fetch(run_as, profiles, "created")
  defp creator(id, profiles, _run_as), do: fetch(id, profiles, "created")

  defp fetch(nil, _profiles, what) do
    {:error,
     "expected that it was #{what} by a profile of the book, got one with fewer rights than that; restore a version of " <>
       "before, or create it anew"}
  end

  defp fetch(id, profiles, what) do
    with :error <- Map.fetch(profiles, id) do
      known = profiles |> Map.keys() |> Enum.sort() |> Enum.join(", ")

      {:error,
       "expected that it was #{what} by one of the profiles #{known}, got #{inspect(id)}; give the book that profile, " <>
         "or create the entry anew"}
    end
  end

  defp meet(profile, other) do
    with {:error, _} <- Profile.meet(profile, other) do
      {:error,
       "expected #{other.id}, which changed it, to see what it writes as #{profile.id}; restore a version of before, " <>
         "or create it anew"}
    end
  end
end
