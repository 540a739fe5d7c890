defmodule Skillbook.Package.ArchivesTest do
  # Archives of real programs, and hostile ones built byte by byte.
  use ExUnit.Case, async: true

  alias Skillbook.Package.Archive.{Tar, Zip}
  alias Skillbook.Test.{Certificates, HTTPServer}
  alias Skillbook.{Package, PackageError}

  @moduletag :tmp_dir

  @page "---\nname: good\ndescription: Does good things\n---\n# Good\n"

  # A zip file of entries: name, content, and the header fields to override.
  defp zip(entries) do
    {locals, centrals, _} =
      Enum.reduce(entries, {"", "", 0}, fn {name, content, options}, {locals, centrals, at} ->
        at = options[:at] || at
        packed = options[:packed] || content
        method = options[:method] || 0
        size = options[:size] || byte_size(content)
        crc = options[:crc] || :erlang.crc32(content)
        mode = Bitwise.bsl(options[:mode] || 0o100644, 16)
        flags = options[:flags] || 0x800
        own = options[:own] || name

        local =
          <<"PK\x03\x04", 20::16-little, flags::16-little, method::16-little, 0::32,
            crc::32-little, byte_size(packed)::32-little, size::32-little,
            byte_size(own)::16-little, 0::16>> <> own <> packed

        central =
          <<"PK\x01\x02", 0x0314::16-little, 20::16-little, flags::16-little, method::16-little,
            0::32, crc::32-little, byte_size(packed)::32-little, size::32-little,
            byte_size(name)::16-little, 0::16, 0::16, 0::16, 0::16, mode::32-little,
            at::32-little>> <> name

        {locals <> local, centrals <> central, byte_size(locals) + byte_size(local)}
      end)

    n = length(entries)

    locals <>
      centrals <>
      <<"PK\x05\x06", 0::32, n::16-little, n::16-little, byte_size(centrals)::32-little,
        byte_size(locals)::32-little, 0::16>>
  end

  defp tar(entries) do
    for({name, content, type} <- entries, into: "", do: tar_entry(name, content, type)) <>
      :binary.copy(<<0>>, 1024)
  end

  defp tar_entry(name, content, type) do
    size = content |> byte_size() |> Integer.to_string(8) |> String.pad_leading(11, "0")

    head =
      String.pad_trailing(name, 100, "\0") <>
        "0000755\0" <> "0000000\0" <> "0000000\0" <> size <> "\0" <> "00000000000\0"

    rest =
      type <>
        String.pad_trailing("elsewhere", 100, "\0") <>
        "ustar\0" <> "00" <> :binary.copy(<<0>>, 247)

    sum = for <<byte <- head <> "        " <> rest>>, reduce: 0, do: (sum -> sum + byte)
    checksum = (sum |> Integer.to_string(8) |> String.pad_leading(6, "0")) <> "\0 "

    head <>
      checksum <>
      rest <> content <> :binary.copy(<<0>>, rem(512 - rem(byte_size(content), 512), 512))
  end

  defp pax(key, value) do
    record = fn length -> "#{length} #{key}=#{value}\n" end
    length = Enum.find(1..2000, &(byte_size(record.(&1)) == &1))
    record.(length)
  end

  defp install(folder, name, bytes) do
    path = Path.join(folder, name)
    File.write!(path, bytes)
    Package.install(path, to: Path.join(folder, "to"), names: :all, accept: fn _ -> true end)
  end

  # The error for the archive or for its only skill.
  defp refusal({:error, %PackageError{} = error}), do: {error.kind, Exception.message(error)}

  defp refusal({:ok, [%{action: :failed, error: error}]}),
    do: {error.kind, Exception.message(error)}

  defp refusal(other), do: other

  defp everything(folder),
    do: folder |> Path.join("**") |> Path.wildcard(match_dot: true) |> Enum.sort()

  test "installs the packed files of archives of common programs", %{tmp_dir: folder} do
    root = Path.join(folder, "in")
    long = String.duplicate("long-name-", 8) <> "1234567.md"

    for {path, text} <- [
          {"good/SKILL.md", @page},
          {"good/scripts/run.sh", "#!/bin/sh\n"},
          {"good/references/#{long}", "x"},
          {"good/leer.txt", ""},
          {"good/groß/ä.md", String.duplicate("ä", 5000)}
        ] do
      path = Path.join(root, path)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text)
    end

    File.chmod!(Path.join(root, "good/scripts/run.sh"), 0o755)

    made = [
      {"a.tar", "tar", ["cf", "../a.tar", "good"]},
      {"b.tar.gz", "tar", ["czf", "../b.tar.gz", "--format=pax", "./good"]},
      {"c.tgz", "tar", ["czf", "../c.tgz", "--format=gnu", "good"]},
      {"f.tar", "tar", ["cf", "../f.tar", "--format=ustar", "good"]}
    ]

    made =
      if System.find_executable("zip"),
        do: [{"d.zip", "zip", ["-qr", "../d.zip", "good"]} | made],
        else: made

    hashes =
      for {name, program, args} <- made do
        {_, 0} = System.cmd(program, args, cd: root, stderr_to_stdout: true)
        to = Path.join(folder, "to-#{name}")

        assert {:ok, [%{name: "good", action: :installed}]} =
                 Package.install(Path.join(folder, name), to: to, accept: fn _ -> true end)

        assert File.read!(Path.join(to, "good/groß/ä.md")) == String.duplicate("ä", 5000)
        assert File.read!(Path.join(to, "good/references/#{long}")) == "x"
        # No file becomes executable; the lock file records the modes.
        assert Bitwise.band(File.stat!(Path.join(to, "good/scripts/run.sh")).mode, 0o777) == 0o644
        {:ok, %{"good" => entry}} = Package.installed(to)
        assert entry["executable"] == ["scripts/run.sh"]
        entry["hash"]
      end

    assert {:ok, _} =
             Package.install(Path.join(root, "good"),
               to: Path.join(folder, "to"),
               accept: fn _ -> true end
             )

    {:ok, %{"good" => %{"hash" => hash}}} = Package.installed(Path.join(folder, "to"))
    assert Enum.uniq(hashes) == [hash]
  end

  test "hostile zip archives write nothing", %{tmp_dir: folder} do
    page = {"good/SKILL.md", @page, []}
    deflated = fn bytes -> bytes |> :zlib.zip() end
    zeros = :binary.copy(<<0>>, 8 * 1024 * 1024)

    for {entries, kind, text} <- [
          {[page, {"../out", "x", []}], :name,
           "../out leads out of the archive, and nothing is installed"},
          {[page, {"good/../../out", "x", []}], :name, "leads out of the archive"},
          {[page, {"..\\out", "x", []}], :name, "leads out of the archive"},
          {[page, {"/tmp/out", "x", []}], :name, "has an absolute name"},
          {[page, {"C:/out", "x", []}], :name, "has an absolute name"},
          {[page, {"good/a\0b", "x", []}], :name, "has a name that is not UTF-8"},
          {[page, {<<"good/", 255>>, "x", []}], :name, "has a name that is not UTF-8"},
          {[page, {"good/link", "/etc/passwd", mode: 0o120777}], :special, "good/link is a link"},
          {[page, {"good/pipe", "", mode: 0o010644}], :special, "is neither a file nor a folder"},
          {[page, {"good/A.md", "x", []}, {"good/a.md", "y", []}], :name,
           "differs from A.md only in case"},
          {[page, {"good/\u00E9", "x", []}, {"good/e\u0301", "y", []}], :name,
           "only in case or in the form"},
          {[page, {"good/a", "x", []}, {"good/a/b", "y", []}], :name, "good/a occurs twice"},
          {[page, page], :name, "good/SKILL.md occurs twice"},
          {[page, {"good/con.txt", "x", []}], :name, "has the name of a Windows device"},
          {[page, {"good/a:b", "x", []}], :name, "has a name that Windows does not allow"},
          {[page, {"good/a.", "x", []}], :name, "has a name that Windows does not allow"},
          {[page, {"good/a\u202Etxt", "x", []}], :name, "invisible characters in its name"},
          {[page, {"good/.git/hooks/pre-commit", "x", []}], :name, "belongs to a git repository"},
          {[page, {"good/bomb", zeros, method: 8, packed: deflated.(zeros)}], :limit,
           "like a zip bomb"},
          {[page, {"good/bomb", "x", size: 17_000_000, method: 8, packed: <<0>>}], :limit,
           "a file may have"},
          {[page, {"good/a", zeros, size: 5, method: 8, packed: deflated.(zeros)}], :archive,
           "wrong size or checksum"},
          {[page, {"good/a", "x", crc: 1}], :archive, "wrong size or checksum: good/a"},
          {[page, {"good/a", "x", method: 12}], :archive, "packed by method 12"},
          {[page, {"good/a", "x", flags: 1}], :archive, "is encrypted"},
          {[page, {"good/a", "x", own: "good/b"}], :archive, "differs from the directory"},
          {[page, {"good/SKILL.md", @page, at: 0}], :archive, "files that share bytes"},
          {[page | for(n <- 1..1001, do: {"good/#{n}", "", []})], :limit,
           "has 1002 files, and may have 1000"}
        ] do
      archive = Path.join(folder, "a.zip")
      before = everything(folder) -- [archive]
      assert {^kind, message} = refusal(install(folder, "a.zip", zip(entries)))
      assert message =~ text

      assert everything(folder) -- [archive, Path.join(folder, "to")] ==
               before -- [Path.join(folder, "to")]
    end
  end

  test "hostile tar archives write nothing", %{tmp_dir: folder} do
    page = {"good/SKILL.md", @page, "0"}

    for {entries, kind, text} <- [
          {[page, {"../out", "x", "0"}], :name, "leads out of the archive"},
          {[page, {"/out", "x", "0"}], :name, "has an absolute name"},
          {[page, {"x", pax("path", "../../out"), "x"}, {"fine", "x", "0"}], :name,
           "leads out of the archive"},
          {[page, {"g", pax("path", "/out"), "g"}, {"fine", "x", "0"}], :name,
           "has an absolute name"},
          {[page, {"l", "../../out\0", "L"}, {"fine", "x", "0"}], :name,
           "leads out of the archive"},
          {[page, {"good/link", "", "2"}], :special, "good/link is a link"},
          {[page, {"good/hard", "", "1"}], :special, "good/hard is a link"},
          {[page, {"good/dev", "", "3"}], :special, "is neither a file nor a folder"},
          {[page, {"good/pipe", "", "6"}], :special, "is neither a file nor a folder"},
          {[page, {"good/sparse", "x", "S"}], :special, "is neither a file nor a folder"},
          {[page, {"good/link", "x", "2"}], :archive, "a size that is not a file"},
          {[page, {"x", pax("size", "99999999999"), "x"}, {"good/a", "x", "0"}], :limit,
           "a file may have"},
          {[page, {"x", "9999 path=a\n", "x"}, {"good/a", "x", "0"}], :archive,
           "broken pax header"},
          {[page, {"good/SKILL.md", "other", "0"}], :name, "good/SKILL.md occurs twice"}
        ] do
      archive = Path.join(folder, "a.tar")
      before = everything(folder) -- [archive]
      assert {^kind, message} = refusal(install(folder, "a.tar", tar(entries)))
      assert message =~ text

      assert everything(folder) -- [archive, Path.join(folder, "to")] ==
               before -- [Path.join(folder, "to")]
    end

    bomb = :zlib.gzip(tar([page]) <> :binary.copy(<<0>>, 64 * 1024 * 1024))

    assert {:limit, "the archive is compressed by more than 250 times" <> _} =
             refusal(install(folder, "b.tgz", bomb))

    cut = binary_part(:zlib.gzip(tar([page])), 0, 100)
    assert {:archive, message} = refusal(install(folder, "c.tgz", cut))
    assert message =~ "broken or truncated"
  end

  describe "an archive at an address" do
    setup %{tmp_dir: folder} do
      {tls, authority} = Certificates.make(["localhost"])

      start = fn script ->
        {_server, url} = HTTPServer.start(script, tls: tls)
        url
      end

      options = [
        to: Path.join(folder, "to"),
        accept: fn _ -> true end,
        http: [cacertfile: authority]
      ]

      {:ok, start: start, options: options}
    end

    defp moved(to), do: [{:head, 302, [{"location", to}, {"content-length", "0"}]}]

    test "is fetched, also after a redirect", %{
      start: start,
      options: options,
      tmp_dir: folder
    } do
      answer = [{"good/SKILL.md", @page, []}] |> zip() |> HTTPServer.answer()
      url = start.([moved("/b.zip"), answer, answer]) <> "/a/skills.zip"
      assert {:ok, [%{name: "good", action: :installed}]} = Package.install(url, options)
      assert File.read!(Path.join(folder, "to/good/SKILL.md")) == @page
      assert {:ok, [%{name: "good", action: :current}]} = Package.outdated([], options)

      answer = [{"good/SKILL.md", @page, "0"}] |> tar() |> :zlib.gzip() |> HTTPServer.answer()
      url = start.([answer]) <> "/a.tgz"

      assert {:ok, [%{name: "good"}]} = Package.find(url, options)
    end

    test "is checked like a file, and download errors are reported", %{
      start: start,
      options: options
    } do
      for {script, message} <- [
            {[HTTPServer.answer("PK")], ~r/a.zip is not a complete zip archive/},
            {[[{:head, 404, []}, :end]],
             ~r/a.zip could not be fetched: the server returned the status 404\z/},
            {[moved("http://localhost/a.zip")],
             ~r/could not be fetched: localhost:\d+: it redirects to an address without https\z/},
            {List.duplicate(moved("/"), 6),
             ~r/could not be fetched: localhost:\d+: there are more than 5 redirects\z/},
            {[[{:head, 200, []}, {:endless, "ffff\r\n" <> :binary.copy("a", 65_535) <> "\r\n"}]],
             ~r/could not be fetched: localhost:\d+: the response has more than 67108864 bytes\z/}
          ] do
        assert {:error, error} = Package.install(start.(script) <> "/a.zip", options)
        assert Exception.message(error) =~ message
      end

      # An address that may hold a secret is refused, and no lock file records it.
      for url <- [
            "https://ann:secret@localhost:1/a.zip",
            "https://localhost:1/a.zip?secret",
            "http://localhost:1/a.zip"
          ] do
        assert {:error, %{kind: kind}} = Package.install(url, options)
        assert kind in [:git, :source]
      end
    end
  end

  # A broken archive returns a result. It writes nothing outside the folder, and nothing inside
  # after an error.
  test "broken archives return errors and write nothing elsewhere", %{tmp_dir: folder} do
    :rand.seed(:exsss, {1, 2, 3})
    page = {"good/SKILL.md", @page, "0"}
    whole_tar = tar([page, {"x", pax("path", "good/b"), "x"}, {"good/a", "text", "0"}])

    packed = {"good/a", "text", method: 8, packed: :zlib.zip("text")}
    whole_zip = zip([{"good/SKILL.md", @page, []}, packed])

    for _ <- 1..300, {read, whole} <- [{&Tar.read/2, whole_tar}, {&Zip.read/2, whole_zip}] do
      case read.(broken(whole), "a") do
        {:ok, items} -> for item <- items, do: refute(item.path =~ ~r{\A/|(\A|/)\.\.(/|\z)})
        {:error, %PackageError{}} -> :ok
      end
    end

    for number <- 1..20,
        {name, whole} <- [{"#{number}.tar", whole_tar}, {"#{number}.zip", whole_zip}] do
      result = install(folder, name, broken(whole))
      File.rm!(Path.join(folder, name))
      installed = match?({:ok, [%{action: :installed}]}, result)
      assert File.ls!(folder) -- ["to"] == []
      to = Path.join(folder, "to")
      if File.dir?(to), do: assert(File.ls!(to) == [] or installed)
      File.rm_rf!(to)
    end
  end

  defp broken(bytes) do
    at = :rand.uniform(byte_size(bytes)) - 1
    {before, <<_, rest::binary>>} = :erlang.split_binary(bytes, at)

    case :rand.uniform(3) do
      1 -> before
      2 -> before <> <<:rand.uniform(256) - 1>> <> rest
      3 -> before <> :crypto.strong_rand_bytes(4) <> rest
    end
  end
end
