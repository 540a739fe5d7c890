defmodule Skillbook.Web.SnippetsTest do
  # The clients of docs/web.md, as they stand there, against a server: over a port and a unix
  # socket. They run in the Node and the Python of bin/mcp-for-tests.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Web.{Server, Tokens}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    skills =
      for number <- 1..250, into: %{} do
        tag = if rem(number, 2) == 0, do: "even", else: "odd"

        {"s#{number}/SKILL.md",
         "---\nname: s#{number}\ndescription: Number #{number}\ntags: [#{tag}]\n---\n" <>
           "N#{number}\n"}
      end

    skills = Map.put(skills, "cup/wash.md", page("cup.wash", [], "# Wash\n"))
    hidden = "---\nname: hidden\ndescription: x\nvisibility_labels: [staff]\n---\nx\n"
    write(Path.join(folder, "skills"), Map.put(skills, "hidden/SKILL.md", hidden))
    sources = [Path.join(folder, "skills")]
    name = book(sources: sources, builtins: false, store: ":memory:")
    {:ok, token} = Tokens.create(name, scopes: [:api], expires_in: 600)

    for {file, language} <- [{"skills.mjs", "js"}, {"skills.py", "python"}] do
      [_all, code] =
        Regex.run(~r/^```#{language}\n(.*?)^```$/ms, Skillbook.Test.Checkout.read!("docs/web.md"))

      File.write!(Path.join(folder, file), code)
    end

    %{book: name, token: token.secret.()}
  end

  defp program(path) do
    folder =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test"

    Path.join(folder, path)
  end

  defp serve(book, options) do
    server = start_supervised!({Server, [book: book, serve: [:api]] ++ options})
    Server.info(server)
  end

  @javascript """
  import { skills } from "./skills.mjs";
  const { URL, TOKEN } = process.env;
  const api = skills(URL, TOKEN);
  const all = await api.list();
  const even = await api.list({ tag: "even" });
  const commands = await api.list({ kind: "command" });
  const wrong = await api.list({ kind: "tool" }).catch((error) => error.message);
  const one = await api.read("s7");
  const error = await api.read("hidden").catch((error) => error.message);
  const other = await skills(URL, TOKEN + "0").list().catch((error) => error.message);
  const names = new Set(all.map((skill) => skill.name)).size;
  const kinds = commands.map((skill) => [skill.name, skill.kind]);
  const counts = [names, all.length, even.length];
  console.log(JSON.stringify([...counts, kinds, wrong, one, error, other]));
  """

  @python """
  import json, os
  from skills import Skills
  env = os.environ
  port = int(env["PORT"]) if env.get("PORT") else None
  api = Skills(env["TOKEN"], port, env.get("SOCKET"))
  everything, even, one = api.list(), api.list(tag="even"), api.read("s7")
  kinds = [[skill["name"], skill["kind"]] for skill in api.list(kind="command")]
  def error(call):
      try: return call()
      except LookupError as error: return str(error)
  other = Skills(env["TOKEN"] + "0", port, env.get("SOCKET"))
  names = len({skill["name"] for skill in everything})
  wrong = error(lambda: api.list(kind="tool"))
  print(json.dumps([names, len(everything), len(even), kinds, wrong, one,
      error(lambda: api.read("hidden")), error(other.list)]))
  """

  @expected [
    251,
    251,
    125,
    [["cup.wash", "command"]],
    "Expected command, skill or note as kind.",
    %{
      "name" => "s7",
      "kind" => "skill",
      "title" => nil,
      "description" => "Number 7",
      "tags" => ["odd"],
      "content" => "N7\n"
    },
    "There is no skill of this name.",
    "Sign in, or send a token: authorization: Bearer sb_…."
  ]

  defp run(program, file, code, env, folder) do
    File.write!(Path.join(folder, file), code)
    assert {output, 0} = System.cmd(program(program), [file], cd: folder, env: env)
    assert {:ok, @expected} == Skillbook.Support.JSON.decode(output)
  end

  test "JavaScript over a port", %{tmp_dir: folder, book: book, token: token} do
    %{url: url} = serve(book, port: 0)
    env = [{"URL", url}, {"TOKEN", token}]
    run("node_modules/.bin/node", "try.mjs", @javascript, env, folder)
  end

  test "Python over a port", %{tmp_dir: folder, book: book, token: token} do
    %{port: port} = serve(book, port: 0)
    env = [{"PORT", "#{port}"}, {"TOKEN", token}]
    run("bin/python", "try.py", @python, env, folder)
  end

  test "Python over a unix socket", %{tmp_dir: folder, book: book, token: token} do
    socket = Path.join(System.tmp_dir!(), "api_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm(socket) end)
    serve(book, socket: socket)
    env = [{"SOCKET", socket}, {"TOKEN", token}]
    run("bin/python", "try.py", @python, env, folder)
  end
end
