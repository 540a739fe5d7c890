defmodule Skillbook.Support.OutlineTest do
  # No log line of a handler or callback that ends in an odd way has a value of a flag.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureLog

  alias Skillbook.Support.Outline

  doctest Outline

  @moduletag :tmp_dir
  @secret "s3cret-marker"

  defmodule Ends do
    use Skillbook.Skill,
      name: "x.end",
      description: "Ends in some way",
      effects: :write,
      flags: [
        how: [type: :text, required: true],
        token: [type: :text, required: true]
      ]

    @impl true
    def execute(%{"how" => "exit"} = flags, _context), do: exit({:bad, flags})
    def execute(%{"how" => "throw"}, context), do: throw(context)
    def execute(%{"how" => "context"}, context), do: context
    def execute(%{"how" => "flags"} = flags, _context), do: {:ok, flags}
    def execute(%{"how" => "match"} = flags, _context), do: :error = Function.identity(flags)
    def execute(%{"how" => "case"} = flags, _context), do: case(flags, do: (:none -> :ok))
    def execute(%{"how" => "key"} = flags, _context), do: flags.missing
    def execute(%{"how" => "map"} = flags, _context), do: Map.put(flags["token"], 1, 2)

    def execute(%{"how" => "call"} = flags, _context),
      do: GenServer.call(:nobody_has_this_name, flags)

    def execute(%{"how" => "linked"} = flags, _context) do
      spawn_link(fn -> exit({:linked, flags}) end)
      Process.sleep(:infinity)
    end
  end

  for how <- ~w(exit throw context flags match case key map call linked other) do
    test "of a handler: #{how}", %{tmp_dir: folder} do
      book = book(sources: [folder, {:modules, [Ends]}], builtins: false, watch: false)
      line = "```cmd\nx.end --how #{unquote(how)} --token #{@secret}\n```"

      log =
        capture_log(fn ->
          assert %{results: [%{status: :error} = result]} = Skillbook.run(book, line)
          refute result.content =~ @secret
        end)

      assert log =~ "skill x.end"
      refute log =~ @secret
    end
  end

  test "of an :ask callback", %{tmp_dir: folder} do
    for ask <- [&exit/1, fn request -> throw(request) end, & &1.command] do
      profiles = [[id: "ann", writes: :ask]]
      options = [builtins: false, watch: false, profiles: profiles, ask: ask]
      book = book([sources: [folder, {:modules, [Ends]}]] ++ options)
      line = "```cmd\nx.end --how exit --token #{@secret}\n```"
      log = capture_log(fn -> Skillbook.run(book, line, profile: "ann") end)
      assert log =~ "skill x.end: "
      refute log =~ @secret
    end
  end
end
