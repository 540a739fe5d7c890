defmodule Skillbook.SQL.Migrations.V5 do
  @moduledoc false
  # Creates the tables of vault documents and their full-text index.
  #
  # Times are text and lists are JSON, as in V2. Words are normalized before they reach the
  # database, so both indexes hold the same terms. SQLite's index has no copy of the text;
  # PostgreSQL's is a column.

  import Skillbook.SQL.Migrations.Types, only: [id: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    [
      # `labels` are the document's own; each read adds the vault's from the book's options. The
      # producer reports `size` and `mtime`; `hash` is computed from the text.
      """
      create table skillbook_documents (
        id #{id(dialect)},
        vault text not null,
        producer text not null,
        external_id text not null,
        path text not null,
        folder text not null,
        name text not null,
        title text not null,
        aliases text not null,
        tags text not null,
        links text not null,
        frontmatter text not null,
        content text not null,
        word_count bigint not null,
        labels text not null,
        hash text not null,
        size bigint,
        mtime bigint,
        indexed_at text not null#{search(dialect)}
      )
      """,
      "create unique index skillbook_documents_external_index on skillbook_documents (vault, " <>
        "external_id)",
      "create index skillbook_documents_labels_index on skillbook_documents (labels)",
      # The values that `--tag` and `--field` match, in lowercase. The field `*` holds the names
      # of a document.
      """
      create table skillbook_document_fields (
        document_id bigint not null references skillbook_documents (id) on delete cascade,
        field text not null,
        value text not null,
        primary key (document_id, field, value)
      )
      """
    ] ++ index(dialect)
  end

  def down(dialect) do
    terms =
      if dialect == :sqlite,
        do: ["drop table skillbook_documents_terms", "drop table skillbook_documents_fts"],
        else: []

    terms ++ ["drop table skillbook_document_fields", "drop table skillbook_documents"]
  end

  defp search(:sqlite), do: ""
  defp search(:postgres), do: ",\n  search tsvector not null"

  defp index(:sqlite) do
    [
      "create virtual table skillbook_documents_fts using fts5 (name, title, content, " <>
        "content = '', " <>
        "contentless_delete = 1, tokenize = \"unicode61 remove_diacritics 0 categories 'L* " <>
        "N* M* Co'\")",
      "create virtual table skillbook_documents_terms using fts5vocab " <>
        "(skillbook_documents_fts, instance)"
    ]
  end

  defp index(:postgres),
    do: [
      "create index skillbook_documents_search_index on skillbook_documents using gin (search)"
    ]
end
