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

  def extract(_text, _run), do: missing()
  def extract_dirty(_text, _run), do: missing()
  def extractor_new(_run), do: missing()
  def extractor_feed(_ref, _number, _chunk), do: missing()
  def extractor_feed_dirty(_ref, _number, _chunk), do: missing()
  def extractor_finish(_ref, _number), do: missing()
  def tokenize(_line), do: missing()
  def tokenize_dirty(_line), do: missing()
  def parse_command(_line), do: missing()
  def parse_command_dirty(_line), do: missing()
  def route(_view, _line), do: missing()
  def route_dirty(_view, _line), do: missing()

  def sql_open(_path, _patience_ms), do: missing()
  def sql_close(_database), do: missing()
  def sql_read(_database, _sql, _params), do: missing()
  def sql_query(_database, _epoch, _inside, _sql, _params), do: missing()
  def sql_batch(_database, _epoch, _inside, _sql), do: missing()
  def sql_begin(_database, _epoch, _level), do: missing()
  def sql_commit(_database, _epoch, _level), do: missing()
  def sql_rollback(_database, _epoch, _level), do: missing()
  def sql_abandon(_database), do: missing()

  def globs_check(_patterns), do: missing()
  def globs_filter(_patterns, _names), do: missing()
  def catalog_load(_sources), do: missing()
  def catalog_reload(_catalog), do: missing()
  def catalog_reload_paths(_catalog, _paths), do: missing()
  def catalog_generation(_catalog), do: missing()
  def catalog_count(_catalog), do: missing()
  def catalog_diagnostics(_catalog), do: missing()

  def view_new(_catalog, _id, _grants, _skills), do: missing()
  def view_fetch(_view, _name), do: missing()
  def view_suggest(_view, _name), do: missing()
  def view_explain(_view, _name, _prompt), do: missing()
  def view_count(_view), do: missing()
  def view_entries(_view, _domain, _kind), do: missing()
  def view_domains(_view), do: missing()
  def view_diagnostics(_view), do: missing()
  def view_search(_view, _text, _limit, _kind, _domain, _tags), do: missing()
  def view_help(_view, _path), do: missing()
  def view_help_domain(_view, _name), do: missing()
  def view_help_domain_all(_view, _name), do: missing()
  def view_help_skill(_view, _name), do: missing()
  def view_prompt_made(_view), do: missing()
  def view_prompt(_view), do: missing()
  def view_prompt_with(_view, _options), do: missing()
  def view_news(_view, _old), do: missing()
  def view_tools(_view, _name, _tools), do: missing()
  def view_flags(_view, _name), do: missing()
  def tools_allow(_tools, _name, _argument), do: missing()

  def watch_start(_roots, _poll, _interval_ms), do: missing()

  def lint_catalog(_catalog), do: missing()
  def lint_strict(_folder, _text), do: missing()
  def diagnostic_codes, do: missing()

  def frontmatter_parse(_text), do: missing()
  def frontmatter_parse_dirty(_text), do: missing()
  def frontmatter_write(_pairs, _body), do: missing()

  def json_decode(_bytes), do: missing()

  defp missing, do: :erlang.nif_error(:nif_not_loaded)
end
