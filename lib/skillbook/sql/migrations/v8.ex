defmodule Skillbook.SQL.Migrations.V8 do
  @moduledoc false
  # The documents of vaults and what is searched of them, in other tables than those of V5: a vault is indexed anew.
  #
  # Times are text and lists are JSON, as in V2. Words are prepared by the core, and the table of terms is our own, so both
  # databases hold and give the same.

  alias Skillbook.SQL.Migrations.V5

  # As V1, without saying so that it has the callback.
  def up(dialect) do
    text = text(dialect)

    V5.down(dialect) ++
      [
        # Documents of one vault with the same labels, up to some thousand. Terms are kept apart by it, so a search reads nothing
        # of what its reader does not see, and a write touches few rows. `documents` counts them.
        """
        create table skillbook_document_segments (
          id #{id(dialect)},
          vault #{text} not null,
          labels #{text} not null,
          documents bigint not null
        )
        """,
        # The labels of a segment are the documents' own; those of its vault come from the book's options at each read. `size` and
        # `mtime` are what the producer said of it, `hash` is that of what was read.
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
        # Apart from the rest, which is looked through more often.
        """
        create table skillbook_document_texts (
          document_id bigint primary key references skillbook_documents (id) on delete cascade,
          content #{text} not null
        )
        """,
        "create unique index skillbook_documents_external_index on skillbook_documents (vault, external_id)",
        "create index skillbook_documents_segment_index on skillbook_documents (segment_id, folder)",
        # What `--tag` and `--field` look at: a row for each value, in small letters. The field `*` has the names by which a
        # document is called.
        """
        create table skillbook_document_fields (
          field #{text} not null,
          value #{text} not null,
          document_id bigint not null references skillbook_documents (id) on delete cascade,
          primary key (field, value, document_id)
        )#{clustered(dialect)}
        """,
        "create index skillbook_document_fields_document_index on skillbook_document_fields (document_id)",
        # `native/skillbook_core/src/search/rows` says what terms are, and how `documents` and `places` are packed.
        """
        create table skillbook_document_terms (
          segment_id bigint not null references skillbook_document_segments (id) on delete cascade,
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

  defp id(:sqlite), do: "integer primary key autoincrement"
  defp id(:postgres), do: "bigint generated always as identity primary key"

  # Compared and ordered by their bytes, whatever the server's language is.
  defp text(:sqlite), do: "text"
  defp text(:postgres), do: ~s(text collate "C")

  defp blob(:sqlite), do: "blob"
  defp blob(:postgres), do: "bytea"

  defp clustered(:sqlite), do: " without rowid"
  defp clustered(:postgres), do: ""
end
