defmodule Skillbook.Hostile.TimingTest do
  # The time of an answer does not tell of a hidden entry: a hidden name takes as long as one that
  # does not exist.
  use Skillbook.SkillsCase, async: false

  alias Skillbook.{Store, View}
  alias Skillbook.MCP.{Context, Server}
  alias Skillbook.Test.Requests

  @moduletag :guard
  @moduletag :capture_log
  @moduletag :tmp_dir
  @moduletag timeout: 300_000

  @calls 2_000
  @attempts 5
  # Medians of two sets of missing names differ by less.
  @noise 0.05

  @profiles [
    [id: "main"],
    [id: "a", tenant: "a", writes: :run],
    [id: "b", tenant: "b", writes: :run]
  ]

  test "medians for hidden and missing names are the same", %{tmp_dir: folder} do
    # Names and words of hidden entries, and of shown ones. The missing ones have the same
    # letters, because the time depends on those.
    hidden = for _ <- 1..80, do: word()
    missing = Enum.map(hidden, &turned/1)
    shown = for _ <- 1..40, do: word()
    many = Enum.take(hidden, 20)

    files =
      for {names, front} <- [{hidden, "visibility_labels: [secret]\n"}, {shown, ""}],
          name <- names,
          {path, text} <- entries(name, front),
          into: %{},
          do: {path, text}

    files =
      for word <- many, number <- 1..100, into: files do
        text = "About #{word}.\nvisibility_labels: [secret]\n---\nThe #{word} #{number}.\n"
        {"many/#{word}#{number}.md", "---\nname: #{word}-#{number}\ndescription: #{text}"}
      end

    write(folder, files)

    book = book(sources: [folder], store: ":memory:", profiles: @profiles, watch: false)

    b = Skillbook.view(book, "b")
    for name <- hidden, do: {:ok, _} = Store.put_note(b, "n" <> name, long(name))
    assert length(View.entries(Skillbook.view(book, "main"))) < 150

    outlets = outlets(book, hidden, missing) ++ words(book, many, Enum.map(many, &turned/1))
    slow = for row <- outlets, told = told(row, @attempts), do: told
    assert slow == []
  end

  test "notices a lookup that takes longer" do
    names = fn letter -> for number <- 1..40, do: "#{letter}#{number}" end
    fetch = fn name -> for _ <- 1..if(name =~ "h", do: 1_100, else: 1_000), do: name end
    assert {"a lookup", _share} = told({"a lookup", names.("h"), names.("m"), fetch}, 2)
  end

  defp word, do: for(_ <- 1..8, into: "", do: <<Enum.random(?a..?z)>>)
  defp turned(word), do: String.slice(word, 3..-1) <> String.slice(word, 0, 3)
  defp long(name), do: String.duplicate("Some text about #{name} and other things.\n", 300)

  defp entries(name, front) do
    usage = "# T\n\n## Usage\n\n`pub.#{name} --x N`\n\n## Flags\n\n- `--x N`: a number\n\n"

    [
      {"pub/#{name}.md",
       "---\nname: pub.#{name}\ndescription: Does it.\n#{front}---\n#{usage}#{long(name)}"},
      {"s#{name}/SKILL.md",
       "---\nname: s#{name}\ndescription: Knows it.\n#{front}---\n#{long(name)}"},
      {"s#{name}/refs/a.txt", long(name)}
    ]
  end

  # `{outlet, hidden inputs, missing inputs, call}`
  defp outlets(book, hidden, missing) do
    view = Skillbook.view(book, "main")
    a = Skillbook.view(book, "a")
    web = Requests.web(book)
    context = %Context{view: view, profile: view.profile, revision: "2026-07-28"}
    mcp = fn method, params -> Server.handle({:request, 1, method, params}, context) end
    block = &"```cmd\n#{&1}\n```"
    get = &Requests.call(web, "GET", &1, as: "main")
    slip = fn name -> String.slice(name, 0, 6) <> String.at(name, 7) end

    calls = [
      {"View.fetch", &View.fetch(view, "pub." <> &1)},
      {"get", &Skillbook.get(view, "s" <> &1)},
      {"get of a file", &Skillbook.get(view, "s" <> &1 <> "/refs/a.txt")},
      {"run", &Skillbook.run(view, block.("pub.#{&1} --x 1"))},
      {"run of --help", &Skillbook.run(view, block.("pub.#{&1} --help"))},
      {"run of get_skill", &Skillbook.run(view, block.("get_skill: s#{&1}"))},
      {"run of a slip", &Skillbook.run(view, block.("pub." <> slip.(&1)))},
      {"search", &Skillbook.search(view, &1)},
      {"search of a name", &Skillbook.search(view, "s" <> &1)},
      {"search of a slip", &Skillbook.search(view, "s" <> slip.(&1))},
      {"API", &get.("/api/skills/pub." <> &1)},
      {"page", &get.("/entries/pub." <> &1)},
      {"MCP tool", &mcp.("tools/call", %{"name" => "pub__" <> &1, "arguments" => %{}})},
      {"MCP resource", &mcp.("resources/read", %{"uri" => "skill://s#{&1}/SKILL.md"})},
      {"MCP prompt", &mcp.("prompts/get", %{"name" => "s" <> &1})},
      {"Store.fetch", &Store.fetch(a, "n" <> &1)},
      {"Store.update", &Store.update(a, "n" <> &1, %{edit: {:append, "x"}})},
      {"a tenant's get", &Skillbook.get(a, "n" <> &1)},
      {"a tenant's search", &Skillbook.search(a, "n" <> &1)}
    ]

    for {outlet, call} <- calls, do: {outlet, hidden, missing, call}
  end

  # The same for words that very many hidden entries have.
  defp words(book, many, missing) do
    view = Skillbook.view(book, "main")

    for {outlet, call} <- [
          {"search of many", &Skillbook.search(view, &1)},
          {"search of a prefix of many", &Skillbook.search(view, String.slice(&1, 0, 5))},
          {"search of a slip of many", &Skillbook.search(view, String.slice(&1, 1..-1))},
          {"run of many", &Skillbook.run(view, "```cmd\npub.#{&1}\n```")}
        ],
        do: {outlet, many, missing, call}
  end

  # The outlet and the difference as a share, if each attempt shows one of the same sign.
  defp told({outlet, hidden, missing, call} = row, attempts, sign \\ 0) do
    {a, b} = Enum.split(missing, div(length(missing), 2))
    times = measure(%{hidden: hidden, a: a, b: b}, call)
    share = times.hidden / ((times.a + times.b) / 2) - 1
    noise = max(@noise, 2 * abs(times.a - times.b) / times.a)

    cond do
      abs(share) <= noise or share * sign < 0 -> nil
      attempts == 1 -> {outlet, Float.round(share, 3)}
      true -> told(row, attempts - 1, share)
    end
  end

  # Mixed, so that nothing but the name differs.
  defp measure(inputs, call) do
    for {_set, inputs} <- inputs, input <- Enum.take(inputs, 20), do: call.(input)

    for(set <- Map.keys(inputs), _ <- 1..@calls, do: set)
    |> Enum.shuffle()
    |> Enum.map(fn set ->
      input = Enum.random(inputs[set])
      began = System.monotonic_time()
      call.(input)
      {set, System.monotonic_time() - began}
    end)
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Map.new(fn {set, times} -> {set, times |> Enum.sort() |> Enum.at(div(@calls, 2))} end)
  end
end
