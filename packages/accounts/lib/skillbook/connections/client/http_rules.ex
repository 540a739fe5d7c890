defmodule Skillbook.Connections.Client.HTTPRules do
  @moduledoc false
  # The rules of any HTTP server, for vendors without rules of their own.

  @behaviour Skillbook.Connections.Client.Rules

  alias Skillbook.Connections.Client.Rules
  alias Skillbook.HTTP.Failure

  @impl true
  def service(url), do: url.host

  @impl true
  def host?(_host), do: true

  @impl true
  def failure(status, headers, _json, body) do
    {kind, again} = Rules.status(status)

    %{
      kind: kind,
      again: again,
      code: nil,
      text: Rules.text(body),
      hint: nil,
      retry_after: Failure.retry_after(headers, body)
    }
  end

  @impl true
  def quotas(_url), do: []

  @impl true
  def fields(_fields), do: []

  @impl true
  def next(_body), do: nil

  @impl true
  def page(request, _token), do: request

  @impl true
  def batch(_url), do: nil
end
