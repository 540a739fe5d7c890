defmodule Skillbook.DocumentTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Document, DocumentError}

  doctest Skillbook.Document
  doctest Skillbook.DocumentError

  @moduletag :tmp_dir

  defp message({:error, %DocumentError{} = e}), do: Exception.message(e)

  # With hidden files, so that a leftover temporary file shows.
  defp files(root) do
    root
    |> Path.join("**")
    |> Path.wildcard(match_dot: true)
    |> Enum.map(&Path.relative_to(&1, root))
  end

  test "create makes folders and leaves only the file", %{tmp_dir: root} do
    assert Document.create(root, "a/b/c.md", ["# ", "C"]) == {:ok, Path.join(root, "a/b/c.md")}
    assert File.read!(Path.join(root, "a/b/c.md")) == "# C"
    assert files(root) == ["a", "a/b", "a/b/c.md"]
  end

  test "create refuses an existing file and does not change it", %{tmp_dir: root} do
    File.write!(Path.join(root, "c.md"), "old")
    assert message(Document.create(root, "c.md", "new")) == "c.md exists already"
    assert File.read!(Path.join(root, "c.md")) == "old"
    assert files(root) == ["c.md"]
  end

  test "one of several concurrent creates of a file succeeds", %{tmp_dir: root} do
    results =
      1..20
      |> Enum.map(fn n ->
        Task.async(fn -> {n, Document.create(root, "c.md", String.duplicate("#{n}\n", 5000))} end)
      end)
      |> Task.await_many(:infinity)

    assert [{n, _}] = Enum.filter(results, &match?({_, {:ok, _}}, &1))
    assert Enum.count(results, &match?({_, {:error, %{kind: :exists}}}, &1)) == 19
    assert File.read!(Path.join(root, "c.md")) == String.duplicate("#{n}\n", 5000)
    assert files(root) == ["c.md"]
  end

  test "replace writes a new file and replaces an old one, keeping its mode", %{tmp_dir: root} do
    file = Path.join(root, "a/c.md")
    assert Document.replace(root, "a/c.md", "one") == {:ok, file}
    File.chmod!(file, 0o640)
    assert Document.replace(root, "a/c.md", "two") == {:ok, file}
    assert File.read!(file) == "two"
    assert Bitwise.band(File.stat!(file).mode, 0o777) == 0o640
    assert files(root) == ["a", "a/c.md"]
  end

  test "discard moves each file to a unique name", %{tmp_dir: root} do
    now = ~U[2026-03-01 08:00:00.5Z]
    trash = ".trash/20260301T080000Z"

    for {text, trashed} <- [{"1", "a/c.md"}, {"2", "a/c.2.md"}, {"3", "a/c.3.md"}] do
      {:ok, path} = Document.create(root, "a/c.md", text)
      assert Document.discard(root, "a/c.md", now) == {:ok, Path.join(trash, trashed)}
      assert File.read!(Path.join([root, trash, trashed])) == text
      refute File.exists?(path)
    end

    {:ok, _} = Document.create(root, "a/c.md", "4")

    assert {:ok, ".trash/20260301T080001Z/a/c.md"} =
             Document.discard(root, "a/c.md", DateTime.add(now, 1))

    assert message(Document.discard(root, "a/c.md", now)) == "a/c.md does not exist"

    assert message(Document.discard(root, ".trash/a/c.md", now)) =~
             "is no path of a file below the folder"

    outside = Path.join(root, "outside")
    File.mkdir_p!(outside)
    File.write!(Path.join(outside, "x.md"), "x")
    File.ln_s!(outside, Path.join(root, "b"))
    assert message(Document.discard(root, "b/x.md", now)) =~ "b is a symbolic link"
    File.rm_rf!(Path.join(root, ".trash"))
    File.ln_s!(outside, Path.join(root, ".trash"))
    {:ok, path} = Document.create(root, "c.md", "c")
    assert message(Document.discard(root, "c.md", now)) =~ ".trash is a symbolic link"
    assert File.read!(path) == "c"
  end

  test "read returns the content or an error", %{tmp_dir: root} do
    File.write!(Path.join(root, "c.md"), "text")
    assert Document.read(root, "c.md") == {:ok, "text"}
    assert message(Document.read(root, "d.md")) == "d.md does not exist"
    File.mkdir!(Path.join(root, "folder"))
    assert message(Document.read(root, "folder")) == "folder: illegal operation on a directory"
  end

  test "create makes a missing root", %{tmp_dir: root} do
    root = Path.join(root, "new/skills")
    assert {:ok, file} = Document.create(root, "c.md", "")
    assert File.exists?(file)
  end

  test "refuses invalid paths", %{tmp_dir: root} do
    paths = [
      "",
      "/etc/passwd",
      "..",
      "../c.md",
      "a/../../c.md",
      "./c.md",
      "a//c.md",
      "a/",
      ".hidden.md",
      "a/.git/c.md",
      "a\\..\\c.md",
      "a\0.md",
      "a\nb.md",
      <<0xFF, ".md">>,
      String.duplicate("x", 256)
    ]

    for path <- paths, write <- [&Document.create/3, &Document.replace/3] do
      assert {:error, %DocumentError{kind: :path, path: ^path}} = write.(root, path, "x")
      assert {:error, %DocumentError{kind: :path, path: ^path}} = Document.read(root, path)
    end

    assert files(root) == []

    assert message(Document.create(root, "../c.md", "x")) ==
             ~s("../c.md" is no path of a file below the folder: ) <>
               "write names without a leading dot, joined by slashes, such as finance/report.md"

    assert {:ok, _} = Document.create(root, String.duplicate("x", 255), "x")
  end

  test "refuses names of new files and folders that an installed package may not have",
       %{tmp_dir: root} do
    for {path, reason} <- [
          {"con.md", "has the name of a Windows device"},
          {"NUL/c.md", "has the name of a Windows device"},
          {"a/lpt1 .x.md", "has the name of a Windows device"},
          {"what?.md", "has a name that Windows does not allow"},
          {"a./c.md", "has a name that Windows does not allow"},
          {"a\u202Emd.md", "has invisible characters in its name"},
          {"a\u200B.md", "has invisible characters in its name"},
          {"a\u3164.md", "has invisible characters in its name"},
          {"a\uFE0F.md", "has invisible characters in its name"},
          {"a\u{E0041}.md", "has invisible characters in its name"}
        ] do
      for write <- [&Document.create/3, &Document.replace/3] do
        assert {:error, %DocumentError{kind: :name, path: ^path} = error} =
                 write.(root, path, "x")

        assert error.reason == reason
      end

      file = %Skillbook.Package.Item{path: path, type: :file}
      assert {:error, error} = Skillbook.Package.Item.check([file])
      assert Exception.message(error) =~ reason
    end

    assert files(root) == []

    assert message(Document.create(root, "con.md", "x")) ==
             ~s("con.md" has the name of a Windows device, and is not written: ) <>
               "write letters, digits, blanks and dashes, such as finance/report.md"

    for path <- ["console.md", "日本 ❤\uFE0F.md", "a.b/c d.md"],
        do: assert({:ok, _} = Document.create(root, path, "x"))

    # A file that exists keeps its name.
    File.write!(Path.join(root, "what?.md"), "old")
    assert {:ok, _} = Document.replace(root, "what?.md", "new")
    assert Document.read(root, "what?.md") == {:ok, "new"}
  end

  test "does not follow links below the root", %{tmp_dir: tmp} do
    root = Path.join(tmp, "root")
    File.mkdir_p!(Path.join(root, "real"))
    File.mkdir_p!(Path.join(tmp, "outside"))
    File.write!(Path.join(tmp, "outside/c.md"), "secret")
    File.ln_s!(Path.join(tmp, "outside"), Path.join(root, "out"))
    File.ln_s!("real", Path.join(root, "in"))
    File.ln_s!("../../outside/c.md", Path.join(root, "real/c.md"))
    File.ln_s!("nowhere", Path.join(root, "real/dangling.md"))

    for {path, part} <- [
          {"out/c.md", "out"},
          {"out/deeper/c.md", "out"},
          {"in/c.md", "in"},
          {"real/c.md", "real/c.md"},
          {"real/dangling.md", "real/dangling.md"}
        ] do
      text =
        "#{part} is a symbolic link, and links are not followed here: " <>
          "name a folder or file in its place"

      assert message(Document.create(root, path, "x")) == text
      assert message(Document.replace(root, path, "x")) == text
      assert message(Document.read(root, path)) == text
    end

    assert File.read!(Path.join(tmp, "outside/c.md")) == "secret"
    refute File.exists?(Path.join(root, "real/nowhere"))
  end

  test "the root may be a link", %{tmp_dir: tmp} do
    File.mkdir_p!(Path.join(tmp, "real"))
    File.ln_s!("real", Path.join(tmp, "root"))
    assert {:ok, _} = Document.create(Path.join(tmp, "root"), "c.md", "x")
    assert files(Path.join(tmp, "real")) == ["c.md"]
  end

  test "refuses a file as a folder, and a folder as a file", %{tmp_dir: root} do
    File.write!(Path.join(root, "a"), "")
    assert message(Document.create(root, "a/c.md", "x")) == "a: not a directory"
    File.mkdir!(Path.join(root, "d"))
    assert message(Document.replace(root, "d", "x")) == "d: illegal operation on a directory"
    assert message(Document.create(root, "d", "x")) == "d exists already"
    assert Enum.sort(files(root)) == ["a", "d"]
  end
end
