defmodule Skillbook.Native do
  @moduledoc false
  # The functions of the native library (native/skillbook_nif), which replaces these stubs when
  # the module is loaded.

  # Otherwise the compiler would load this module before the library is built.
  @compile {:autoload, false}
  @on_load :load

  def load do
    path = :filename.join([:code.priv_dir(:skillbook), ~c"native", ~c"libskillbook_nif"])
    :erlang.load_nif(path, 0)
  end

  # These functions have two versions. The first runs on a normal scheduler and returns `:busy` if
  # the work may take longer than a millisecond; then the second runs on a dirty scheduler.
  for {name, arity} <- [
        extract: 2,
        extractor_feed: 3,
        extractor_finish: 2,
        tokenize: 1,
        parse_command: 1,
        quote_word: 1,
        route: 2,
        frontmatter_parse: 1,
        hidden_visible: 1,
        hidden_json: 1,
        http_client: 1,
        json_decode: 2,
        json_encode: 2,
        sql_statements: 3,
        view_new: 6,
        view_suggest: 3,
        view_spelled: 2,
        view_entries: 4,
        view_page: 4,
        view_names: 3,
        view_domains: 1,
        view_help: 2,
        view_help_domain: 2,
        view_help_skill: 2,
        view_prompt: 1,
        view_news: 2,
        view_tools: 3,
        tools_allow: 3
      ] do
    [now, dirty] = for scheduler <- [:now, :dirty], do: :"#{name}_#{scheduler}"
    arguments = Macro.generate_arguments(arity, __MODULE__)
    ignored = List.duplicate({:_, [], nil}, arity)

    def unquote(name)(unquote_splicing(arguments)) do
      with :busy <- unquote(now)(unquote_splicing(arguments)),
           do: unquote(dirty)(unquote_splicing(arguments))
    end

    def unquote(now)(unquote_splicing(ignored)), do: missing()
    def unquote(dirty)(unquote_splicing(ignored)), do: missing()
  end

  def hidden_find(_text), do: missing()
  def extractor_new(_run), do: missing()
  def behavior_steps(_body), do: missing()

  def same_spelling(_text, _others), do: missing()
  def sql_open(_path, _patience_ms), do: missing()
  def sql_close(_database), do: missing()
  def sql_read(_database, _sql, _params), do: missing()
  def sql_query(_database, _epoch, _inside, _sql, _params), do: missing()
  def sql_query_all(_database, _epoch, _statements), do: missing()
  def sql_batch(_database, _epoch, _inside, _sql), do: missing()
  def sql_begin(_database, _epoch, _level, _statements), do: missing()
  def sql_commit(_database, _epoch, _level), do: missing()
  def sql_rollback(_database, _epoch, _level), do: missing()
  def sql_abandon(_database), do: missing()
  def sql_check(_database), do: missing()

  def postgres_server(_address, _limits), do: missing()
  def postgres_connect(_server, _reference), do: missing()
  def postgres_may_read(_sql), do: missing()
  def postgres_writers, do: missing()
  def postgres_query(_session, _reference, _place, _sql, _params), do: missing()
  def postgres_query_all(_session, _reference, _statements), do: missing()
  def postgres_batch(_session, _reference, _place, _sql), do: missing()
  def postgres_begin(_session, _reference, _level, _statements), do: missing()
  def postgres_commit(_session, _reference, _level), do: missing()
  def postgres_rollback(_session, _reference, _level), do: missing()
  def postgres_listen(_session, _reference, _channel, _listens), do: missing()
  def postgres_usable(_session), do: missing()
  def postgres_close(_session), do: missing()

  def http_request(_client, _reference, _method, _url, _headers, _body, _limits), do: missing()
  def http_next(_stream, _reference), do: missing()
  def http_leave(_stream), do: missing()

  def web_start(_settings), do: missing()
  def web_stop(_server, _reference, _drain_ms), do: missing()
  def web_info(_server), do: missing()
  def web_take(_exchange), do: missing()
  def web_respond(_exchange, _status, _headers, _body), do: missing()
  def web_stream(_exchange, _status, _headers, _length, _is_endless), do: missing()
  def web_write(_exchange, _reference, _data), do: missing()
  def web_finish(_exchange), do: missing()

  def globs_check(_patterns), do: missing()
  def globs_filter(_patterns, _names), do: missing()
  def catalog_load(_sources, _pages), do: missing()
  def catalog_read(_catalog, _pages), do: missing()
  def catalog_read_paths(_catalog, _paths, _pages), do: missing()
  def catalog_publish(_catalog, _problems), do: missing()
  def catalog_problems(_catalog), do: missing()
  def catalog_store(_catalog, _columns, _rows, _is_whole), do: missing()
  def catalog_scheduled(_catalog, _name), do: missing()
  def stored_visible(_profile_ids, _tenant, _grants, _globs, _stored), do: missing()
  def view_sees(_view, _stored), do: missing()
  def catalog_generation(_catalog), do: missing()
  def catalog_count(_catalog), do: missing()
  def catalog_diagnostics(_catalog), do: missing()

  def view_fetch(_view, _name), do: missing()
  def view_frontmatter(_view, _name), do: missing()
  def view_record(_view, _name), do: missing()
  def view_file(_view, _name, _title), do: missing()
  def view_explain(_view, _tenant, _name, _prompt), do: missing()
  def view_count(_view), do: missing()
  def view_diagnostics(_view), do: missing()
  def view_search(_view, _text, _limit, _kind, _domain, _tags, _meaning), do: missing()
  def view_candidates(_view, _text, _limit, _meaning), do: missing()
  def view_embedded(_view, _vectors), do: missing()
  def vectors_new, do: missing()
  def vectors_put(_vectors, _rows), do: missing()
  def vectors_clear(_vectors), do: missing()
  def vectors_count(_vectors), do: missing()
  def vectors_digests(_vectors, _catalog), do: missing()
  def vectors_texts(_catalog, _digests), do: missing()
  def vectors_retain(_vectors, _catalog), do: missing()
  def view_pickable(_view, _names), do: missing()
  def view_pickables(_view, _most), do: missing()
  def view_proactive(_view), do: missing()
  def view_triggered(_view, _text), do: missing()

  def search_words(_parts), do: missing()
  def search_pack(_documents), do: missing()
  def search_chunks(_documents), do: missing()
  def search_digests(_vectors, _runs), do: missing()
  def search_retain(_vectors, _runs), do: missing()
  def search_merge(_runs), do: missing()
  def search_without(_ids, _gone, _these), do: missing()
  def search_snippets(_texts, _stems, _prefixes), do: missing()
  def search_rank(_clauses, _filters, _rows, _documents, _meaning, _limit), do: missing()
  def view_help_domain_all(_view, _name), do: missing()
  def view_prompt_with(_view, _options), do: missing()
  def view_same_catalog(_view, _other), do: missing()
  def view_why(_view, _text, _names), do: missing()
  def view_alike(_view, _vectors, _least, _limit), do: missing()
  def view_rivals(_view, _least, _limit), do: missing()
  def view_flags(_view, _name), do: missing()
  def view_examples(_view, _name), do: missing()
  def declaration_read(_text), do: missing()

  def pattern_check(_pattern, _values), do: missing()

  def watch_start(_roots, _poll, _interval_ms), do: missing()

  def diagnostic_excerpt(_line, _column), do: missing()
  def diff_unified(_from, _to), do: missing()
  def markdown_html(_text, _files), do: missing()
  def lint_view(_view), do: missing()
  def lint_strict(_folder, _text), do: missing()
  def diagnostic_codes, do: missing()

  def frontmatter_write(_pairs, _body), do: missing()
  def frontmatter_access(_text), do: missing()
  def frontmatter_restriction(_key), do: missing()

  def json_place(_text, _path, _part), do: missing()

  def schedule_parse(_expression, _timezone), do: missing()
  def schedule_next(_schedule, _later_than), do: missing()
  def schedule_upcoming(_schedule, _later_than, _count), do: missing()
  def schedule_local(_schedule, _at), do: missing()
  def schedule_describe(_schedule), do: missing()
  def zone_stretch(_name, _at), do: missing()

  defp missing, do: :erlang.nif_error(:nif_not_loaded)
end
