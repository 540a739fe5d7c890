defmodule Bench.Peer do
  @moduledoc false
  # The peers of the benchmarks. In plain Elixir: a regex for blocks, a tokenizer, a simple
  # parser of flags, and ETS for the lookup; it has far fewer rules than Skillbook. For search:
  # FTS5 and tsvector.

  @blocks ~r/```cmd\n(.*?)\n```/s

  def extract(text) do
    commands =
      for [_, block] <- Regex.scan(@blocks, text),
          line <- String.split(block, "\n", trim: true),
          do: String.trim(line)

    %{commands: commands, text: @blocks |> Regex.replace(text, "") |> String.trim()}
  end

  def tokenize(line), do: words(String.trim(line), [], [], nil)

  defp words(<<>>, [], words, nil), do: Enum.reverse(words)
  defp words(<<>>, word, words, _quote), do: words(<<>>, [], [finish(word) | words], nil)

  defp words(<<char, rest::binary>>, word, words, char) when char in [?", ?'],
    do: words(rest, ["" | word], words, nil)

  defp words(<<char, rest::binary>>, [], words, nil) when char in [?", ?'],
    do: words(rest, [""], words, char)

  defp words(<<?\s, rest::binary>>, [], words, nil), do: words(rest, [], words, nil)

  defp words(<<?\s, rest::binary>>, word, words, nil),
    do: words(rest, [], [finish(word) | words], nil)

  defp words(<<char, rest::binary>>, word, words, quote),
    do: words(rest, [char | word], words, quote)

  defp finish(word), do: word |> Enum.reverse() |> IO.iodata_to_binary()

  def flags(words, flags \\ %{})
  def flags([], flags), do: flags

  def flags(["--" <> name | rest], flags) do
    case Enum.split_while(rest, &(not String.starts_with?(&1, "--"))) do
      {[], rest} -> flags(rest, Map.put(flags, name, true))
      {[value], rest} -> flags(rest, Map.put(flags, name, value))
      {values, rest} -> flags(rest, Map.put(flags, name, values))
    end
  end

  def flags([_word | rest], flags), do: flags(rest, flags)

  def route(table, line) do
    [name | rest] = tokenize(line)

    case :ets.lookup(table, name) do
      [{^name, entry}] -> {:ok, %{name: name, entry: entry, flags: flags(rest), raw: line}}
      [] -> {:error, {:unknown_skill, name}}
    end
  end

  @doc "Starts a server that answers every request with a kilobyte; returns its URL."
  def http_server do
    {:ok, listener} =
      :gen_tcp.listen(0, [
        :binary,
        active: false,
        packet: :http_bin,
        nodelay: true,
        ip: {127, 0, 0, 1}
      ])

    {:ok, port} = :inet.port(listener)
    spawn_link(fn -> accept(listener) end)
    "http://localhost:#{port}/"
  end

  defp accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener)
    pid = spawn_link(fn -> receive(do: (:go -> answer(socket))) end)
    :ok = :gen_tcp.controlling_process(socket, pid)
    send(pid, :go)
    accept(listener)
  end

  @answer "HTTP/1.1 200 OK\r\ncontent-length: 1024\r\n\r\n" <> String.duplicate("a", 1024)

  defp answer(socket) do
    case :gen_tcp.recv(socket, 0) do
      {:ok, :http_eoh} -> :gen_tcp.send(socket, @answer) && answer(socket)
      {:ok, _line} -> answer(socket)
      {:error, _} -> :ok
    end
  end

  alias Skillbook.SQL

  @fields [name: 6, title: 4, tags: 3, description: 3, body: 1]

  @doc "Writes the entries to an FTS5 table of a new database."
  def fts(entries) do
    name = :"fts#{System.unique_integer([:positive])}"
    {:ok, _} = SQL.SQLite.start_link(path: ":memory:", name: name)
    sql = SQL.SQLite.handle(name)
    fields = Enum.map_join(@fields, ", ", &elem(&1, 0))

    tokenizer = "tokenize = 'porter unicode61 remove_diacritics 2'"
    SQL.query!(sql, "create virtual table docs using fts5 (#{fields}, #{tokenizer})")

    {:ok, _} =
      SQL.transaction(sql, fn sql ->
        for entry <- entries do
          values = [
            entry.name,
            entry.title || "",
            Enum.join(entry.tags, " "),
            entry.description,
            entry.body
          ]

          SQL.query!(sql, "insert into docs (#{fields}) values ($1, $2, $3, $4, $5)", values)
        end

        {:ok, :filled}
      end)

    sql
  end

  @doc "The names of the ten best entries with any of the words; the last word is a prefix."
  def fts_search(sql, query) do
    words = String.split(query)
    any = Enum.map_join(words, " or ", &~s("#{&1}")) <> "*"
    weights = Enum.map_join(@fields, ", ", &elem(&1, 1))

    statement =
      "select name, snippet(docs, 4, '[', ']', '…', 24) from docs where docs match $1 " <>
        "order by bm25(docs, #{weights}) limit 10"

    for [name, _snippet] <-
          SQL.query!(sql, statement, [String.replace(any, " or ", " OR ")]).rows,
        do: name
  end

  @doc "Writes the entries to a PostgreSQL table with a `tsvector` with four weights."
  def tsvector(sql, entries) do
    SQL.query!(sql, "drop table if exists docs")
    classes = [A: "name", B: "title", C: "tags || ' ' || description", D: "body"]

    vector =
      Enum.map_join(classes, " || ", fn {class, text} ->
        "setweight(to_tsvector('english', #{text}), '#{class}')"
      end)

    columns = for {name, _} <- @fields, do: "#{name} text not null"

    search = "search tsvector generated always as (#{vector}) stored"
    SQL.query!(sql, "create table docs (#{Enum.join(columns, ", ")}, #{search})")

    fields = Enum.map_join(@fields, ", ", &elem(&1, 0))

    {:ok, _} =
      SQL.transaction(sql, fn sql ->
        for entry <- entries do
          values = [
            entry.name,
            entry.title || "",
            Enum.join(entry.tags, " "),
            entry.description,
            entry.body
          ]

          SQL.query!(sql, "insert into docs (#{fields}) values ($1, $2, $3, $4, $5)", values)
        end

        {:ok, :filled}
      end)

    SQL.query!(sql, "create index docs_search on docs using gin (search)")
    SQL.query!(sql, "analyze docs")
    sql
  end

  @doc "As `fts_search/2`."
  def tsvector_search(sql, query) do
    statement =
      "select name, ts_headline('english', body, query, 'MaxWords=24, MinWords=8') from (" <>
        "select name, body, query from docs, to_tsquery('english', $1) query " <>
        "where search @@ query " <>
        "order by ts_rank(search, query) desc limit 10) best"

    for [name, _snippet] <-
          SQL.query!(sql, statement, [Enum.join(String.split(query), " | ") <> ":*"]).rows,
        do: name
  end
end
