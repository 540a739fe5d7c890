defmodule Skillbook.Connections.Client.MicrosoftRules do
  @moduledoc false
  # The rules of Microsoft Graph v1.0: https://learn.microsoft.com/graph/errors,
  # https://learn.microsoft.com/graph/throttling and https://learn.microsoft.com/graph/paging

  @behaviour Skillbook.Connections.Client.Rules

  alias Skillbook.Connections.Client.{HTTPRules, Rules}

  @host "graph.microsoft.com"

  @limited ~w(TooManyRequests activityLimitReached ApplicationThrottled MailboxConcurrency
    ErrorExceededConnectionCount ErrorServerBusy throttledRequest bandwidthLimitExceeded)
  @used_up ~w(quotaLimitReached insufficientStorage ErrorQuotaExceeded ErrorMessageQuotaExceeded
    ErrorExceededMessageLimit)
  # An id of another form than its own.
  @malformed ~w(ErrorInvalidIdMalformed ErrorInvalidIdNotAnItemAttachmentId ErrorInvalidIdEmpty
    ErrorCannotUseFolderIdForItemId ErrorCannotUseItemIdForFolderId)
  @no_mailbox ~w(MailboxNotEnabledForRESTAPI MailboxNotSupportedForRESTAPI
    ErrorNonExistentMailbox)
  @conflict ~w(ErrorIrresolvableConflict nameAlreadyExists resourceModified
    ErrorFolderExists)

  @impl true
  def service(%{path: "/v1.0/me/" <> path}), do: service_of(path)
  def service(_url), do: "Microsoft Graph"

  defp service_of("drive" <> _), do: "OneDrive"
  defp service_of("calendar" <> _), do: "Outlook Calendar"
  defp service_of("events" <> _), do: "Outlook Calendar"
  defp service_of(_mail), do: "Outlook"

  @impl true
  def host?(host), do: host == @host

  @impl true
  def failure(status, headers, json, body) do
    failure = HTTPRules.failure(status, headers, json, body)
    codes = codes(json)
    {kind, again, hint} = by_codes(status, codes, failure)
    code = Enum.find_value(codes, &Rules.code/1)
    %{failure | kind: kind, again: again, hint: hint, code: code}
  end

  defp by_codes(status, codes, failure) do
    any? = fn names -> Enum.any?(codes, &(&1 in names)) end

    cond do
      any?.(@used_up) or status == 507 -> {:quota, :never, nil}
      any?.(@limited) or status in [429, 509] -> {:rate_limited, :always, nil}
      any?.(@no_mailbox) -> {:forbidden, :never, "the account has no mailbox at Microsoft 365"}
      any?.(@malformed) -> {:not_found, :never, nil}
      any?.(@conflict) -> {:conflict, :never, nil}
      any?.(["ErrorMessageSizeExceeded"]) -> {:too_large, :never, nil}
      true -> {failure.kind, failure.again, nil}
    end
  end

  # The code, and those within it, which are more exact. The depth is that of the JSON.
  defp codes(%{"error" => %{} = error}), do: error |> inner() |> Enum.filter(&is_binary/1)
  defp codes(_other), do: []

  defp inner(%{} = error),
    do: [error["code"] | inner(error["innerError"] || error["innererror"])]

  defp inner(_none), do: []

  # For each application and mailbox: https://learn.microsoft.com/graph/throttling-limits. Those
  # of OneDrive are not published.
  @impl true
  def quotas(url) do
    case service(url) do
      "Outlook" <> _ -> [{:outlook, {10_000, 600}, 1}]
      _ -> []
    end
  end

  @impl true
  def fields(fields), do: [{"$select", fields}]

  @impl true
  def next(%{"@odata.nextLink" => link}) when is_binary(link) and link != "", do: link
  def next(_body), do: nil

  # A link is the whole address. The client refuses one to another server.
  @impl true
  def page(request, link), do: request |> Keyword.delete(:query) |> Keyword.put(:url, link)

  # Its batches are of JSON.
  @impl true
  def batch(_url), do: nil
end
