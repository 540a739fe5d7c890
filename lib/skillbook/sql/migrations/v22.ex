defmodule Skillbook.SQL.Migrations.V22 do
  @moduledoc false
  # Creates the tables of durable runs of agents, and of the calls of their last turns.

  import Skillbook.SQL.Migrations.Types, only: [id: 1, text: 1]

  @behaviour Skillbook.SQL.Migrations

  @impl true
  def up(dialect) do
    {text, id} = {text(dialect), id(dialect)}

    [
      # `rights`, `assigns`, `options` and `state` are JSON. `status` is running until the run has
      # ended. `lease_until` is in milliseconds, because a lease may be shorter than a second.
      """
      create table skillbook_agent_runs (
        id #{id},
        ref #{text} not null unique,
        run #{text} not null,
        conversation #{text},
        profile #{text} not null,
        tenant #{text} not null,
        title #{text} not null,
        rights #{text} not null,
        assigns #{text} not null,
        options #{text} not null,
        state #{text},
        transcript #{text},
        status #{text} not null,
        turns bigint not null,
        continued bigint not null,
        holder #{text},
        lease_until bigint,
        started_at #{text} not null,
        ended_at #{text},
        answer #{text},
        reason #{text}
      )
      """,
      "create index skillbook_agent_runs_status_index on skillbook_agent_runs " <>
        "(status, lease_until)",
      "create index skillbook_agent_runs_profile_index on skillbook_agent_runs (profile, id)",
      "create index skillbook_agent_runs_conversation_index on skillbook_agent_runs " <>
        "(conversation, id)",
      "create index skillbook_agent_runs_time_index on skillbook_agent_runs (started_at, id)",
      # `status` is null until the call has ended. `text` is the whole text of its result, if
      # `content` has less.
      """
      create table skillbook_agent_calls (
        ref #{text} not null references skillbook_agent_runs (ref) on delete cascade,
        turn bigint not null,
        number bigint not null,
        name #{text},
        status #{text},
        content #{text},
        text #{text},
        fields #{text},
        primary key (ref, turn, number)
      )
      """
    ]
  end

  @impl true
  def down(_dialect), do: for(table <- ~w(calls runs), do: "drop table skillbook_agent_#{table}")
end
