defmodule Skillbook.Connections.Client.GoogleRules do
  @moduledoc false
  # The rules of Google's interfaces: Gmail v1, Calendar v3, Drive v3. Their errors have a reason,
  # which decides; a 403 may be a rate limit.

  @behaviour Skillbook.Connections.Client.Rules

  alias Skillbook.Connections.Client.{HTTPRules, Rules}

  # The reasons of a 403 or 429: https://developers.google.com/drive/api/guides/handle-errors,
  # https://developers.google.com/gmail/api/guides/handle-errors,
  # https://developers.google.com/calendar/api/guides/errors
  @limited ~w(rateLimitExceeded userRateLimitExceeded RATE_LIMIT_EXCEEDED RESOURCE_EXHAUSTED)
  @used_up ~w(dailyLimitExceeded quotaExceeded sharingRateLimitExceeded storageQuotaExceeded
    teamDriveFileLimitExceeded numChildrenInNonRootLimitExceeded activeItemCreationLimitExceeded
    dailyLimitExceededUnreg calendarUsageLimits)
  @scope ~w(insufficientPermissions ACCESS_TOKEN_SCOPE_INSUFFICIENT insufficientScopes)
  @disabled ~w(accessNotConfigured SERVICE_DISABLED)

  @impl true
  def service(%{host: "gmail." <> _}), do: "Gmail"
  def service(%{path: "/gmail/" <> _}), do: "Gmail"
  def service(%{path: "/batch/gmail/" <> _}), do: "Gmail"
  def service(%{path: "/calendar/" <> _}), do: "Google Calendar"
  def service(%{path: "/batch/calendar/" <> _}), do: "Google Calendar"
  def service(%{path: "/drive/" <> _}), do: "Google Drive"
  def service(%{path: "/upload/drive/" <> _}), do: "Google Drive"
  def service(%{path: "/batch/drive/" <> _}), do: "Google Drive"
  def service(_url), do: "Google"

  @impl true
  def host?(host), do: host == "googleapis.com" or String.ends_with?(host, ".googleapis.com")

  @impl true
  def failure(status, headers, json, body) do
    failure = HTTPRules.failure(status, headers, json, body)
    codes = codes(json)
    {kind, again, hint} = by_codes(status, codes, failure)

    %{
      failure
      | kind: kind,
        again: again,
        hint: hint,
        code: Enum.find_value(codes, &Rules.code/1)
    }
  end

  defp by_codes(status, codes, _failure) when status in [403, 429] do
    any? = fn names -> Enum.any?(codes, &(&1 in names)) end

    cond do
      any?.(@used_up) -> {:quota, :never, nil}
      any?.(@limited) or status == 429 -> {:rate_limited, :always, nil}
      any?.(@scope) -> {:scope, :never, nil}
      any?.(@disabled) -> {:forbidden, :never, "the operator has to enable this API at Google"}
      true -> {:forbidden, :never, nil}
    end
  end

  defp by_codes(_status, _codes, failure), do: {failure.kind, failure.again, nil}

  # The reasons of both forms of errors, and then the status by name.
  defp codes(%{"error" => %{} = error}) do
    details = for %{"reason" => reason} <- list(error["details"]), do: reason
    old = for %{"reason" => reason} <- list(error["errors"]), do: reason
    Enum.filter(old ++ details ++ [error["status"]], &is_binary/1)
  end

  # The form of OAuth.
  defp codes(%{"error" => code}) when is_binary(code), do: [code]
  defp codes(_other), do: []

  defp list(list) when is_list(list), do: list
  defp list(_other), do: []

  # For each user and project: https://developers.google.com/gmail/api/reference/quota,
  # https://developers.google.com/calendar/api/guides/quota,
  # https://developers.google.com/drive/api/guides/limits
  @impl true
  def quotas(url) do
    case service(url) do
      "Gmail" -> [{:gmail, {15_000, 60}, 5}]
      "Google Calendar" -> [{:calendar, {600, 60}, 1}]
      "Google Drive" -> [{:drive, {12_000, 60}, 1}]
      _ -> []
    end
  end

  @impl true
  def fields(fields), do: [{"fields", fields}]

  @impl true
  def next(%{"nextPageToken" => token}) when is_binary(token) and token != "", do: token
  def next(_body), do: nil

  @impl true
  def page(request, token), do: Rules.put_query(request, "pageToken", token)

  # Google takes up to 100 in one, and limits larger ones sooner than two of 50.
  @impl true
  def batch(url) do
    case service(url) do
      "Gmail" -> {"https://gmail.googleapis.com/batch/gmail/v1", 50}
      "Google Calendar" -> {"https://www.googleapis.com/batch/calendar/v3", 50}
      "Google Drive" -> {"https://www.googleapis.com/batch/drive/v3", 50}
      _ -> nil
    end
  end
end
