defmodule Skillbook.Connections.Client.HubSpotRules do
  @moduledoc false
  # The rules of HubSpot's interface: https://developers.hubspot.com/docs/api/error-handling and
  # https://developers.hubspot.com/docs/api/usage-details

  @behaviour Skillbook.Connections.Client.Rules

  alias Skillbook.Connections.Client.{HTTPRules, Rules}

  @impl true
  def service(_url), do: "HubSpot"

  @impl true
  def host?(host), do: host == "api.hubapi.com" or String.ends_with?(host, ".hubapi.com")

  @impl true
  def failure(status, headers, json, body) do
    failure = HTTPRules.failure(status, headers, json, body)
    json = if is_map(json), do: json, else: %{}
    code = Rules.code(json["policyName"]) || Rules.code(json["category"])
    %{by_status(status, headers, json, failure) | code: code}
  end

  # The requests of a day are back at midnight; other limits within ten seconds.
  defp by_status(429, _headers, %{"policyName" => "DAILY"}, failure),
    do: %{failure | kind: :quota, again: :never, hint: "the account's requests are back tomorrow"}

  # Limits of a second have the header of ten seconds too.
  defp by_status(429, headers, json, failure) do
    window = Rules.milliseconds(headers, "x-hubspot-ratelimit-interval-milliseconds")
    window = if json["policyName"] == "SECONDLY", do: 1_000, else: window
    %{failure | again: :always, retry_after: failure.retry_after || window}
  end

  # Locked for two seconds by other changes.
  defp by_status(423, _headers, _json, failure),
    do: %{failure | again: :always, retry_after: failure.retry_after || 2_000}

  # The account moves to another data center.
  defp by_status(477, _headers, _json, failure),
    do: %{failure | kind: :server, again: :always}

  defp by_status(403, _headers, %{"category" => "MISSING_SCOPES"} = json, failure),
    do: %{failure | kind: :scope, hint: scopes(json)}

  defp by_status(_status, _headers, _json, failure), do: failure

  # Private apps get their scopes in HubSpot's settings, and not by `connect`.
  defp scopes(json) do
    names =
      for %{"context" => %{} = context} <- list(json["errors"]),
          {_key, names} <-
            Enum.sort(Map.take(context, ~w(requiredScopes requiredGranularScopes))),
          name <- list(names),
          Rules.code(name) != nil,
          do: name

    missing =
      case names |> Enum.uniq() |> Enum.take(10) do
        [] -> "the missing scope"
        names -> Enum.join(names, ", ")
      end

    "add #{missing} to the private app in HubSpot's settings"
  end

  defp list(list) when is_list(list), do: list
  defp list(_other), do: []

  # Of a private app in the smallest plan, and of searches in all plans.
  @impl true
  def quotas(url) do
    search = if String.ends_with?(url.path || "", "/search"), do: [{:search, {5, 1}, 1}], else: []
    [{:hubspot, {100, 10}, 1} | search]
  end

  @impl true
  def fields(fields), do: [{"properties", fields}]

  @impl true
  def next(%{"paging" => %{"next" => %{"after" => token}}}) when is_binary(token) and token != "",
    do: token

  def next(_body), do: nil

  # Searches have it in their body.
  @impl true
  def page(request, token) do
    if is_map(request[:json]),
      do: Keyword.update!(request, :json, &Map.put(&1, "after", token)),
      else: Rules.put_query(request, "after", token)
  end

  # Its batches are requests of their own, such as /batch/read.
  @impl true
  def batch(_url), do: nil
end
