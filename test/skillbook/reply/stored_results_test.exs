defmodule Skillbook.Reply.StoredResultsTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.Pipeline
  alias Skillbook.{FlagError, NotFoundError, OptionError, Profile}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/say.md" => page("x.say", handler("Call")),
      "x/fail.md" => page("x.fail", handler("Call")),
      "x/page.md" => page("x.page", [], lines(10))
    })

    :ok
  end

  # Lines of ten characters.
  defp lines(count), do: Enum.map_join(1..count, &String.pad_leading("#{&1}\n", 10, "."))

  defp run(view, line, options \\ [], answer \\ {:ok, lines(10)}) do
    [result] =
      Pipeline.commands(view, [line], [assigns: %{call: fn _, _ -> answer end}] ++ options)

    result
  end

  defp kept(book), do: :ets.tab2list(Module.concat(book, StoredResults))

  test "truncates a long result and names the command that reads on", %{tmp_dir: folder} do
    book = book(sources: [folder], max_result: 35)
    :telemetry.listen(book)
    view = Skillbook.view(book)
    first = run(view, "x.say")
    assert %{id: id, from: 1, to: 30, total: 100, kept: 100} = first.metadata.cut

    assert first.content ==
             String.trim_trailing(lines(3)) <>
               "\n\n[Cut: these are the characters 1 to 30 of 100; 70 are left out. " <>
               "To read on, write: results.read --id #{id} --from 31]"

    assert_receive {[:skillbook, :result, :cut], %{characters: 100, shown: 30}, metadata}
    assert metadata == %{book: book, profile: "default", skill: "x.say", kept: true}

    # The commands of the notices return the rest piece by piece, without storing more.
    {last, texts} = read_on(view, first, [])
    assert texts |> Enum.reverse() |> Enum.join("\n") == String.trim_trailing(lines(10))
    refute last.content =~ "[Cut"
    assert [{^id, _, _, _, _}] = kept(book)

    # An id is enough to begin again, and the run's own bound counts.
    assert run(view, "results.read #{id}", max_result: 200).content == lines(10)
  end

  defp read_on(view, result, texts) do
    case Regex.run(
           ~r/\A(.*)\n\n\[Cut: .* To read on, write: (results\.read .*)\]\z/s,
           result.content
         ) do
      [_, text, line] -> read_on(view, run(view, line), [text | texts])
      nil -> {result, [String.trim_trailing(result.content) | texts]}
    end
  end

  test "uses the limit of the run, the book, or 30,000 characters", %{tmp_dir: folder} do
    long = {:ok, String.duplicate("é", 30_001)}

    rows = [
      {nil, nil, 30_000},
      {nil, 100, 100},
      {nil, :infinity, nil},
      {50, nil, 50},
      {50, 100, 100},
      {50, :infinity, nil},
      {:infinity, nil, nil}
    ]

    for {of_book, of_run, shown} <- rows do
      book = book([sources: [folder]] ++ if(of_book, do: [max_result: of_book], else: []))

      result =
        run(Skillbook.view(book), "x.say", if(of_run, do: [max_result: of_run], else: []), long)

      assert {of_book, of_run, result.metadata[:cut][:to]} == {of_book, of_run, shown}
    end

    assert run(
             Skillbook.view(book(sources: [folder])),
             "x.say",
             [],
             {:ok, String.duplicate("é", 30_000)}
           ).metadata ==
             %{}

    view = view(folder)
    assert run(view, "x.say", [], long).metadata.cut.to == 30_000

    assert_raise OptionError,
                 "expected a number of characters or :infinity as the option :max_result of " <>
                   "run, got: 0",
                 fn -> run(view, "x.say", max_result: 0) end
  end

  test "truncates results of any kind", %{tmp_dir: folder} do
    book = book(sources: [folder], max_result: 50)
    view = Skillbook.view(book)

    rows = [
      {"x.say", {:ok, lines(10)}, :ok},
      {"x.fail", {:error, lines(10)}, :error},
      {"x.page", nil, :template},
      {"get_skill: x.page", nil, :help},
      {"get_skill", nil, :help}
    ]

    for {line, answer, status} <- rows do
      whole = run(view, line, [max_result: :infinity], answer)
      result = run(view, line, [], answer)
      assert {line, result.status} == {line, status}
      assert result.metadata.cut.to <= 50
      assert result.metadata.cut.total == String.length(whole.content)
      # The model has not got the whole text of any entry.
      assert Map.drop(result.metadata, [:cut, :parts]) == Map.delete(whole.metadata, :activates)
      id = result.metadata.cut.id
      assert run(view, "results.read --id #{id}", max_result: :infinity).content == whole.content
    end
  end

  test "ignores a :cut that a handler sets", %{tmp_dir: folder} do
    view = Skillbook.view(book(sources: [folder], max_result: 30))

    for cut <- [%{from: 1}, %{id: nil, from: 1, to: 2, total: 9, kept: 0}, :odd] do
      answer = {:ok, Skillbook.Result.ok("short", metadata: %{cut: cut})}
      assert %{content: "short", metadata: %{cut: ^cut}} = run(view, "x.say", [], answer)
      answer = {:ok, Skillbook.Result.ok(lines(10), metadata: %{cut: cut})}

      assert %{metadata: %{cut: %{id: <<_::128>>, from: 1, to: 30}}} =
               run(view, "x.say", [], answer)
    end
  end

  test "treats another entry named results.read like any other", %{tmp_dir: folder} do
    write(folder, %{"results/read.md" => page("results.read", handler("Call"))})
    view = Skillbook.view(book(sources: [folder], max_result: 30))

    for cut <- [%{from: 1}, %{id: "a", from: 1, total: 9, kept: 3}, :odd],
        {text, to} <- [{"short", nil}, {lines(10), 30}] do
      call = fn _, _ -> {:ok, Skillbook.Result.ok(text, metadata: %{cut: cut})} end
      [result] = Skillbook.Reply.Pipeline.commands(view, ["results.read"], assigns: %{call: call})

      if to,
        do: assert(%{id: nil, from: 1, to: ^to} = result.metadata.cut),
        else: assert(result.content == text)
    end
  end

  test "suggests asking for less if the rest cannot be read", %{tmp_dir: folder} do
    told =
      "[Cut: these are the characters 1 to 30 of 100; 70 are left out. The rest was not " <>
        "stored: ask for less at once.]"

    profiles = [[id: "default"], [id: "narrow", skills: ["x.*"]]]
    without = book(sources: [folder], builtins: false, profiles: profiles)
    with_it = book(sources: [folder], profiles: profiles)
    write(Path.join(folder, "own"), %{"results/read.md" => page("results.read", handler("Text"))})
    another = book(sources: [folder, Path.join(folder, "own")], builtins: false)

    for view <- [
          view(folder),
          Skillbook.view(without),
          Skillbook.view(with_it, "narrow"),
          Skillbook.view(another)
        ] do
      result = run(view, "x.say", max_result: 30)
      assert result.content == String.trim_trailing(lines(3)) <> "\n\n" <> told
      assert result.metadata.cut == %{id: nil, from: 1, to: 30, total: 100, kept: 0}
      if view.book, do: assert(kept(view.book) == [])
    end
  end

  test "only the same profile with the same rights in the same book can read on", %{
    tmp_dir: folder
  } do
    profile = [id: "ann", grants: ["a", "b"], skills: ["*"], tools: ["Read"]]
    book = book(sources: [folder], profiles: [profile, [id: "bob"]])
    other = book(sources: [folder], profiles: [profile])
    %{cut: %{id: id}} = run(Skillbook.view(book, "ann"), "x.say", max_result: 30).metadata

    like = fn changes ->
      {:ok, profile} = Profile.new(Keyword.merge(profile, changes))
      Skillbook.view(book, profile)
    end

    rows = [
      {like.([]), true},
      {like.(grants: ["b", "a"]), true},
      {like.(id: "bob"), false},
      {like.(grants: ["a"]), false},
      {like.(grants: ["a", "b", "c"]), false},
      {like.(grants: :all), false},
      {like.(skills: :all), false},
      {like.(tools: :all), false},
      {like.(writes: :ask), false},
      {Skillbook.view(book, "bob"), false},
      {Skillbook.View.all(book), false},
      {Skillbook.view(other, "ann"), false}
    ]

    for {{view, readable}, number} <- Enum.with_index(rows) do
      result = run(view, "results.read --id #{id}")
      assert {number, result.status == :ok} == {number, readable}

      # As if it had never been.
      unless readable do
        assert result.content ==
                 "there is no result #{id}, or it has expired; run its command again"

        assert %NotFoundError{kind: "result"} = result.error
      end
    end
  end

  test "only while the origin is visible", %{tmp_dir: folder} do
    book = book(sources: [folder], watch: false)
    view = Skillbook.view(book)
    said = run(view, "x.say", max_result: 30).metadata.cut.id
    listed = run(view, "get_skill", max_result: 30).metadata.cut.id

    readable = fn ->
      for id <- [said, listed], do: run(Skillbook.view(book), "results.read --id #{id}").status
    end

    assert readable.() == [:ok, :ok]
    # Changes of hidden pages, and a reload without a change, do not show in what can be read.
    hidden = &page("x.hidden", [visibility_labels: "[secret]"], &1)

    for files <- [
          %{},
          %{"x/hidden.md" => hidden.("One.\n")},
          %{"x/hidden.md" => hidden.("Two.\n")},
          %{"x/hidden.md" => "no page"}
        ] do
      write(folder, files)
      Skillbook.reload(book)
      assert {files, readable.()} == {files, [:ok, :ok]}
      assert Skillbook.view(book).generation == view.generation
    end

    write(folder, %{"x/more.md" => page("x.more")})
    Skillbook.reload(book)
    # Entries in an answer of `get_skill` may be hidden now.
    assert readable.() == [:ok, :error]

    write(folder, %{
      "x/say.md" => page("x.say", handler("Call") ++ [visibility_labels: "[secret]"])
    })

    Skillbook.reload(book)
    assert readable.() == [:error, :error]
  end

  test "ids are long and unique", %{tmp_dir: folder} do
    view = Skillbook.view(book(sources: [folder]))
    ids = for _ <- 1..100, do: run(view, "x.say", max_result: 30).metadata.cut.id
    assert length(Enum.uniq(ids)) == 100
    assert Enum.all?(ids, &(&1 =~ ~r/\A[a-z2-7]{16}\z/))
  end

  test "checks flags", %{tmp_dir: folder} do
    view = Skillbook.view(book(sources: [folder]))
    id = run(view, "x.say", max_result: 30).metadata.cut.id

    rows = [
      {"results.read", "--id is required and missing. Add it as: --id VALUE"},
      {"results.read --id #{id} --from 0",
       "--from must be a whole number from 1 on, got \"0\". Write for example: --from 1"},
      {"results.read --id #{id} --from 101",
       "--from must be a whole number up to 100, the last stored character, got 101. " <>
         "Write for example: --from 100"},
      {"results.read --id #{id} --form 3",
       "unknown flag --form; did you mean --from? Known flags: --id, --from"}
    ]

    for {line, message} <- rows do
      result = run(view, line)
      assert {line, result.content} == {line, message}
      assert %FlagError{} = result.error
    end

    assert run(view, "results.read --id #{id} --from 100").content == "\n"
  end

  test "limits the stored bytes: evicts the oldest and stores the beginning of a very long one",
       %{
         tmp_dir: folder
       } do
    book = book(sources: [folder])
    view = Skillbook.view(book)
    # 4 MiB and two characters, of two bytes each.
    long = String.duplicate("é", 2 * 1024 * 1024 + 2)
    cut = run(view, "x.say", [max_result: 30], {:ok, long}).metadata.cut
    assert %{total: 2_097_154, kept: 2_097_152} = cut

    last = run(view, "results.read --id #{cut.id} --from 2097150")

    assert last.content ==
             "ééé\n\n[Cut: these are the characters 2097150 to 2097152 of 2097154; 2 are left " <>
               "out. " <>
               "The rest was not stored: ask for less at once.]"

    ids = [
      cut.id
      | for(_ <- 1..8, do: run(view, "x.say", [max_result: 30], {:ok, long}).metadata.cut.id)
    ]

    assert Enum.map(ids, &run(view, "results.read --id #{&1}").status) == [
             :error | List.duplicate(:ok, 8)
           ]

    assert length(kept(book)) == 8
  end

  test "removes expired results", %{tmp_dir: folder} do
    book = book(sources: [folder])
    view = Skillbook.view(book)
    [first, second] = for _ <- 1..2, do: run(view, "x.say", max_result: 30).metadata.cut.id
    process = GenServer.whereis(Module.concat(book, StoredResults))
    send(process, {:expired, first})
    :sys.get_state(process)
    assert [{^second, _, _, _, _}] = kept(book)
    send(process, {:expired, second})
    assert %{bytes: 0, order: {[], []}} = :sys.get_state(process)
    assert kept(book) == []
  end
end
