defmodule Skillbook.SQL.Migrations.V9 do
  @moduledoc false
  # Replaces FTS5, tsvector and the terms of vaults by one index for vaults, tasks and memories.
  #
  # Existing documents are listed in `skillbook_search_unindexed`; `Skillbook.Search.Backfill`
  # indexes them when a book starts.

  import Skillbook.SQL.Migrations.Types, only: [blob: 1, id: 1, text: 1]

  alias Skillbook.SQL.Migrations.{V1, V5, V8}

  # Without `@behaviour`, like V1.
  def up(dialect) do
    {text, blob} = {text(dialect), blob(dialect)}

    V1.unsearch(dialect) ++
      [
        "drop table skillbook_document_terms",
        "drop table skillbook_document_fields",
        # Segments now hold documents of all kinds, one segment per scope and labels. `documents`
        # is the number of indexed documents.
        """
        update skillbook_documents set segment_id = (
          select min(o.id) from skillbook_document_segments s
          join skillbook_document_segments o on o.vault = s.vault and o.labels = s.labels
          where s.id = skillbook_documents.segment_id)
        """,
        "delete from skillbook_document_segments where id not in (select segment_id from " <>
          "skillbook_documents)",
        "alter table skillbook_document_segments rename to skillbook_search_segments",
        "alter table skillbook_search_segments rename column vault to scope",
        "alter table skillbook_search_segments add column kind #{text} not null default 'vault'",
        "update skillbook_search_segments set documents = 0",
        "create unique index skillbook_search_segments_index on skillbook_search_segments " <>
          "(kind, scope, labels)",
        "drop index skillbook_documents_segment_index",
        "create index skillbook_documents_segment_index on skillbook_documents (segment_id)",
        # `ids` are the documents of a run and `gone` those that were removed since, packed as
        # `native/skillbook_core/src/search/rows` describes; `left_over` is the number of the
        # others.
        """
        create table skillbook_search_runs (
          id #{id(dialect)},
          segment_id bigint not null references skillbook_search_segments (id) on delete cascade,
          size bigint not null,
          first_document bigint not null,
          last_document bigint not null,
          documents bigint not null,
          left_over bigint not null,
          ids #{blob} not null,
          gone #{blob} not null
        )
        """,
        "create index skillbook_search_runs_segment_index on skillbook_search_runs (segment_id)",
        """
        create table skillbook_search_blocks (
          run_id bigint not null references skillbook_search_runs (id) on delete cascade,
          first #{text} not null,
          documents #{blob} not null,
          places #{blob} not null,
          primary key (run_id, first)
        )
        """,
        # Memories are numbered per owner. Existing ones keep their id, because people may have
        # noted it.
        "alter table skillbook_memories add column number bigint not null default 0",
        "update skillbook_memories set number = id",
        "create unique index skillbook_memories_number_index on skillbook_memories (owner, " <>
          "number)",
        "create index skillbook_memories_time_index on skillbook_memories (owner, " <>
          "created_at, number)",
        """
        create table skillbook_search_unindexed (
          kind #{text} not null,
          document_id bigint not null,
          primary key (kind, document_id)
        )
        """,
        """
        insert into skillbook_search_unindexed (kind, document_id)
        select 'vault', id from skillbook_documents
        union all select 'memory', id from skillbook_memories
        union all select 'task', id from skillbook_tasks where archived_at is null
        """
      ] ++ packed(dialect)
  end

  # Back on V8, vaults are indexed again.
  def down(dialect) do
    [
      "drop table skillbook_search_unindexed",
      "drop table skillbook_search_blocks",
      "drop table skillbook_search_runs",
      "drop table skillbook_document_texts",
      "drop table skillbook_documents",
      "drop table skillbook_search_segments",
      "drop index skillbook_memories_number_index",
      "drop index skillbook_memories_time_index",
      "alter table skillbook_memories drop column number"
    ] ++ (V8.up(dialect) -- V5.down(dialect)) ++ V1.search(dialect) ++ rebuilt(dialect)
  end

  # The columns are packed already; compressing them takes longer than reading them.
  defp packed(:sqlite), do: []

  defp packed(:postgres) do
    for column <- ~w(documents places),
        do: "alter table skillbook_search_blocks alter column #{column} set storage external"
  end

  defp rebuilt(:sqlite) do
    for table <- ~w(skillbook_tasks_fts skillbook_memories_fts),
        do: "insert into #{table} (#{table}) values ('rebuild')"
  end

  defp rebuilt(:postgres), do: []
end
