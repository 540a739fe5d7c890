defmodule Skillbook.Handlers.Drive.Grantees do
  @moduledoc false
  # The people, groups, domains and everyone that flags name, to give or take access.

  alias Skillbook.{Drive, Flags}

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
