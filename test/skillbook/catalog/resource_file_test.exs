defmodule Skillbook.Catalog.ResourceFileTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Help

  @moduletag :tmp_dir

  @shown 256 * 1024

  defp read(root, file, bytes) do
    write(root, %{"pdf/SKILL.md" => page("pdf"), "pdf/#{file}" => bytes})
    {:ok, text} = Help.get(view(root), "pdf/#{file}")
    text
  end

  test "shows text up to a size limit", %{tmp_dir: root} do
    line = String.duplicate("x", 99) <> "\n"

    rest = fn length, left ->
      "\n[`a.txt` goes on: #{left} of its #{length} bytes are not shown.]"
    end

    rows = [
      {"", ""},
      {"é\n", "é\n"},
      {String.duplicate("x", @shown), String.duplicate("x", @shown)},
      {String.duplicate("x", @shown + 1), String.duplicate("x", @shown) <> rest.(@shown + 1, 1)},
      # Neither a line nor a character is cut in two.
      {String.duplicate(line, 3000), String.duplicate(line, 2621) <> rest.(300_000, 37_900)},
      {"x" <> String.duplicate("é", 150_000),
       "x" <> String.duplicate("é", 131_071) <> rest.(300_001, 37_858)}
    ]

    for {bytes, expected} <- rows do
      assert read(root, "a.txt", bytes) == expected
    end
  end

  test "describes files that are not text", %{tmp_dir: root} do
    rows = [
      {"a.png", <<0x89, "PNG\r\n", 0x1A, "\n", 0>>,
       "`a.png` is a PNG image of 9 bytes, not text."},
      {"a.jpg", <<0xFF, 0xD8, 0xFF>>, "`a.jpg` is a JPEG image of 3 bytes, not text."},
      {"a.webp", "RIFF1234WEBP\0", "`a.webp` is a WebP image of 13 bytes, not text."},
      {"a.wav", "RIFF1234WAVE\0", "`a.wav` is a binary file of 13 bytes, not text."},
      {"a.pdf", "%PDF-1.7\n", "`a.pdf` is a PDF document of 9 bytes, not text."},
      {"a.zip", <<"PK", 3, 4, 0>>, "`a.zip` is a ZIP archive of 5 bytes, not text."},
      {"A.DOCX", <<"PK", 3, 4, 0>>, "`A.DOCX` is a Word document of 5 bytes, not text."},
      {"a.bin", "a\0b", "`a.bin` is a binary file of 3 bytes, not text."},
      {"latin.txt", <<"caf", 0xE9>>, "`latin.txt` is a binary file of 4 bytes, not text."},
      {"large.bin", String.duplicate(<<0>>, @shown + 10),
       "`large.bin` is a binary file of 262154 bytes, not text."},
      # The beginning counts, not the name.
      {"text.png", "only text", "only text"},
      {"ID3.txt", "ID3 tags", "ID3 tags"}
    ]

    for {file, bytes, expected} <- rows do
      assert read(root, file, bytes) == expected
    end
  end

  test "reads only files inside the folder", %{tmp_dir: root} do
    write(root, %{"s/pdf/SKILL.md" => page("pdf"), "s/secret.txt" => "secret"})
    File.ln_s!(Path.join(root, "s/secret.txt"), Path.join(root, "s/pdf/link.txt"))
    view = view(Path.join(root, "s"))

    for path <- [
          "pdf/../secret.txt",
          "pdf//etc/passwd",
          "pdf/./SKILL.md",
          "pdf/link.txt",
          "pdf/gone.txt"
        ] do
      assert {:error, _} = Help.get(view, path)
    end
  end
end
