defmodule Skillbook.Web.Page.Attention do
  @moduledoc false
  # What needs the reader: calls that wait for an approval, documents with errors, accounts that
  # were withdrawn, and offers of servers. The navigation counts them, and the first page lists
  # them. Calls and offers are for operators, who decide about them.

  alias Skillbook.{Book, Connections, Profile}
  alias Skillbook.MCP.Client
  alias Skillbook.Web.{Caller, Request}
  alias Skillbook.Web.Page.{Findings, Parts}

  # More are shown as "99+".
  @max 100
  # As the list of diagnostics asks, so that both are made once.
  @errors %{severity: :error, code: nil, advice?: false, folder: nil}

  @doc "For each room, how many things need the reader, with the same in words."
  @spec counts(Request.t()) :: %{atom() => {non_neg_integer(), String.t()}}
  def counts(%Request{caller: nil}), do: %{}

  def counts(request) do
    approvals = length(approvals(request))
    errors = errors(request).severities[:error] || 0
    accounts = length(revoked(request)) + length(offers(request))

    %{
      activity: {approvals, Parts.count(approvals, "call waits", "calls wait")},
      health: {errors, Parts.count(errors, "error", "errors")},
      accounts: {accounts, Parts.count(accounts, "needs you", "need you")}
    }
  end

  @doc "The calls that wait for an approval, for an operator."
  @spec approvals(Request.t()) :: [Skillbook.Approval.t()]
  def approvals(%{caller: %{operator?: true} = caller} = request) do
    options = [tenant: caller.profile.tenant, limit: @max]

    guarded(fn ->
      with {:error, _no_store} <- Skillbook.approvals(Caller.view(request).book, options),
           do: {:ok, []}
    end)
  end

  def approvals(_request), do: []

  @doc "The errors of the documents that the caller sees, as `Findings.list/4`."
  @spec errors(Request.t()) :: Findings.t()
  def errors(request), do: Findings.list(request.caller, @errors, 5, 0)

  @doc "The accounts of the caller's own profile that were withdrawn."
  @spec revoked(Request.t()) :: [map()]
  def revoked(request) do
    view = Caller.view(request)

    guarded(fn ->
      with %{of_parts: %{connections: connections}} when connections != nil <-
             Book.fetch!(view.book),
           {:ok, accounts} <- Connections.sign_ins(view.book, view.profile) do
        {:ok, Enum.filter(accounts, &match?(%{connection: %{status: :revoked}}, &1))}
      else
        _none -> {:ok, []}
      end
    end)
  end

  @doc "The tools and skills of servers that wait for an operator."
  @spec offers(Request.t()) :: [map()]
  def offers(%{caller: %{operator?: true} = caller}) do
    book = Book.fetch!(caller.view.book)

    servers =
      for %{kind: :mcp} = source <- book.sources,
          Profile.reads?(caller.profile, source.tenant),
          do: source.name

    if servers == [],
      do: [],
      else:
        Enum.filter(
          Client.offers(book.name),
          &(&1.server in servers and &1.status in [:new, :changed])
        )
  end

  def offers(_request), do: []

  # While the database restarts, a page shows the rest.
  defp guarded(fun) do
    with {:ok, list} <- fun.(), do: list, else: (_error -> [])
  rescue
    ArgumentError -> []
  catch
    :exit, _reason -> []
  end
end
