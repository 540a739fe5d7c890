defmodule Skillbook.SQL.Migrations.V11 do
  @moduledoc false
  # Adds the vectors of embedded texts.
  #
  # A row belongs to a text and a model, not to a book: books that have the same text share it.
  # `hash` is the first half of the text's SHA-256 in hexadecimal, `vector` has `size` 32-bit
  # floats, and `used_on` is a day on which a book needed the row.

  import Skillbook.SQL.Migrations.Types, only: [blob: 1, text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    {text, blob} = {text(dialect), blob(dialect)}

    [
      """
      create table skillbook_vectors (
        model #{text} not null,
        hash #{text} not null,
        size bigint not null,
        used_on #{text} not null,
        vector #{blob} not null,
        primary key (model, hash)
      )
      """,
      "create index skillbook_vectors_used_index on skillbook_vectors (used_on)"
    ]
  end

  def down(_dialect), do: ["drop table skillbook_vectors"]
end
