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

  def sql_open(_path, _patience_ms), do: :erlang.nif_error(:nif_not_loaded)
  def sql_close(_database), do: :erlang.nif_error(:nif_not_loaded)
  def sql_read(_database, _sql, _params), do: :erlang.nif_error(:nif_not_loaded)
  def sql_query(_database, _epoch, _inside, _sql, _params), do: :erlang.nif_error(:nif_not_loaded)
  def sql_batch(_database, _epoch, _inside, _sql), do: :erlang.nif_error(:nif_not_loaded)
  def sql_begin(_database, _epoch, _level), do: :erlang.nif_error(:nif_not_loaded)
  def sql_commit(_database, _epoch, _level), do: :erlang.nif_error(:nif_not_loaded)
  def sql_rollback(_database, _epoch, _level), do: :erlang.nif_error(:nif_not_loaded)
  def sql_abandon(_database), do: :erlang.nif_error(:nif_not_loaded)
end
