defmodule Skillbook.Web.Page.Attention do
  @moduledoc false
  # The things that need the reader: calls that wait for an approval, documents with errors,
  # accounts that were withdrawn, and offers of servers. The navigation counts them, and the first
  # page lists them. Calls and offers are for operators, who decide about them.

  alias Skillbook.{Book, Connections, Profile}
  alias Skillbook.MCP.Client
  alias Skillbook.Web.{Caller, Request}
  alias Skillbook.Web.Page.{Findings, Parts}

  # More are shown as "99+".
  @max 100
  # As the list of diagnostics asks, so that both are made once.
  @errors %{severity: :error, code: nil, advice?: false, folder: nil}

  @typedoc """
  The calls that wait for an operator, the number of errors in documents that the caller sees, the
  withdrawn accounts of its own profile, and the offers of servers that wait for an operator.
  """
  @type t :: %{
          approvals: [Skillbook.Approval.t()],
          errors: non_neg_integer(),
          revoked: [map()],
          offers: [map()]
        }

  @doc "Reads them; `nil` without a caller."
  @spec read(Request.t()) :: t() | nil
  def read(%Request{caller: nil}), do: nil

  def read(request) do
    %{
      approvals: approvals(request),
      errors: Findings.list(request.caller, @errors, 5, 0).severities[:error] || 0,
      revoked: revoked(request),
      offers: offers(request)
    }
  end

  @doc "For each room, how many things need the reader, with the same in words."
  @spec counts(t() | nil) :: %{atom() => {non_neg_integer(), String.t()}}
  def counts(nil), do: %{}

  def counts(%{errors: errors} = found) do
    approvals = length(found.approvals)
    accounts = length(found.revoked) + length(found.offers)

    %{
      activity: {approvals, Parts.count(approvals, "call waits", "calls wait")},
      health: {errors, Parts.count(errors, "error", "errors")},
      accounts: {accounts, Parts.count(accounts, "needs you", "need you")}
    }
  end

  defp approvals(%{caller: %{operator?: true} = caller} = request) do
    options = [tenant: caller.profile.tenant, limit: @max]

    guarded(fn ->
      with {:error, _no_store} <- Skillbook.approvals(Caller.view(request).book, options),
           do: {:ok, []}
    end)
  end

  defp approvals(_request), do: []

  defp revoked(request) do
    view = Caller.view(request)

    guarded(fn ->
      with true <- Connections.any?(Book.fetch!(view.book)),
           {:ok, accounts} <- Connections.sign_ins(view.book, view.profile) do
        {:ok, Enum.filter(accounts, &match?(%{connection: %{status: :revoked}}, &1))}
      else
        _none -> {:ok, []}
      end
    end)
  end

  defp offers(%{caller: %{operator?: true} = caller}) do
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

  defp offers(_request), do: []

  # While the database restarts, a page shows the rest.
  defp guarded(fun) do
    with {:ok, list} <- fun.(), do: list, else: (_error -> [])
  rescue
    ArgumentError -> []
  catch
    :exit, _reason -> []
  end
end
