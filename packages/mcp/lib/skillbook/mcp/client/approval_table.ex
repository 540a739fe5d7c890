defmodule Skillbook.MCP.Client.ApprovalTable do
  @moduledoc false
  # The table of operators' decisions about the tools and skills of MCP servers.
  #
  # A change is a transaction that first raises the setting `server_approvals`, so that the other
  # nodes see it. A decision that was taken back stays as a refusal: a lock file must not bring it
  # back.

  alias Skillbook.MCP.Client.{Approvals, Settings}
  alias Skillbook.Package.Publish
  alias Skillbook.Support.JSON
  alias Skillbook.SQL
  alias Skillbook.SQL.Values

  @key "server = $1 and place = $2"

  @next_revision Values.raise_setting("server_approvals")

  # Not a number, so a follower looks at its revisions whatever they are.
  @notify "select pg_notify('skillbook', 'servers')"

  # Approvals kept of a server beside those of as many offers as it may have. A function that
  # approves could otherwise fill the database with the names of a server that changes them.
  # Refusals are not deleted, so no such server gets rid of them.
  @more 10_000

  @doc "The decisions about a server."
  @spec list(SQL.t(), Settings.t()) :: {:ok, Approvals.t()} | {:error, SQL.Error.t()}
  def list(sql, settings) do
    query =
      "select item, digest, decision, decided_by, decided_at " <>
        "from skillbook_server_approvals where #{@key}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, key(settings)),
         do: {:ok, Map.new(rows, &decision/1)}
  end

  @doc """
  Writes the decisions that `fun` makes of the stored ones; returns all of them, and how many were
  written.
  """
  @spec update(SQL.t(), Settings.t(), (Approvals.t() -> Approvals.t())) ::
          {:ok, {Approvals.t(), non_neg_integer()}} | {:error, SQL.Error.t()}
  def update(sql, settings, fun) do
    SQL.transaction(sql, [@next_revision], fn sql, _results ->
      with {:ok, stored} <- list(sql, settings),
           new = fun.(stored),
           :ok <- write(sql, settings, new),
           :ok <- prune(sql, settings),
           {:ok, _} <- notify(sql),
           {:ok, all} <- list(sql, settings),
           do: {:ok, {all, map_size(new)}}
    end)
  end

  defp write(sql, settings, decisions) do
    insert =
      "insert into skillbook_server_approvals " <>
        "(server, place, item, digest, decision, decided_by, decided_at) " <>
        "values ($1, $2, $3, $4, $5, $6, $7) on conflict (server, place, item) do update set " <>
        "digest = excluded.digest, decision = excluded.decision, " <>
        "decided_by = excluded.decided_by, decided_at = excluded.decided_at"

    statements =
      for {item, one} <- decisions do
        values = [item, one.digest, Atom.to_string(one.decision), one.by, one.at]
        {insert, key(settings) ++ values}
      end

    with {:ok, _} <- SQL.query_all(sql, statements), do: :ok
  end

  defp prune(sql, settings) do
    approved = "#{@key} and decision = 'approved'"

    delete =
      "delete from skillbook_server_approvals where #{approved} and item not in (select item " <>
        "from skillbook_server_approvals where #{approved} order by decided_at desc, item " <>
        "limit $3)"

    max = 2 * settings.max_tools + settings.max_skills + @more
    with {:ok, _} <- SQL.query(sql, delete, key(settings) ++ [max]), do: :ok
  end

  defp notify(sql) do
    if SQL.dialect(sql) == :postgres, do: SQL.query(sql, @notify), else: {:ok, nil}
  end

  # The words of a command apart, so that no other one is the same.
  defp key(%{label: label, place: {:command, words}}),
    do: [label, Publish.digest(JSON.encode(words))]

  defp key(settings), do: [settings.label, Publish.digest(Settings.place_text(settings))]

  # A decision of a later version approves nothing.
  defp decision([item, digest, decision, by, at]) do
    decision = if decision == "approved", do: :approved, else: :refused
    {item, %{digest: digest, decision: decision, by: by, at: time(DateTime.from_iso8601(at))}}
  end

  defp time({:ok, at, _offset}), do: at
  # A text that somebody else has written there.
  defp time({:error, _reason}), do: nil
end
