defmodule Skillbook.Embedding.IndexerTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.Embedding.{Entries, Indexer}
  alias Skillbook.{Book, Embedders, EmbedderError, Native, PostgresCase, Profile}
  alias Skillbook.{Store, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  @pages %{
    "forecast/SKILL.md" =>
      "---\nname: forecast\ndescription: Tells how the sky will be\n---\nx\n",
    "letters/SKILL.md" => "---\nname: letters\ndescription: Write to somebody\n---\nx\n",
    "invoices/SKILL.md" => "---\nname: invoices\ndescription: Bills that are to be paid\n---\nx\n"
  }

  setup %{tmp_dir: folder} do
    write(folder, @pages)
    %{folder: folder}
  end

  defp start(folder, options),
    do: book([sources: [folder], builtins: false, watch: false] ++ options)

  # Whether the book gets so many vectors, and no text is without one.
  defp embedded?(book, count) do
    eventually(fn ->
      match?({[], _}, Entries.follow(Book.fetch!(book), nil)) and
        match?(%{done: ^count, total: ^count, error: nil}, Indexer.progress(book))
    end)
  end

  defp done?(book, count) do
    eventually(fn ->
      match?(%{done: ^count, total: ^count, error: nil}, Indexer.progress(book))
    end)
  end

  defp texts, do: Embedders.calls() |> Enum.concat() |> Enum.sort()

  defp names(view, query), do: Enum.map(Skillbook.search(view, query), & &1.name)

  test "embeds all entries in the background, and finds them by meaning", %{folder: folder} do
    book = start(folder, embedder: Embedders.topics())
    assert embedded?(book, 3)

    assert texts() == [
             "forecast: Tells how the sky will be",
             "invoices: Bills that are to be paid",
             "letters: Write to somebody"
           ]

    view = Skillbook.view(book)
    # None of these words is in a page.
    assert hd(names(view, "shall I take an umbrella because of rain")) == "forecast"
    assert hd(names(view, "greet grandma with a hello")) == "letters"
    assert hd(names(view, "how high is the price on my bill")) == "invoices"
    # Without the book there are only words.
    assert names(View.all(Book.fetch!(book).catalog), "an umbrella because of rain") == []
  end

  test "answers by words before any vector is there", %{folder: folder} do
    wait = fn [_ | _] -> Process.sleep(:infinity) end
    book = start(folder, embedder: Embedders.topics("slow", wait), embedder_timeout: 20)
    view = Skillbook.view(book)
    assert names(view, "sky") == ["forecast"]
    assert eventually(fn -> Indexer.progress(book) == %{done: 0, total: 3, error: nil} end)
    assert :ok = Skillbook.reload(book)
  end

  test "embeds only new and changed texts after a reload", %{folder: folder} do
    book = start(folder, embedder: Embedders.topics())
    assert embedded?(book, 3)
    Embedders.calls()

    # The text of a page that is embedded stays the same.
    write(folder, %{"letters/SKILL.md" => @pages["letters/SKILL.md"] <> "More.\n"})
    page = "---\nname: stew\ndescription: A recipe\ntags: [food]\ntrigger_keywords: [eat]\n---\n"
    write(folder, %{"stew/SKILL.md" => page})
    File.rm_rf!(Path.join(folder, "invoices"))
    Skillbook.reload(book)
    assert embedded?(book, 3)
    assert texts() == ["stew: A recipe. food, eat"]
    assert hd(names(Skillbook.view(book), "I am hungry after this long day")) == "stew"
    # Those that no entry needs are gone.
    assert eventually(fn -> Native.vectors_count(Book.fetch!(book).vectors) == 3 end)
  end

  test "entries that are never searched are not sent to the embedder", %{folder: folder} do
    write(folder, %{
      "secret/SKILL.md" =>
        "---\nname: secret\ndescription: d\ndisable-model-invocation: true\n---\nx\n"
    })

    book = start(folder, embedder: Embedders.topics())
    assert embedded?(book, 3)
    refute Enum.any?(texts(), &(&1 =~ "secret"))
  end

  for database <- [:sqlite, :postgres] do
    @tag database: database
    test "a restart embeds nothing, also of the store, with #{database}", context do
      restart(context.folder, database(context))
    end
  end

  defp database(%{database: :sqlite, folder: folder}), do: Path.join(folder, "book.db")
  defp database(%{database: :postgres}), do: PostgresCase.database()

  defp restart(folder, store) do
    options = [embedder: Embedders.topics(), store: store]
    one = start(folder, options)
    boss = %Profile{id: "boss", grants: :all}

    view = Skillbook.view(one, boss)
    {:ok, _} = Store.create(view, %{title: "Stew", description: "A recipe", content: "x"})

    assert embedded?(one, 4)
    assert length(texts()) == 4
    stop_supervised!(one)

    two = start(folder, options)
    assert embedded?(two, 4)
    assert Embedders.calls() == []
    assert hd(names(Skillbook.view(two), "I am hungry after this long day")) == "stew"
    # Another model has vectors of its own.
    Embedders.calls()
    three = start(folder, Keyword.put(options, :embedder, Embedders.topics("other")))
    assert embedded?(three, 4)
    assert length(texts()) == 4
  end

  test "two books of one database share the vectors", %{folder: folder} do
    options = [embedder: Embedders.topics(), store: Path.join(folder, "book.db")]
    one = start(folder, options)
    assert embedded?(one, 3)
    assert length(texts()) == 3
    write(folder, %{"stew/SKILL.md" => "---\nname: stew\ndescription: A recipe\n---\nx\n"})
    two = start(folder, options)
    assert embedded?(two, 4)
    assert texts() == ["stew: A recipe"]
    Skillbook.reload(one)
    assert embedded?(one, 4)
    assert texts() == []
  end

  test "a killed process continues after its last batch", %{folder: folder} do
    many = for n <- 1..200, into: %{}, do: {"dom/c#{n}.md", page("dom.c#{n}")}
    write(folder, many)
    test = self()

    # Two batches are let through, the third waits.
    before = fn texts ->
      send(test, {:asked, self(), length(texts)})
      receive do: (:go -> :ok)
    end

    for store <- [nil, Path.join(folder, "book.db")] do
      book = start(folder, embedder: Embedders.topics("m", before), store: store)
      sizes = for _ <- 1..2, do: go()
      assert_receive {:asked, _pid, size}
      Process.exit(Process.whereis(Module.concat(book, Embedding)), :kill)
      # The same batch again, and the rest.
      rest = for _ <- 1..2, do: go()
      assert Enum.sum(sizes ++ rest) == 203
      assert hd(rest) == size
      assert embedded?(book, 203)
      refute_received {:asked, _pid, _size}
      all = Enum.concat(Embedders.calls())
      assert length(Enum.uniq(all)) == 203
      stop_supervised!(book)
    end
  end

  defp go do
    assert_receive {:asked, pid, size}
    send(pid, :go)
    size
  end

  test "tries again after failures, and logs the first of them", %{folder: folder} do
    {:ok, left} = Agent.start_link(fn -> 2 end)

    fail = fn _texts ->
      case Agent.get_and_update(left, &{&1, &1 - 1}) do
        n when n > 1 -> {:error, %EmbedderError{kind: :connection, reason: "refused"}}
        1 -> raise "broken"
        _ -> :ok
      end
    end

    log =
      capture_log(fn ->
        book = start(folder, embedder: Embedders.topics("down", fail))
        Skillbook.subscribe(book)

        assert_receive {:skillbook_embedding, ^book,
                        %{done: 0, total: 3, error: %{kind: :connection}}}

        assert embedded?(book, 3)
      end)

    assert [_one] = Regex.scan(~r/cannot embed texts/, log)

    assert log =~
             "cannot embed texts and tries again; searches use words where vectors are " <>
               "missing: no connection to the embedder's server: refused"

    assert [_one] = Regex.scan(~r/embeds texts again/, log)
  end

  test "leaves out a text that the embedder refuses", %{folder: folder} do
    refuse = fn texts ->
      if Enum.any?(texts, &(&1 =~ "letters")),
        do: {:error, %EmbedderError{kind: :refused, status: 400, reason: "no letters"}},
        else: :ok
    end

    log =
      capture_log(fn ->
        book = start(folder, embedder: Embedders.topics("picky", refuse))
        assert done?(book, 2)
        Embedders.calls()
        # It is not tried again, and is found by its words.
        Skillbook.reload(book)
        write(folder, %{"stew/SKILL.md" => "---\nname: stew\ndescription: A recipe\n---\nx\n"})
        Skillbook.reload(book)
        assert done?(book, 3)
        assert texts() == ["stew: A recipe"]
        assert "letters" in names(Skillbook.view(book), "write a thing to somebody in town")
      end)

    assert log =~
             "leaves out texts that its embedder refuses, until it is restarted; searches use " <>
               "their words: the embedder's server refused the request (400): no letters"
  end

  test "embeds all again if the model's vectors have another size", %{folder: folder} do
    store = Path.join(folder, "book.db")
    one = start(folder, embedder: Embedders.topics("m"), store: store)
    assert embedded?(one, 3)
    stop_supervised!(one)
    Embedders.calls()
    write(folder, %{"stew/SKILL.md" => "---\nname: stew\ndescription: A recipe\n---\nx\n"})

    test = self()

    longer =
      Skillbook.Embedder.Function.new("m", fn texts ->
        send(test, {:embedded, texts})
        for text <- texts, do: Embedders.vector(text) ++ [0.0]
      end)

    log =
      capture_log(fn ->
        two = start(folder, embedder: longer, store: store)
        assert embedded?(two, 4)
        assert hd(names(Skillbook.view(two), "I am hungry after this long day")) == "stew"
        stop_supervised!(two)
      end)

    assert log =~ ~s(the model "m" has vectors of 6 numbers now, not of 5)
    # The new text, and then the others.
    assert [["stew: A recipe"], others, ["I am hungry" <> _]] = Embedders.calls()
    assert length(others) == 3
    three = start(folder, embedder: longer, store: store)
    assert embedded?(three, 4)
    assert Embedders.calls() == []
  end

  test "counts only what a profile sees", %{folder: folder} do
    write(folder, %{
      "secret/SKILL.md" => "---\nname: secret\ndescription: d\nvisibility_labels: [a]\n---\nx\n"
    })

    book =
      start(folder, embedder: Embedders.topics(), profiles: [[id: "x"], [id: "y", grants: ["a"]]])

    assert embedded?(book, 4)
    assert Entries.progress(Skillbook.view(book, "x")) == %{done: 3, total: 3}
    assert Entries.progress(Skillbook.view(book, "y")) == %{done: 4, total: 4}
    plain = start(folder, [])
    assert Entries.progress(Skillbook.view(plain)) == nil
    assert Entries.progress(View.all(Book.fetch!(plain).catalog)) == nil
    assert Indexer.progress(plain) == nil
  end

  test "sends progress to subscribers and to telemetry", %{folder: folder} do
    test = self()

    before = fn _texts ->
      send(test, {:asked, self(), 0})
      receive do: (:go -> :ok)
    end

    book = :"book_#{System.unique_integer([:positive])}"
    :telemetry.listen(book)

    start_supervised!(
      {Skillbook,
       name: book,
       sources: [folder],
       builtins: false,
       watch: false,
       embedder: Embedders.topics("m", before)}
    )

    Skillbook.subscribe(book)
    go()
    assert_receive {:skillbook_embedding, ^book, %{done: 3, total: 3, error: nil}}
    assert_receive {[:skillbook, :embedding, :batch], %{texts: 3, duration: _}, %{kind: nil}}
    assert_receive {[:skillbook, :embedding, :progress], %{done: 3, total: 3}, %{book: ^book}}
  end

  test "the options are checked", %{folder: folder} do
    for {options, message} <- [
          {[embedder: :none],
           "expected an embedder or nil as the option :embedder of a book, got: :none"},
          {[embedder_timeout: 0],
           "expected a number of milliseconds as the option :embedder_timeout of a book, got: 0"}
        ] do
      assert {:error, error} =
               Skillbook.start_link([name: :"x#{inspect(self())}", sources: [folder]] ++ options)

      assert Exception.message(error) == message
    end
  end
end
