defmodule Skillbook.Drive.OneDriveTest do
  # The adapter for OneDrive, against a server that refuses what Microsoft's description does not
  # allow.
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Client
  alias Skillbook.{Drive, DriveError, NotFoundError, ServiceError}
  alias Skillbook.Test.{MicrosoftVendor, Services}

  @ann "ann@example.com"

  @files [
    %{id: "DIR1", name: "Plans", type: nil},
    %{id: "DIR2", name: "Deep", type: nil, folder: "DIR1"},
    %{id: "MD1", name: "Notes.md", text: "# Tea\n\nwith milk", folder: "DIR1"},
    %{id: "TXT1", name: "q1.txt", text: "Q1: 4"},
    %{id: "PDF1", name: "Report Q1.pdf", type: "application/pdf", text: "%PDF"},
    %{
      id: "OPEN",
      name: "open.txt",
      text: "x",
      permissions: [%{roles: ["read"], link: %{type: "view", scope: "anonymous"}}]
    }
  ]

  setup context do
    world = Services.world(onedrive: Map.merge(%{files: @files}, context[:seed] || %{}))
    %{world: world, account: MicrosoftVendor.account(world, @ann, time: 300_000)}
  end

  defp names(account, query) do
    {:ok, %{files: files, more: more}} =
      Drive.search(account, Map.merge(%{limit: 10}, Map.new(query)))

    {Enum.map(files, & &1.name), more}
  end

  defp file(account, id) do
    {:ok, file} = Drive.file(account, id)
    file
  end

  test "searches follow each condition", %{account: account} do
    today = Date.utc_today()

    for {query, names, more} <- [
          {[text: "q1"], ["Report Q1.pdf", "q1.txt"], false},
          {[text: "tea"], ["Notes.md"], false},
          {[text: ~s("with milk")], ["Notes.md"], false},
          {[text: "it's"], [], false},
          {[text: "q1", kind: :pdf], ["Report Q1.pdf"], false},
          {[text: "e", folder: "DIR1"], ["Deep", "Notes.md"], false},
          {[name: "Plans", kind: :folder], ["Plans"], false},
          {[name: "plan"], [], false},
          {[folder: "root"], ["Plans", "open.txt", "q1.txt", "Report Q1.pdf"], false},
          {[folder: "DIR1"], ["Deep", "Notes.md"], false},
          {[folder: "DIR1", limit: 1], ["Deep"], true},
          {[kind: :folder], ["Deep", "Plans"], false},
          {[after: today, kind: :markdown], ["Notes.md"], false},
          {[before: today], [], false},
          {[owner: "me", kind: :pdf], ["Report Q1.pdf"], false},
          {[owner: "Ann", kind: :pdf], ["Report Q1.pdf"], false},
          {[owner: "Bob"], [], false}
        ] do
      {found, found_more} = names(account, query)
      found = if query[:folder] && !query[:text], do: found, else: Enum.sort(found)
      assert {query, found, found_more} == {query, names, more}
    end

    assert {:error, %ServiceError{kind: :invalid, hint: hint}} =
             Drive.search(account, %{shared: true, limit: 5})

    assert hint ==
             "Microsoft lists no files that others shared with the account; ask for their " <>
               "addresses"

    assert {:error, %NotFoundError{kind: "file", id: "NONE"}} =
             Drive.search(account, %{folder: "NONE", limit: 5})
  end

  test "a file is shown with its kind, its folder and its revision", %{account: account} do
    assert %{
             name: "Notes.md",
             kind: :markdown,
             type: "text/plain",
             size: 16,
             owner: "Ann",
             folder: "DIR1",
             shared: false,
             trashed: false,
             revision: "c:.MD1.1"
           } = file(account, "MD1")

    assert %{kind: :folder, size: nil} = file(account, "DIR1")
    assert %{shared: true} = file(account, "OPEN")

    for id <- ["NONE", "a/b", "../x", "", "ümlaut", String.duplicate("9", 300)],
        do: assert({:error, %NotFoundError{kind: "file", id: ^id}} = Drive.file(account, id))

    assert Skillbook.Drive.OneDrive.id(" 1A2B!101 ") == {:ok, "1A2B!101"}
  end

  test "content comes from a server that gets no token", %{account: account, world: world} do
    assert Drive.text(account, file(account, "MD1")) == {:ok, "# Tea\n\nwith milk"}
    assert List.last(Services.methods(world)) == "onedrive.content"
    assert {:ok, %{name: "Report Q1.pdf", data: "%PDF"}} = Drive.download(account, "PDF1")
    assert {:error, %DriveError{kind: :folder}} = Drive.download(account, "DIR1")
    large = %{file(account, "PDF1") | size: 26_214_401}
    assert {:error, %DriveError{kind: :too_large}} = Drive.text(account, large)
  end

  describe "a new file" do
    test "is Markdown, text or a folder, and replaces none", %{account: account} do
      for {new, name, kind} <- [
            {%{name: "Plan", kind: :document, content: "# Plan"}, "Plan.md", :markdown},
            {%{name: "a.txt", kind: :file, type: "text/plain", content: "a"}, "a.txt", :text},
            {%{name: "100% & more ü#?.txt" |> String.replace("?", ""), kind: :file, content: ""},
             "100% & more ü#.txt", :text},
            {%{name: "Dir", kind: :folder}, "Dir", :folder},
            {%{name: "b.md", kind: :file, type: "text/markdown", content: "b", folder: "DIR1"},
             "b.md", :markdown}
          ] do
        assert {:ok, file} = Drive.create(account, new)
        assert {new, file.name, file.kind} == {new, name, kind}
        other = if new.kind == :folder, do: new, else: %{new | content: "something else"}
        assert {:error, %ServiceError{kind: :conflict}} = Drive.create(account, other)
      end

      assert {:error, %NotFoundError{kind: "file", id: "NONE"}} =
               Drive.create(account, %{name: "x", kind: :folder, folder: "NONE"})
    end

    test "is made once, whatever happens to the answer", %{account: account, world: world} do
      for {fault, number} <-
            Enum.with_index([
              [status: 503, applied: true],
              [cut: 0, applied: true],
              [cut: 20, applied: true],
              [status: 429, reason: "activityLimitReached", retry_after: 0]
            ]),
          {method, new} <- [
            {"PUT /me/drive/items/{id}:/{id}:/content",
             %{kind: :document, content: "# #{number}"}},
            {"POST /me/drive/items/{id}/children", %{kind: :folder}}
          ] do
        name = "#{new.kind} #{number}"
        Services.fault(world, [method: method] ++ fault)

        assert {^fault, ^new, {:ok, _}} =
                 {fault, new, Drive.create(account, Map.put(new, :name, name))}

        files = Services.judge(world, "onedrive.files", user: @ann)
        assert {fault, Enum.count(files, &String.starts_with?(&1["name"], name))} == {fault, 1}
      end
    end
  end

  test "changes: name, folder, content by its revision, and the recycle bin", context do
    %{account: account} = context
    before = file(account, "TXT1")
    assert {:ok, file} = Drive.update(account, before, %{name: "q2.txt", folder: "DIR1"})
    assert {file.name, file.folder} == {"q2.txt", "DIR1"}

    assert {:error, %DriveError{kind: :changed}} =
             Drive.update(account, file, %{content: "x", revision: before.revision})

    assert {:ok, file} = Drive.update(account, file, %{content: "Q2: 5", revision: file.revision})
    assert Drive.text(account, file) == {:ok, "Q2: 5"}

    assert {:error, %DriveError{kind: :fixed}} =
             Drive.update(account, file(account, "PDF1"), %{content: "x"})

    assert {:error, %ServiceError{kind: :conflict}} =
             Drive.update(account, file(account, "MD1"), %{name: "Deep"})

    assert {:ok, %{trashed: true}} = Drive.update(account, file, %{trashed: true})
    assert {:error, %NotFoundError{}} = Drive.file(account, file.id)
    assert {:error, %NotFoundError{}} = Drive.update(account, file, %{name: "x"})

    assert {:ok, %{trashed: false}} =
             Drive.update(account, before |> Map.put(:id, "MD1"), %{trashed: false})
  end

  # An open file with content.
  defp opened(content) do
    path = Path.join(System.tmp_dir!(), "onedrive_#{System.unique_integer([:positive])}")
    File.write!(path, content)
    on_exit(fn -> File.rm(path) end)
    {:ok, device} = :file.open(path, [:raw, :binary, :read, :write])
    {{:file, device, byte_size(content)}, path}
  end

  @bytes <<0x89, "PNG", 0, 255, 254>>

  test "open files are sent and saved", %{account: account, world: world} do
    {source, _path} = opened(@bytes)
    new = %{name: "Cat.png", kind: :file, type: "image/png", content: source}
    assert {:ok, %{id: id, type: "image/png", size: 7}} = Drive.create(account, new)
    assert {:ok, %{data: @bytes}} = Drive.download(account, id)

    assert {:ok, %{id: "PDF1"}} = Drive.update(account, file(account, "PDF1"), %{content: source})

    {{:file, device, 0}, path} = opened("")
    assert :ok = Drive.save(account, file(account, "PDF1"), nil, device, 7)
    assert File.read!(path) == @bytes

    assert {:error, %DriveError{kind: :too_large, limit: 6}} =
             Drive.save(account, %{file(account, "PDF1") | size: nil}, nil, device, 6)

    before = Services.methods(world)
    large = {:file, device, 250_000_000_001}

    for result <- [
          Drive.create(account, %{new | content: large, name: "x.bin"}),
          Drive.update(account, file(account, "TXT1"), %{content: large})
        ] do
      assert {:error, %ServiceError{kind: :too_large, hint: hint}} = result
      assert hint == "files of OneDrive have at most 250 GB"
    end

    assert Enum.reject(Services.methods(world) -- before, &(&1 =~ "GET")) == []
    cut = {:file, device, 9}
    assert {:error, %DriveError{kind: :cut}} = Drive.create(account, %{new | content: cut})
  end

  # {name, its formats}
  @formats [
    {"Plan.docx", ["docx", "pdf"]},
    {"BUDGET.XLSX", ["xlsx", "pdf"]},
    {"Plan.pdf", []},
    {"Plan", []},
    {"docx", []}
  ]

  test "Office files are saved as PDF too", %{account: account, world: world} do
    for {name, formats} <- @formats do
      file = %{file(account, "PDF1") | name: name}
      assert {name, Drive.formats(account, file)} == {name, formats}
    end

    files = [%{id: "DOC1", name: "Plan.docx", type: "application/zip", text: "PK"}]
    Services.seed(world, onedrive: %{files: files})

    for {format, content} <- [{"docx", "PK"}, {"pdf", "%PDF-1.7 PK"}] do
      {{:file, device, 0}, path} = opened("")
      assert :ok = Drive.save(account, file(account, "DOC1"), format, device, 20)
      assert {format, File.read!(path)} == {format, content}
    end
  end

  test "a content is replaced in the state that was read, and once", context do
    %{account: account, world: world} = context
    method = "PUT /me/drive/items/{id}/content"

    for {fault, number} <-
          Enum.with_index([[status: 503, applied: true], [cut: 0, applied: true], [cut: 20]]) do
      Services.fault(world, [method: method] ++ fault)
      content = String.duplicate("x", 40 + number)

      assert {^fault, {:ok, file}} =
               {fault, Drive.update(account, file(account, "TXT1"), %{content: content})}

      assert Drive.text(account, file) == {:ok, content}
    end

    # Another program was faster.
    Services.fault(world, method: method, status: 412, reason: "resourceModified")

    assert {:error, %DriveError{kind: :changed, name: "q1.txt"}} =
             Drive.update(account, file(account, "TXT1"), %{content: "mine"})

    assert {:ok, "xxx" <> _} = Drive.text(account, file(account, "TXT1"))
  end

  describe "a content above 4 MiB" do
    # Two parts.
    @large for(n <- 1..512_100, into: "", do: <<rem(n, 251), 255, "0123456789abcd">>)
    @session "POST /me/drive/items/{id}:/{id}:/createUploadSession"
    @replaced "POST /me/drive/items/{id}/createUploadSession"
    @put "onedrive.upload PUT"
    @get "onedrive.upload GET"

    # A fault at each request, before and after it took effect.
    @faults [
      [],
      [[method: @put, status: 503]],
      [[method: @put, cut: 0]],
      [[method: @put, cut: 0, applied: true]],
      [[method: @put, cut: 20, applied: true]],
      [[method: @put, cut: 0, applied: true, kept: 655_361]],
      [[method: @put, status: 429, reason: "activityLimitReached", retry_after: 0]],
      [[method: @put, skip: 1, status: 503]],
      [[method: @put, skip: 1, cut: 0, applied: true]],
      [[method: @put, skip: 1, cut: 0, applied: true, kept: 1]],
      [[method: @put, cut: 0, applied: true], [method: @get, status: 503]],
      [[method: @put, body: "<p>"]],
      [[method: @put, status: 503, times: 5]]
    ]

    defp begun(method),
      do: [[[method: method, status: 503]], [[method: method, cut: 0, applied: true]]]

    defp saved(account, file) do
      {{:file, device, 0}, path} = opened("")
      assert :ok = Drive.save(account, file, nil, device, byte_size(@large))
      File.read!(path) == @large
    end

    defp uploads(world),
      do: for("onedrive.upload " <> method <- Services.methods(world), do: method)

    test "makes one file in parts, whatever fails", %{account: account, world: world} do
      for {faults, number} <- Enum.with_index(@faults ++ begun(@session)) do
        for fault <- faults, do: Services.fault(world, fault)
        name = "large#{number}.bin"
        {source, _path} = opened(@large)
        new = %{name: name, kind: :file, type: "application/x-large", content: source}
        assert {^faults, {:ok, file}} = {faults, Drive.create(account, new)}
        assert {faults, saved(account, file)} == {faults, true}
        files = Services.judge(world, "onedrive.files", user: @ann)
        assert {faults, Enum.count(files, &(&1["name"] == name))} == {faults, 1}
      end

      # None was cancelled.
      assert Enum.uniq(uploads(world)) == ["PUT", "GET"]
    end

    test "replaces another one in the state that was read", context do
      %{account: account, world: world} = context

      for faults <- Enum.slice(@faults, 7..9) ++ begun(@replaced) do
        assert {:ok, file} = Drive.update(account, file(account, "TXT1"), %{content: "before"})
        for fault <- faults, do: Services.fault(world, fault)
        {source, _path} = opened(@large)
        assert {^faults, {:ok, file}} = {faults, Drive.update(account, file, %{content: source})}
        assert {faults, saved(account, file)} == {faults, true}
      end

      # Another program was faster: before the first part, or before the last.
      for method <- [@replaced, @put] do
        Services.fault(world, method: method, status: 412, reason: "resourceModified")
        {source, _path} = opened(@large <> "more")

        assert {^method, {:error, %DriveError{kind: :changed, name: "q1.txt"}}} =
                 {method, Drive.update(account, file(account, "TXT1"), %{content: source})}

        assert saved(account, file(account, "TXT1"))
      end
    end

    test "that fails is cancelled, and makes no file", %{account: account, world: world} do
      {{:file, device, size} = source, _path} = opened(@large)
      new = %{name: "none.bin", kind: :file, type: "application/x-large"}
      ranges = ~s({"nextExpectedRanges": ["99999999999-"]})

      for {faults, content, error} <- [
            {[[method: @put, status: 507, reason: "insufficientStorage"]], source, :quota},
            {[[method: @put, status: 503, times: nil]], source, :server},
            {[[method: @put, skip: 1, status: 409, reason: "nameAlreadyExists"]], source,
             :conflict},
            {[[method: @put, status: 202, body: ranges]], source, :bad_answer},
            {[[method: @put, status: 202, body: "{}"]], source, :bad_answer},
            {[[method: @put, status: 503], [method: @get, status: 404]], source, :conflict},
            {[[method: @session, body: "{}"]], source, :bad_answer},
            {[], {:file, device, size + 1}, :cut}
          ] do
        Services.clear_faults(world)
        Services.clear_log(world)
        for fault <- faults, do: Services.fault(world, fault)
        result = Drive.create(account, Map.put(new, :content, content))
        assert {^faults, {:error, %{kind: ^error}}} = {faults, result}
        began = not Enum.any?(faults, &(&1[:method] == @session or &1[:status] == 404))
        # Without a session, or after it was over, there is nothing to cancel.
        assert {faults, List.last(uploads(world)) == "DELETE"} == {faults, began}
        files = Services.judge(world, "onedrive.files", user: @ann)
        assert {faults, Enum.any?(files, &(&1["name"] == "none.bin"))} == {faults, false}
      end
    end

    test "goes to public servers alone, and by https", %{account: account} do
      for {url, hint} <- [
            {"http://example.com/up", "refused the request: it names another server"},
            {"https://127.0.0.1:1/up",
             "gave an answer that cannot be read: its address is in a private network"},
            {"https://10.0.0.1/up",
             "gave an answer that cannot be read: its address is in a private network"}
          ] do
        request = [method: :put, url: url, body: {"text/plain", "x"}]
        assert {:error, error} = Client.request(%{account | url: nil}, request, signed: true)
        assert {url, Exception.message(error)} == {url, "Microsoft Graph " <> hint}
      end
    end
  end

  test "access is given, listed and taken away", %{account: account} do
    file = file(account, "TXT1")
    grant = %{to: {:user, "bob@example.com"}, role: :reader, notify: true, message: "Look"}
    assert :ok = Drive.share(account, file, grant)
    assert :ok = Drive.share(account, file, %{grant | role: :writer, notify: false})
    assert :ok = Drive.share(account, file, %{grant | to: :anyone})
    assert {:ok, [owner, bob, anyone]} = Drive.permissions(account, file)
    assert {owner.to, owner.role} == {{:user, @ann}, :owner}
    assert {bob.to, bob.role} == {{:user, "bob@example.com"}, :writer}
    assert {anyone.to, anyone.role} == {:anyone, :reader}
    assert :ok = Drive.unshare(account, file, bob)
    assert :ok = Drive.unshare(account, file, bob)
    assert {:ok, [_, _]} = Drive.permissions(account, file)

    for {grant, hint} <- [
          {%{grant | role: :commenter},
           "OneDrive has no commenters; share the file for reading or writing"},
          {%{grant | to: {:domain, "example.com"}},
           "OneDrive shares with people, groups or everyone who has the link, not with a domain"}
        ],
        do:
          assert(
            {:error, %ServiceError{kind: :invalid, hint: ^hint}} =
              Drive.share(account, file, grant)
          )
  end

  test "folders are listed, and changes since a token", %{account: account, world: world} do
    folder = file(account, "DIR1")
    assert {:ok, files} = Drive.children(account, [folder], 5)
    assert Enum.sort(Enum.map(files, & &1.id)) == ["DIR2", "MD1"]
    assert {:error, %DriveError{kind: :too_many}} = Drive.children(account, [folder], 1)

    assert {:ok, %{changes: [], token: token}} = Drive.changes(account, nil, nil)
    assert {:ok, %{changes: [], token: ^token}} = Drive.changes(account, nil, token)
    Services.seed(world, onedrive: %{files: [%{id: "MD1", text: "new"}]})
    {:ok, _} = Drive.update(account, file(account, "TXT1"), %{trashed: true})
    assert {:ok, %{changes: changes, token: next}} = Drive.changes(account, nil, token)
    assert [{"MD1", %{name: "Notes.md"}}, {"TXT1", nil}] = changes
    assert next != token
    assert Drive.changes(account, nil, "nonsense") == {:error, :expired}
  end

  test "answers that are no file are errors", %{account: account, world: world} do
    for answer <- [
          "",
          "null",
          "[]",
          "{}",
          ~s({"id": "a"}),
          ~s({"id": "a", "name": 7}),
          ~s({"id": "a", "name": "b", "file": []}),
          ~s({"id": "a", "name": "b", "parentReference": {"id": 7}})
        ] do
      Services.fault(world, method: "GET /me/drive/items/{id}", body: answer)

      assert {^answer, {:error, %ServiceError{kind: :bad_answer}}} =
               {answer, Drive.file(account, "MD1")}
    end
  end
end
