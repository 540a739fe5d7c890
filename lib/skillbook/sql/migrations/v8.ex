defmodule Skillbook.SQL.Migrations.V8 do
  @moduledoc false
  # Replaces the tables of V5 by segments and a table of terms. Vaults are indexed again.
  #
  # Times are text and lists are JSON, as in V2. The core normalizes words, and both databases use
  # the same table of terms, so they return the same results.

  import Skillbook.SQL.Migrations.Types, only: [blob: 1, id: 1, text: 1]

  alias Skillbook.SQL.Migrations.V5

  # Without `@behaviour`, like V1.
  def up(dialect) do
    text = text(dialect)

    V5.down(dialect) ++
      [
        # A segment holds up to some thousand documents of one vault with the same labels. Terms
        # are stored per segment, so a search does not read hidden documents, and a write changes
        # few rows. `documents` is their number.
        """
        create table skillbook_document_segments (
          id #{id(dialect)},
          vault #{text} not null,
          labels #{text} not null,
          documents bigint not null
        )
        """,
        # A segment has the documents' own labels; each read adds the vault's from the book's
        # options. The producer reports `size` and `mtime`; `hash` is computed from the text.
        """
        create table skillbook_documents (
          id #{id(dialect)},
          segment_id bigint not null references skillbook_document_segments (id),
          vault #{text} not null,
          producer #{text} not null,
          external_id #{text} not null,
          path #{text} not null,
          folder #{text} not null,
          name #{text} not null,
          title #{text} not null,
          aliases #{text} not null,
          tags #{text} not null,
          links #{text} not null,
          frontmatter #{text} not null,
          word_count bigint not null,
          hash #{text} not null,
          size bigint,
          mtime bigint,
          indexed_at #{text} not null
        )
        """,
        # Separate from the other columns, which are scanned more often.
        """
        create table skillbook_document_texts (
          document_id bigint primary key references skillbook_documents (id) on delete cascade,
          content #{text} not null
        )
        """,
        "create unique index skillbook_documents_external_index on skillbook_documents " <>
          "(vault, external_id)",
        "create index skillbook_documents_segment_index on skillbook_documents (segment_id, " <>
          "folder)",
        # The values that `--tag` and `--field` match, in lowercase. The field `*` holds the names
        # of a document.
        """
        create table skillbook_document_fields (
          field #{text} not null,
          value #{text} not null,
          document_id bigint not null references skillbook_documents (id) on delete cascade,
          primary key (field, value, document_id)
        )#{clustered(dialect)}
        """,
        "create index skillbook_document_fields_document_index on skillbook_document_fields " <>
          "(document_id)",
        # `native/skillbook_core/src/search/rows` describes terms and the packed columns.
        """
        create table skillbook_document_terms (
          segment_id bigint not null references skillbook_document_segments (id) on delete \
        cascade,
          term #{text} not null,
          documents #{blob(dialect)} not null,
          places #{blob(dialect)} not null,
          primary key (segment_id, term)
        )#{clustered(dialect)}
        """
      ]
  end

  def down(dialect) do
    tables = ~w(document_terms document_fields document_texts documents document_segments)
    Enum.map(tables, &"drop table skillbook_#{&1}") ++ V5.up(dialect)
  end

  defp clustered(:sqlite), do: " without rowid"
  defp clustered(:postgres), do: ""
end
