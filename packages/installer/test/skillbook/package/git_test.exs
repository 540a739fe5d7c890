defmodule Skillbook.Package.GitTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.Package
  alias Skillbook.Package.Origin

  @moduletag :tmp_dir

  test "rejects revisions that git would read as options, and unsupported protocols",
       %{tmp_dir: folder} do
    {root, _, to} = repository(folder)

    for {source, options, text} <- [
          {root, [branch: "--upload-pack=x"], "is not the name of a branch"},
          {root, [tag: "a..b"], "is not the name of a tag"},
          {root, [commit: "main"], "is not a commit; write all its 40 hexadecimal digits"},
          {root, [branch: "main", tag: "v1"],
           "has several revisions: --branch and --tag; write one of them"},
          {root, [branch: "none"], "has no branch none"},
          {"ext::sh -c id", [], "is not a supported address"},
          {"http://example.com/a.git", [], "is not a supported address"},
          {"-u@host:path", [], "is not the address of a git repository"},
          {"u@-oProxyCommand=x:path", [], "is not a supported address"},
          {Path.join(folder, "nothing"), [], "does not exist; name a folder"},
          {"mix.exs", [], "is neither a folder nor a supported archive"},
          {"lib", [tag: "x"], "could not be fetched: git says: fatal"}
        ] do
      assert {:error, error} = Package.install(source, [to: to] ++ options ++ accept_all())
      assert Exception.message(error) =~ text
    end
  end

  test "OWNER/NAME is a repository of GitHub, unless there is a folder" do
    for {source, expected} <- [
          {"anthropics/skills", {:git, "https://github.com/anthropics/skills"}},
          {"a-b/c.d_e", {:git, "https://github.com/a-b/c.d_e"}},
          {"lib/skillbook", {:folder, Path.expand("lib/skillbook")}}
        ],
        do: assert(Origin.identify(source, %{}) == {:ok, expected})

    assert Origin.identify("a/b", %{tag: "v1"}) == {:ok, {:git, "https://github.com/a/b"}}

    for source <- ["./a/b", "a/b/c", "a/-b", "a b/c", "skills"] do
      assert {:error, error} = Origin.identify(source, %{})
      assert Exception.message(error) =~ "does not exist; name a folder"
    end
  end

  test "ignores hooks, filters, links and submodules of a repository", %{tmp_dir: folder} do
    {root, _, to} = repository(folder)
    marker = Path.join(folder, "ran")

    for hook <- ["post-checkout", "post-merge", "reference-transaction"],
        do: write(root, %{".git/hooks/#{hook}" => "#!/bin/sh\ntouch #{marker}\n"})

    for hook <- File.ls!(Path.join(root, ".git/hooks")),
        do: File.chmod!(Path.join(root, ".git/hooks/#{hook}"), 0o755)

    write(root, %{
      ".gitattributes" => "* filter=bad export-ignore\n",
      ".gitmodules" => "[submodule \"x\"]\npath = x\nurl = ext::sh -c id\n"
    })

    File.rm(marker)
    File.ln_s!("/etc", Path.join(root, "skills/one/etc"))
    commit(root)
    File.rm(marker)

    assert messages(Package.install(root, [to: to, names: ["one"]] ++ accept_all())) == [
             "skills/one/etc is a link, and links are not installed; " <>
               "ask its author for a copy of the file"
           ]

    assert actions(Package.install(root, [to: to, names: ["two"]] ++ accept_all())) == [
             {"two", :installed}
           ]

    refute File.exists?(marker)
  end
end
