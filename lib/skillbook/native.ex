defmodule Skillbook.Native do
  @moduledoc false
  # Stubs only: each is replaced by its namesake in native/skillbook_nif when this module is loaded.

  # The compiler would load this module as soon as it is compiled, before the library is built.
  @compile {:autoload, false}
  @on_load :load

  def load do
    path = :filename.join([:code.priv_dir(:skillbook), ~c"native", ~c"libskillbook_nif"])
    :erlang.load_nif(path, 0)
  end

  def frontmatter_parse(_text), do: :erlang.nif_error(:nif_not_loaded)
  def frontmatter_parse_dirty(_text), do: :erlang.nif_error(:nif_not_loaded)
  def frontmatter_write(_pairs, _body), do: :erlang.nif_error(:nif_not_loaded)
end
