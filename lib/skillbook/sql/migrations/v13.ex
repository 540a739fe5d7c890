defmodule Skillbook.SQL.Migrations.V13 do
  @moduledoc false
  # Creates the table of approvals: a row per call that waits for a decision, or had one.

  import Skillbook.SQL.Migrations.Types, only: [id: 1, text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    {text, id} = {text(dialect), id(dialect)}

    [
      # `words` is JSON with the command as it runs, and its flags. `rights` is JSON with the
      # rights of the profile at the time of the call, `run` the id of the agent's run.
      # `lease_until` is in milliseconds, because a lease may be shorter than a second.
      """
      create table skillbook_approvals (
        id #{id},
        ref #{text} not null,
        profile #{text} not null,
        skill #{text} not null,
        hash #{text} not null,
        words #{text} not null,
        rights #{text} not null,
        assigns #{text} not null,
        made_by #{text} not null,
        run #{text},
        transcript #{text},
        status #{text} not null,
        asked_at #{text} not null,
        expires_at #{text} not null,
        decided_at #{text},
        decided_by #{text},
        reason #{text},
        holder #{text},
        lease_until bigint,
        finished_at #{text},
        result_status #{text},
        result #{text}
      )
      """,
      "create unique index skillbook_approvals_ref_index on skillbook_approvals (ref)",
      "create index skillbook_approvals_profile_index on skillbook_approvals (profile, id)",
      "create index skillbook_approvals_status_index on skillbook_approvals (status)"
    ]
  end

  def down(_dialect), do: ["drop table skillbook_approvals"]
end
