defmodule Skillbook.CLI.ServeTest do
  # `serve` and `token`: their options and texts. Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.Support.JSON

  setup do
    folder = Path.join(System.tmp_dir!(), "serve_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(folder) end)
    write(folder, %{"skills/tea/SKILL.md" => "---\nname: tea\ndescription: Tea\n---\nBoil.\n"})
    %{folder: folder, cli: ["--dir", folder <> "/skills", "--db", folder <> "/test.db"]}
  end

  for {args, message} <- [
        {~w(serve x), "`serve` takes no argument, got: x"},
        {~w(serve --port 70000), "--port expects a whole number from 0 to 65535, got: 70000"},
        {~w(serve --host example.com),
         "--host expects an address such as 127.0.0.1 or ::1, got: example.com"},
        {~w(serve --host 0.0.0.0),
         "--host with all addresses needs --url, the address that clients use"},
        {~w(serve --host ::),
         "--host with all addresses needs --url, the address that clients use"},
        {~w(serve --socket a --port 1), "--socket takes the place of --port and --host"},
        {~w(serve --serve page,pages),
         "--serve expects some of page,mcp,api,discovery, got: page,pages"},
        {~w(serve --trusted-proxies 10.0.0.0/8,localhost),
         "--trusted-proxies expects addresses, networks such as 10.0.0.0/8 and unix, with " <>
           "commas, got: 10.0.0.0/8,localhost"},
        {~w(serve --trusted-proxies 127.0.0.1 --no-auth),
         "--no-auth is for this machine alone, and a proxy is reached by others"},
        {~w(serve --socket /tmp/s --trusted-proxies unix),
         "--trusted-proxies with unix needs --url, the address that clients use"},
        {~w(serve --origins https://a.example,*),
         "--origins expects origins such as http://localhost:6274, with commas and without a " <>
           "path, got: https://a.example,*"},
        {~w(serve --tls-cert a), "--tls-cert and --tls-key are needed together"},
        {~w(serve --model x),
         "`serve` needs --model-url URL, the model's server, for example " <>
           "http://localhost:8080, or --api NAME for that of a vendor"},
        {~w(serve --enable x), "--enable needs --schedules"},
        {~w(serve --url example.com),
         "--url expects a URL such as https://skills.example.com, got: example.com"},
        {~w(token make), "expected add, list, remove or link, got: make"},
        {~w(token lst), "expected add, list, remove or link, got: lst; did you mean `list`?"},
        {~w(token remove), "`token remove` needs an ID; `token list` lists them"},
        {~w(token add x), "`token add` takes no more arguments, got: x"},
        {~w(token add --scope admin),
         "--scope expects one of page, mcp, api, chat, discovery, got: admin"},
        {~w(token add --expires 10),
         "--expires expects a time such as 10m, 12h or 30d, up to 3650d, got: 10"},
        {~w(token add --expires 4000d),
         "--expires expects a time such as 10m, 12h or 30d, up to 3650d, got: 4000d"}
      ] do
    test Enum.join(args, " ") do
      {output, status, errors} = run_cli(unquote(args))
      assert {output, status} == {"", 2}
      assert errors =~ "skillbook: " <> unquote(message) <> "\n"
    end
  end

  test "without authentication only for this machine", %{cli: cli} do
    args = ~w(serve --no-auth --host 0.0.0.0 --url http://a.example --port 0)
    {"", 1, errors} = run_cli(cli ++ args)

    assert errors ==
             "skillbook: --no-auth is for this machine alone: leave out --host, or leave out " <>
               "--no-auth and give clients tokens with `skillbook token add`\n"
  end

  test "a port in use", %{cli: cli} do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    {"", 1, errors} = run_cli(cli ++ ["serve", "--port", "#{port}"])

    assert errors ==
             "skillbook: 127.0.0.1:#{port} is in use by another program; stop it, or choose " <>
               "another --port (0 takes any that is free)\n"
  end

  test "tokens are made, listed and removed, whatever is wrong with the skills", %{
    folder: folder,
    cli: cli
  } do
    write(folder, %{"skills/broken.md" => "---\ndescription: [\n---\n"})
    {_output, 0, "skillbook: 1 problem in the skills" <> _} = run_cli(cli ++ ["list"])
    {"There are no tokens. `token add` makes one.\n", 0, ""} = run_cli(cli ++ ["token", "list"])

    {output, 0, errors} =
      run_cli(
        cli ++
          ["--profile", "ann", "token", "add", "--scope", "api", "--scope", "page"] ++
          ["--label", "laptop\e[31m", "--expires", "10m", "--operator"]
      )

    assert output =~ ~r/\Asb_[0-9A-Za-z]{49}\n\z/
    pattern = ~r/\AMade (t-[a-z2-7]{16}), of the profile ann, an operator, for page, api\. /
    [_all, id] = Regex.run(pattern, errors)
    assert String.ends_with?(errors, " The token is shown this once:\n")

    {list, 0, ""} = run_cli(cli ++ ["token"])
    time = "\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC"
    assert list =~ ~r/\A#{id} laptop.*\n  of the profile ann, an operator, for page, api\n/
    assert list =~ ~r/\n  never used, until #{time}\n\z/
    refute list =~ "\e[31m"
    refute list =~ String.trim(output)

    {json, 0, ""} = run_cli(cli ++ ["token", "list", "--json"])
    assert {:ok, [%{"id" => ^id, "scopes" => ["page", "api"]} = listed]} = JSON.decode(json)
    refute Map.has_key?(listed, "token")
    {"There are no tokens" <> _, 0, ""} = run_cli(cli ++ ["--profile", "bob", "token"])

    {_short, 0, _} = run_cli(cli ++ ~w(--profile eve token add --expires 1s))
    Process.sleep(1_100)
    {expired, 0, ""} = run_cli(cli ++ ~w(--profile eve token))
    assert expired =~ ~r/\n  never used, expired #{time}\n\z/

    {"Removed " <> _, 0, ""} = run_cli(cli ++ ["token", "remove", id])
    {"", 1, errors} = run_cli(cli ++ ["token", "remove", id])
    assert errors =~ "skillbook: no token has the id #{id}"
  end

  test "a link begins with the address of the server", %{cli: cli} do
    {link, 0, errors} = run_cli(cli ++ ["token", "link", "--url", "https://s.example/"])
    assert link =~ ~r<\Ahttps://s\.example/open/[\w-]{43}\n\z>
    assert errors == "This link signs in one browser, within 5 minutes:\n"
    {link, 0, _errors} = run_cli(cli ++ ["token", "link"])
    assert link =~ ~r<\Ahttp://127\.0\.0\.1:4004/open/>
  end
end
