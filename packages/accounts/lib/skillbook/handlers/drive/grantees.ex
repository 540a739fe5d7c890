defmodule Skillbook.Handlers.Drive.Grantees do
  @moduledoc false
  # The people, groups, domains and everyone that flags name, to give or take access.

  alias Skillbook.{Drive, DriveError, Flags}

  @domain ~r/\A(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}\z/i

  @doc "Checks `--domain`."
  @spec cast(map()) :: {:ok, map()} | {:error, Exception.t()}
  def cast(flags), do: Flags.cast(flags, "domain", "a domain's name", "example.com", &domain/1)

  defp domain(text), do: if(text =~ @domain, do: {:ok, String.downcase(text)}, else: :error)

  @doc "Those in `--to`, `--group`, `--domain` and `--anyone`."
  @spec of(map()) :: [Drive.grantee()]
  def of(flags) do
    to =
      for(address <- flags["to"] || [], do: {:user, address}) ++
        for(address <- flags["group"] || [], do: {:group, address}) ++
        if(flags["domain"], do: [{:domain, flags["domain"]}], else: []) ++
        if(flags["anyone"], do: [:anyone], else: [])

    Enum.uniq(to)
  end

  @doc """
  Calls the function for each, since a service takes one at a time. After a failure the rest is
  not tried, and the error says for whom it was done: `reason` makes it from the names of these
  and of the others.
  """
  @spec each(
          Drive.file(),
          [{Drive.grantee(), one}],
          (one -> :ok | {:error, Exception.t()}),
          (String.t(), String.t() -> String.t())
        ) :: :ok | {:error, Exception.t()}
        when one: term()
  def each(file, pairs, fun, reason), do: each(file, pairs, fun, reason, [])

  defp each(_file, [], _fun, _reason, _done), do: :ok

  defp each(file, [{grantee, one} | rest], fun, reason, done) do
    case fun.(one) do
      :ok ->
        each(file, rest, fun, reason, [grantee | done])

      {:error, error} when done == [] ->
        {:error, error}

      {:error, error} ->
        others = [grantee | Enum.map(rest, &elem(&1, 0))]
        text = reason.(names(Enum.reverse(done)), names(others))
        reason = "#{text}: #{Exception.message(error)}"
        {:error, %DriveError{kind: :shared_in_part, name: file.name, reason: reason}}
    end
  end

  @doc "Their names in a sentence."
  @spec names([Drive.grantee()]) :: String.t()
  def names(grantees) do
    Enum.map_join(grantees, ", ", fn
      :anyone -> "everyone who has the link"
      {:domain, name} -> "everyone of #{name}"
      {_kind, address} -> address
    end)
  end
end
