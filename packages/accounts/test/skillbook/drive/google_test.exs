defmodule Skillbook.Drive.GoogleTest do
  # The adapter for Google Drive, against a server that refuses what Drive's description does not
  # allow. Google's own client reads back what it wrote.
  use ExUnit.Case, async: true

  alias Skillbook.{Drive, DriveError, NotFoundError, ServiceError}
  alias Skillbook.Drive.Google.Query
  alias Skillbook.Test.{Drives, Services}

  doctest Skillbook.DriveError
  doctest Skillbook.Drive.Google.Query

  @google "application/vnd.google-apps."
  @folder @google <> "folder"
  @document @google <> "document"

  setup context do
    world = Services.world(drive: Map.new(context[:drive] || []))
    %{world: world, account: Drives.account(world)}
  end

  defp names({:ok, %{files: files}}), do: files |> Enum.map(& &1.name) |> Enum.sort()

  defp judge(world, name) do
    Enum.find(Services.judge(world, "drive.files"), &(&1["name"] == name))
  end

  describe "search/2" do
    @files [
      %{id: "f1", name: "Plans", mimeType: @folder},
      %{
        id: "d1",
        name: "Q1 report",
        mimeType: @document,
        text: "Sales went up.",
        parents: ["f1"]
      },
      %{
        id: "d2",
        name: "Ann's plan",
        text: "It\\s a plan",
        modifiedTime: "2026-01-31T23:59:59.999Z"
      },
      %{id: "d3", name: "Notes.md", mimeType: "text/plain", text: "up and down"},
      %{id: "p1", name: "Q1.pdf", mimeType: "application/pdf"},
      %{
        id: "s1",
        name: "Budget",
        mimeType: @google <> "spreadsheet",
        owner: "bob@example.com",
        permissions: [%{type: "user", role: "reader", emailAddress: "ann@example.com"}]
      },
      %{id: "x1", name: "Old report", text: "up", trashed: true},
      %{id: "b1", name: "Bob's diary", text: "up", owner: "bob@example.com"},
      %{
        id: "d4",
        name: "Sales",
        text: "went down, then up",
        modifiedTime: "2026-02-01T00:00:00.000Z"
      }
    ]

    @everything ["Ann's plan", "Budget", "Notes.md", "Plans", "Q1 report", "Q1.pdf", "Sales"]

    # {conditions, names}
    @table [
      {%{}, @everything},
      {%{text: "up"}, ["Notes.md", "Q1 report", "Sales"]},
      {%{text: ~s("went up")}, ["Q1 report"]},
      {%{text: "report"}, ["Q1 report"]},
      {%{name: "Plans"}, ["Plans"]},
      {%{name: "plan"}, []},
      {%{name: "Ann's plan"}, ["Ann's plan"]},
      {%{kind: :folder}, ["Plans"]},
      {%{kind: :document}, ["Q1 report"]},
      {%{kind: :spreadsheet}, ["Budget"]},
      {%{kind: :pdf}, ["Q1.pdf"]},
      {%{kind: :image}, []},
      {%{folder: "f1"}, ["Q1 report"]},
      {%{folder: "root"}, ["Ann's plan", "Notes.md", "Plans", "Q1.pdf", "Sales"]},
      {%{owner: "bob@example.com"}, ["Budget"]},
      {%{owner: "me"}, @everything -- ["Budget"]},
      {%{shared: true}, ["Budget"]},
      {%{before: ~D[2026-02-01]}, ["Ann's plan"]},
      {%{after: ~D[2026-02-01]}, @everything -- ["Ann's plan"]},
      {%{after: ~D[2026-02-01], before: ~D[2026-02-02]}, ["Sales"]},
      {%{after: ~D[2026-02-01], text: "went", owner: "me"}, ["Q1 report", "Sales"]}
    ]

    @tag drive: [files: @files, page: 2]
    test "finds files by each condition, and by several, over pages", %{account: account} do
      for {conditions, expected} <- @table do
        found = Drive.search(account, Map.put(conditions, :limit, 50))
        assert {conditions, names(found)} == {conditions, expected}
      end

      assert {:ok, %{files: [_, _, _], more: true}} = Drive.search(account, %{limit: 3})
      assert {:ok, %{files: [_], more: false}} = Drive.search(account, %{text: "plan", limit: 3})
    end

    # A value that tries to be a part of the query finds only files that have it.
    @hostile [
      "' or name contains '",
      "' or trashed = true or name = '",
      "\\' or name contains '",
      "\\",
      "\\\\' or name contains 'Q",
      "') or ('a' in parents",
      "'",
      "''"
    ]

    @tag drive: [files: for(text <- @hostile, do: %{name: text, text: ""}) ++ @files]
    test "a value never becomes an operator", %{account: account} do
      for text <- @hostile do
        assert names(Drive.search(account, %{name: text, limit: 50})) == [text]

        for field <- [:folder, :owner] do
          assert names(Drive.search(account, %{field => text, limit: 50})) == []
        end

        assert {:ok, %{files: files}} = Drive.search(account, %{text: text, limit: 50})
        assert Enum.all?(files, &(not &1.trashed))
      end
    end

    test "any name finds the file of that name and no other", %{account: account, world: world} do
      parts = ["'", "\\", "\"", " ", "a", " or ", " and ", "(", ")", "name", " = ", "true", "é"]

      names =
        for(_ <- 1..150, do: Enum.map_join(1..Enum.random(1..8), fn _ -> Enum.random(parts) end))
        |> Enum.uniq()

      Drives.put(world, for(name <- names, do: %{name: name, text: ""}))

      for name <- names do
        assert names(Drive.search(account, %{name: name, limit: 50})) == [name]

        assert {:ok, _} =
                 Drive.search(account, %{text: name, folder: name, owner: name, limit: 5})
      end
    end

    test "writes each condition in the language of Drive" do
      day = ~D[2026-02-01]

      for {query, expected} <- [
            {%{text: ~s("a b" c)}, ~s(fullText contains '"a b" c')},
            {%{name: "a'b\\c"}, ~S(name = 'a\'b\\c')},
            {%{kind: :folder}, "mimeType = 'application/vnd.google-apps.folder'"},
            {%{kind: :audio}, "mimeType contains 'audio/'"},
            {%{kind: :markdown}, "(mimeType = 'text/markdown' or mimeType = 'text/x-markdown')"},
            {%{folder: "1a"}, "'1a' in parents"},
            {%{owner: "me"}, "'me' in owners"},
            {%{after: day}, "modifiedTime >= '2026-02-01T00:00:00'"},
            {%{before: day}, "modifiedTime < '2026-02-01T00:00:00'"},
            {%{shared: true}, "sharedWithMe"}
          ] do
        assert Query.search(query) == "trashed = false and " <> expected
      end

      assert Query.search(%{shared: false, text: nil}) == "trashed = false"
    end
  end

  describe "shared drives" do
    @member [%{type: "user", role: "writer", emailAddress: "ann@example.com"}]
    @tag drive: [
           page: 1,
           files: [
             %{
               id: "0T",
               name: "Team",
               mimeType: @folder,
               parents: [],
               driveId: "0T",
               owner: "team",
               permissions: @member
             },
             %{
               id: "f1",
               name: "Plans",
               mimeType: @folder,
               parents: ["0T"],
               driveId: "0T",
               owner: "team"
             },
             %{
               id: "d1",
               name: "Goals.md",
               text: "Beans",
               parents: ["f1"],
               driveId: "0T",
               owner: "team"
             },
             %{id: "d2", name: "Mine.md", text: "Beans"}
           ]
         ]
    test "are searched, listed, written and followed", %{account: account, world: world} do
      search = &names(Drive.search(account, Map.put(&1, :limit, 10)))
      assert search.(%{text: "beans"}) == ["Goals.md", "Mine.md"]
      assert {:ok, %{drive: "0T", folder: "0T"} = plans} = Drive.folder(account, "Plans")
      assert search.(%{folder: "f1", drive: "0T"}) == ["Goals.md"]
      assert {:ok, [%{id: "d1", drive: "0T"}]} = Drive.children(account, [plans], 10)

      {:ok, %{token: token}} = Drive.changes(account, "0T", nil)
      new = %{name: "New.md", kind: :file, content: "Peas", folder: "f1"}
      assert {:ok, %{id: id, drive: "0T"}} = Drive.create(account, new)
      Drives.put(world, [%{id: "d2", text: "Peas"}])
      assert {:ok, %{changes: [{^id, %{name: "New.md"}}]}} = Drive.changes(account, "0T", token)
    end
  end

  describe "file/2" do
    @tag drive: [
           files: [
             %{id: "d1", name: "Plan", text: "Beans"},
             %{
               id: "s1",
               name: "Link",
               mimeType: @google <> "shortcut",
               shortcutDetails: %{targetId: "d1"}
             },
             %{id: "t1", name: "Gone", text: "", trashed: true},
             %{id: "b1", name: "Secret", text: "", owner: "bob@example.com"}
           ]
         ]
    test "reads ids and addresses, and follows a shortcut", %{account: account} do
      assert {:ok, file} = Drive.file(account, "d1")

      assert %{name: "Plan", kind: :text, size: 5, owner: "Ann", folder: "root-ann@example.com"} =
               file

      assert "0B" <> _ = file.revision

      for text <- [
            "s1",
            " d1 ",
            "https://docs.google.com/document/d/d1/edit?usp=sharing",
            "https://drive.google.com/file/d/d1/view",
            "https://drive.google.com/open?id=d1"
          ] do
        assert {:ok, %{id: "d1"}} = Drive.file(account, text)
      end

      for text <- [
            "t1",
            "b1",
            "nope",
            "a/b",
            "../about",
            "d1?alt=media",
            "https://evil.example/d/d1",
            "https://docs.google.com/document/d/d1%2f/edit",
            "",
            "d1'"
          ] do
        assert {:error, %NotFoundError{kind: "file", id: ^text} = error} =
                 Drive.file(account, text)

        assert Exception.message(error) ==
                 "there is no file #{text}; `drive.search` lists the files with their ids"
      end
    end
  end

  describe "folder/2" do
    @tag drive: [
           files: [
             %{id: "f1", name: "Plans", mimeType: @folder},
             %{id: "f2", name: "Both", mimeType: @folder},
             %{id: "f3", name: "Both", mimeType: @folder},
             %{id: "d1", name: "Text", text: ""}
           ]
         ]
    test "finds a folder by id, address and name", %{account: account} do
      for text <- ["f1", "Plans", "https://drive.google.com/drive/folders/f1"],
          do: assert({:ok, %{id: "f1"}} = Drive.folder(account, text))

      assert {:ok, %{name: "My Drive"}} = Drive.folder(account, "root")

      for {text, message} <- [
            {"Both", ~s(several folders are named "Both". Write the id of one: f3, f2)},
            {"Nowhere",
             ~s(there is no folder "Nowhere"; `drive.search --type folder` lists the folders ) <>
               "with their ids"},
            {"d1",
             ~s(there is no folder "d1"; `drive.search --type folder` lists the folders ) <>
               "with their ids"}
          ] do
        assert {:error, %DriveError{} = error} = Drive.folder(account, text)
        assert Exception.message(error) == message
      end
    end
  end

  describe "content" do
    @tag drive: [
           export_limit: 100,
           files: [
             %{id: "d1", name: "Plan", mimeType: @document, text: "# Plan\n\nBeans\n"},
             %{id: "p1", name: "Talk", mimeType: @google <> "presentation", text: "Slide one"},
             %{id: "t1", name: "a.txt", text: "plain"},
             %{id: "t2", name: "b.txt", data: Base.encode64(<<0xFF, 0xFE, ?h, 0, ?i, 0>>)},
             %{id: "t3", name: "c.bin", mimeType: "application/octet-stream", text: "text"},
             %{
               id: "t4",
               name: "d.bin",
               mimeType: "application/octet-stream",
               data: Base.encode64(<<0, 159>>)
             },
             %{id: "t5", name: "e.txt", data: Base.encode64(<<"caf", 0xE9>>)},
             %{id: "i1", name: "cat.png", mimeType: "image/png", text: "x"},
             %{id: "m1", name: "Form", mimeType: @google <> "form"},
             %{id: "f1", name: "Plans", mimeType: @folder},
             %{id: "l1", name: "Long", mimeType: @document, text: String.duplicate("x", 101)}
           ]
         ]
    test "is text, or an error that says why it is none", %{account: account} do
      for {id, expected} <- [
            {"d1", {:ok, "# Plan\n\nBeans\n"}},
            {"p1", {:ok, "Slide one"}},
            {"t1", {:ok, "plain"}},
            {"t2", {:ok, "hi"}},
            {"t3", {:ok, "text"}},
            {"t4", ~s("d.bin" has no text to read: its type is "application/octet-stream")},
            {"t5", ~s(the text of "e.txt" cannot be read: it is not text in UTF-8 or UTF-16)},
            {"i1", ~s("cat.png" has no text to read: its type is "image/png")},
            {"m1",
             ~s("Form" has no text to read: its type is "application/vnd.google-apps.form")},
            {"f1", ~s("Plans" is a folder and has no text; `drive.list` shows the files in it)},
            {"l1", ~s("Long" is too large: at most 25 MB can be read)}
          ] do
        {:ok, file} = Drive.file(account, id)

        case Drive.text(account, file) do
          {:error, error} -> assert {id, Exception.message(error)} == {id, expected}
          found -> assert {id, found} == {id, expected}
        end
      end
    end

    @tag drive: [
           files: [
             %{id: "d1", name: "Plan", mimeType: @document, text: "Beans"},
             %{id: "s1", name: "Budget", mimeType: @google <> "spreadsheet", sheets: %{A: [[1]]}},
             %{id: "t1", name: "a.txt", text: "plain"}
           ]
         ]
    test "is a file for people by download/2", %{account: account} do
      assert {:ok, %{name: "Plan.pdf", type: "application/pdf", data: "%PDF-1.4" <> _}} =
               Drive.download(account, "d1")

      assert {:ok, %{name: "Budget.xlsx", data: "PK" <> _}} = Drive.download(account, "s1")

      assert Drive.download(account, "t1") ==
               {:ok, %{name: "a.txt", type: "text/plain", data: "plain"}}
    end
  end

  describe "create/2" do
    @tag drive: [files: [%{id: "f1", name: "Plans", mimeType: @folder}]]
    test "makes documents, files and folders, which Google's client reads back", context do
      %{account: account, world: world} = context
      text = "# Plan\n\n- Beans – überall\n"
      new = %{name: "Plan", kind: :document, content: text, folder: "f1"}
      assert {:ok, %{kind: :document, folder: "f1"} = file} = Drive.create(account, new)
      assert Drive.text(account, file) == {:ok, text}

      assert %{"parents" => ["f1"], "mimeType" => @document, "export" => export} =
               judge(world, "Plan")

      assert export =~ "Beans – überall"

      file = %{name: "a.md", kind: :file, type: "text/markdown", content: "--x\r\n--"}
      assert {:ok, %{kind: :markdown}} = Drive.create(account, file)
      assert %{"content" => "--x\r\n--", "mimeType" => "text/markdown"} = judge(world, "a.md")

      assert {:ok, %{kind: :folder}} = Drive.create(account, %{name: "New", kind: :folder})
      assert %{"mimeType" => @folder} = judge(world, "New")
    end

    # The answer is lost after the file was made: {kind, method, fault}
    @faults [
      {:document, [method: "drive.files.create", cut: 0, applied: true]},
      {:document, [method: "drive.files.create", status: 502, applied: true]},
      {:document, [method: "drive.files.create", status: 503, times: 2]},
      {:file, [method: "drive.files.create", cut: 0, applied: true]},
      {:file, [method: "drive.files.create", status: 500, applied: true]},
      {:folder, [method: "drive.files.create", cut: 0, applied: true]},
      {:file, [method: "drive.files.generateIds", status: 429]},
      {:document, [method: "drive.files.create", status: 403, reason: "userRateLimitExceeded"]}
    ]

    test "makes one file, though answers are lost", %{account: account, world: world} do
      for {{kind, fault}, number} <- Enum.with_index(@faults) do
        Services.fault(world, fault)
        name = "n#{number}"
        assert {:ok, file} = Drive.create(account, %{name: name, kind: kind, content: "Beans"})
        found = Enum.filter(Services.judge(world, "drive.files"), &(&1["name"] == name))
        assert {fault, Enum.map(found, & &1["id"])} == {fault, [file.id]}
      end
    end

    test "needs only the scope drive.file", %{world: world} do
      scopes = Skillbook.Connections.Google.scopes("drive.create")
      assert ["https://www.googleapis.com/auth/drive.file" | _] = scopes
      made = Services.token(world, user: "ann@example.com", scopes: [hd(scopes)])
      account = Drives.account(world, token: made["access_token"])

      for kind <- [:document, :file, :folder] do
        Services.fault(world, method: "drive.files.create", cut: 0, applied: true)
        new = %{name: "#{kind}", kind: kind, content: "Beans"}
        assert {:ok, %{id: id}} = Drive.create(account, new)
        assert [%{"id" => ^id}] = Services.judge(world, "drive.files", q: "name = '#{kind}'")
      end
    end

    test "sends more than 5 MB in parts, and goes on where it was cut", context do
      %{account: account, world: world} = context
      content = for(n <- 1..1_300_000, into: "", do: <<rem(n, 251), "0123456789abc\n">>)
      assert byte_size(content) > 16 * 1024 * 1024
      sha = :crypto.hash(:sha256, content) |> Base.encode16(case: :lower)

      for {fault, number} <-
            Enum.with_index([
              nil,
              [method: "drive.files.create.chunk", skip: 1, cut: 0],
              [method: "drive.files.create.chunk", skip: 1, cut: 0, applied: true],
              [method: "drive.files.create.chunk", skip: 2, status: 503, applied: true],
              [method: "drive.files.create.chunk", status: 429]
            ]) do
        if fault, do: Services.fault(world, fault)
        name = "large#{number}"
        new = %{name: name, kind: :file, type: "text/plain", content: content}
        assert {:ok, %{size: size}} = Drive.create(account, new)
        assert size == byte_size(content)
        assert [%{"size" => _}] = same(world, name, sha)
      end
    end

    @tag :tmp_dir
    test "sends and saves an open file, part by part", context do
      %{account: account, world: world, tmp_dir: folder} = context
      path = Path.join(folder, "large.bin")
      content = for(n <- 1..1_200_000, into: "", do: <<rem(n, 251), 255, "0123456789abc">>)
      sha = :crypto.hash(:sha256, content) |> Base.encode16(case: :lower)
      File.write!(path, content)
      {:ok, device} = :file.open(path, [:read, :raw, :binary])
      Services.fault(world, method: "drive.files.create.chunk", skip: 1, cut: 0, applied: true)
      new = %{name: "large.bin", kind: :file, type: "application/octet-stream"}
      new = Map.put(new, :content, {:file, device, byte_size(content)})
      assert {:ok, file} = Drive.create(account, new)
      assert [%{"id" => id}] = same(world, "large.bin", sha)

      # Cut while it is sent: nothing is made.
      longer = %{new | name: "cut.bin", content: {:file, device, byte_size(content) + 1}}
      assert {:error, %DriveError{kind: :cut} = error} = Drive.create(account, longer)
      assert Exception.message(error) == "the file was changed while it was sent. Send it again"
      assert judge(world, "cut.bin") == nil

      saved = Path.join(folder, "saved.bin")
      {:ok, device} = :file.open(saved, [:write, :raw])
      Services.fault(world, method: "drive.files.get", cut: 9_000_000)
      assert :ok = Drive.save(account, file, nil, device, byte_size(content))
      assert File.read!(saved) == content

      assert {:error, %DriveError{kind: :too_large}} =
               Drive.save(account, %{file | size: nil}, nil, device, byte_size(content) - 1)

      assert id == file.id
    end

    defp same(world, name, sha) do
      for %{"name" => ^name, "sha256" => ^sha} = file <- Services.judge(world, "drive.files"),
          do: file
    end
  end

  describe "update/3" do
    @tag drive: [
           files: [
             %{id: "f1", name: "Plans", mimeType: @folder},
             %{id: "d1", name: "Plan", mimeType: @document, text: "Beans\n"},
             %{id: "t1", name: "a.md", mimeType: "text/markdown", text: "Beans"},
             %{id: "p1", name: "x.pdf", mimeType: "application/pdf", text: "%PDF"}
           ]
         ]
    test "writes, renames and moves, unless the content has changed", context do
      %{account: account, world: world} = context

      for {id, text} <- [{"d1", "# Peas\n"}, {"t1", "Peas"}] do
        {:ok, file} = Drive.file(account, id)
        changes = %{content: text, revision: file.revision}
        assert {:ok, changed} = Drive.update(account, file, changes)
        assert Drive.text(account, changed) == {:ok, text}
        assert changed.revision != file.revision

        assert {:error, error} = Drive.update(account, file, %{changes | content: "Late"})

        assert Exception.message(error) ==
                 "\"#{file.name}\" has changed since you read it, so nothing was written. " <>
                   "Read it again with `drive.read`, and write your change on top of the new text"

        assert Drive.text(account, changed) == {:ok, text}
        {:ok, moved} = Drive.update(account, changed, %{name: "Neu's", folder: "f1"})
        assert %{name: "Neu's", folder: "f1"} = moved
        assert %{"parents" => ["f1"]} = judge(world, "Neu's")
        # Moving it where it is changes nothing.
        assert {:ok, %{folder: "f1"}} = Drive.update(account, moved, %{folder: "f1", name: id})
      end

      {:ok, pdf} = Drive.file(account, "p1")
      assert {:error, error} = Drive.update(account, pdf, %{content: "x"})

      assert Exception.message(error) ==
               ~s(the content of "x.pdf" cannot be replaced by text: its type is ) <>
                 ~s("application/pdf". Only documents and files of text can)

      assert {:ok, %{name: "y.pdf"}} = Drive.update(account, pdf, %{name: "y.pdf"})
      assert %{"content" => "%PDF"} = judge(world, "y.pdf")
    end

    @tag drive: [
           files: [
             %{
               id: "t1",
               name: "a.md",
               text: "Beans",
               owner: "bob@example.com",
               permissions: [%{type: "user", role: "reader", emailAddress: "ann@example.com"}]
             }
           ]
         ]
    test "of a file that the account may only read is refused", %{account: account} do
      {:ok, file} = Drive.file(account, "t1")

      assert {:error, %ServiceError{kind: :forbidden, code: "insufficientFilePermissions"}} =
               Drive.update(account, file, %{name: "mine"})
    end
  end

  describe "share/3" do
    @tag drive: [files: [%{id: "d1", name: "Plan", text: "Beans"}]]
    test "gives permissions, which Google's client reads back", context do
      %{account: account, world: world} = context
      {:ok, file} = Drive.file(account, "d1")
      grant = %{role: :reader, notify: false, message: nil}

      for {to, role, notify} <- [
            {{:user, "bob@example.com"}, :reader, true},
            {{:user, "bob@example.com"}, :writer, false},
            {{:group, "team@example.com"}, :commenter, true},
            {{:domain, "example.com"}, :reader, false},
            {:anyone, :reader, true}
          ] do
        grant = %{grant | role: role, notify: notify} |> Map.put(:to, to)

        assert Drive.share(
                 account,
                 file,
                 %{grant | message: notify && "Look at this"}
                 |> Map.update!(:message, &(&1 || nil))
               ) == :ok
      end

      permissions =
        for one <- Services.judge(world, "drive.permissions", id: "d1"),
            do: {one["type"], one["emailAddress"] || one["domain"], one["role"]}

      assert Enum.sort(permissions) == [
               {"anyone", nil, "reader"},
               {"domain", "example.com", "reader"},
               {"group", "team@example.com", "commenter"},
               {"user", "ann@example.com", "owner"},
               {"user", "bob@example.com", "writer"}
             ]

      shares =
        for %{"method" => "drive.permissions.create"} = call <- Services.log(world), do: call

      told =
        for call <- shares,
            do: {call["params"]["sendNotificationEmail"], call["params"]["emailMessage"]}

      assert told == [
               {true, "Look at this"},
               {false, nil},
               {true, "Look at this"},
               {nil, nil},
               {nil, nil}
             ]
    end
  end

  describe "changes/3" do
    @tag drive: [page: 2, files: [%{id: "d1", name: "Plan", text: "Beans"}]]
    test "reports what changed since a token, and an old token as expired", context do
      %{account: account, world: world} = context
      assert {:ok, %{changes: [], token: token}} = Drive.changes(account, nil, nil)
      assert {:ok, %{changes: [], token: ^token}} = Drive.changes(account, nil, token)

      Drives.put(world, for(n <- 1..5, do: %{id: "n#{n}", name: "n#{n}", text: "x"}))
      Drives.put(world, [%{id: "b1", name: "Bob's", text: "", owner: "bob@example.com"}])
      Drives.put(world, [%{id: "d1", trashed: true}])
      Services.seed(world, drive: %{delete: ["n1"]})
      assert {:ok, %{changes: changes, token: next}} = Drive.changes(account, nil, token)

      assert Enum.sort(for {id, file} <- changes, do: {id, file && {file.name, file.trashed}}) ==
               [
                 {"d1", {"Plan", true}},
                 {"n1", nil},
                 {"n2", {"n2", false}},
                 {"n3", {"n3", false}},
                 {"n4", {"n4", false}},
                 {"n5", {"n5", false}}
               ]

      assert {:ok, %{changes: [], token: ^next}} = Drive.changes(account, nil, next)

      for wrong <- ["nonsense", "99999"],
          do: assert(Drive.changes(account, nil, wrong) == {:error, :expired})

      Services.seed(world, drive: %{expire: true})
      assert Drive.changes(account, nil, token) == {:error, :expired}
    end
  end
end
