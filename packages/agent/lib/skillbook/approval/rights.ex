defmodule Skillbook.Approval.Rights do
  @moduledoc false
  # Stores the rights with which a call was made, and computes those with which it runs: the
  # rights that its profile has now, restricted to those that the call had. The profile of a
  # dispatched agent or of a scheduled entry has fewer rights than the profile of its id.

  alias Skillbook.Book.Profiles
  alias Skillbook.Support.JSON
  alias Skillbook.{Book, Profile, ProfileError}

  @rights [:others, :tenant, :grants, :skills, :within, :tools, :writes, :approved, :labels]

  @doc "The rights of a profile as JSON; `:error` if it is not one of the book's."
  @spec encode(Book.t(), Profile.t()) :: {:ok, String.t()} | :error | {:error, ProfileError.t()}
  def encode(book, profile) do
    with {:ok, own} <- fetch(book, profile.id) do
      # No text is equal to `true`, which is every tenant.
      rights = Map.take(profile, @rights)
      rights = Map.update!(rights, :tenant, &if(&1 == :all, do: true, else: &1))
      # An agent to which a command was delegated may run it.
      {:ok, JSON.encode(Map.put(rights, :delegated, own.writes == :delegate))}
    end
  end

  @doc "The profile that runs a stored call; `:error` if it does not exist any more."
  @spec restore(Book.t(), String.t(), String.t()) ::
          {:ok, Profile.t()} | :error | {:error, ProfileError.t()}
  def restore(book, id, json) do
    with {:ok, rights} <- JSON.decode(json),
         {:ok, own} <- fetch(book, id),
         {:ok, then} <- read(rights, id),
         {:ok, both} <- Profile.meet(own, then) do
      delegated? = rights["delegated"] == true and own.writes == :delegate
      {:ok, if(delegated?, do: %{both | writes: then.writes}, else: both)}
    else
      {:error, %ProfileError{} = error} -> {:error, error}
      _ -> :error
    end
  end

  # Trusted code without a profile uses the unrestricted one.
  defp fetch(_book, ""), do: {:ok, Profile.unrestricted()}

  defp fetch(book, id), do: Profiles.fetch(book, id)

  defp read(rights, id) do
    writes = Enum.find([:run, :ask, :delegate, :deny], &(to_string(&1) == rights["writes"]))
    # Calls that an earlier version stored have no `approved`.
    rights = Map.put_new(rights, "approved", [])
    lists = for key <- ~w(others within approved labels), do: {key, rights[key]}
    all = for key <- ~w(grants skills tools), do: {key, all(rights[key])}
    fields = for {key, value} <- lists ++ all, do: {String.to_existing_atom(key), value}
    tenant = if rights["tenant"] == true, do: :all, else: rights["tenant"]

    if writes && Enum.all?(fields, fn {_key, value} -> value == :all or is_list(value) end),
      do: {:ok, struct!(Profile, [id: id, tenant: tenant, writes: writes] ++ fields)},
      else: :error
  end

  defp all("all"), do: :all
  defp all(list), do: list
end
