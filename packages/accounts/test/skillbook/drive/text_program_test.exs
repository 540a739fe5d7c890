defmodule Skillbook.Drive.TextProgramTest do
  # The program that takes the text out of documents, with real files and with hostile ones, which
  # test/support/documents/make.py writes.
  use ExUnit.Case, async: true

  alias Skillbook.Drive.Text

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    script = Path.expand("../../support/documents/make.py", __DIR__)
    assert {_, 0} = System.cmd("python3", [script, folder], stderr_to_stdout: true)
    :ok
  end

  defp read(name, data) do
    file = %{name: name, type: "application/octet-stream", data: data}
    Text.read(file, System.monotonic_time(:millisecond) + 60_000)
  end

  test "documents of every format are read, hostile ones are errors", %{tmp_dir: folder} do
    rows = [
      {"good.docx", "# Report & plan\n\nFirst\n\n- item\n\nName | Sum\nAnn | 1\n"},
      {"good.pptx", "# Slide 1\n\nOne\n\n# Slide 2\n\nTwo\n"},
      {"good.xlsx", "# Sums\n\n\"Name, first\",,Sum\ntrue,,1.5,2023-03-15\n"},
      {"good.odt", "## Head\n\nOne  two\n\n- item\n"},
      {"good.ods", "# Sums\n\na | b\n"},
      {"good.odp", "# First\n\ntext\n"},
      {"good.pdf", "Hello PDF\nsecond line\n"},
      {"empty.docx", "it has no text; it may consist of pictures"},
      {"nothing.docx", "the file is damaged: it is not a zip archive"},
      {"text.docx", "the file is damaged: it is not a zip archive"},
      {"cut.docx", "the file is damaged: it is not a zip archive"},
      {"old.docx",
       "it is encrypted, or of an old format; save it without a password as docx, xlsx or pptx"},
      {"missing.docx", "the file is damaged: nothing can be read in word/document.xml"},
      {"badxml.docx", "the file is damaged: no XML in word/document.xml"},
      {"deep.docx", "the file is damaged: too deep nesting in word/document.xml"},
      {"bomb.docx", "it has more than 4194304 bytes of text"},
      {"long.docx", "it has more than 4194304 bytes of text"},
      # Entities of a document are not replaced.
      {"entities.docx", "a\uFFFDb\n"},
      {"many.docx", "it has 11000 files, and at most 10000 are read"},
      {"wide.xlsx", "# Sums\n\n" <> String.duplicate(",", 1000) <> "1\n"},
      {"cells.xlsx", "it has more than 4194304 bytes of text"},
      {"repeated.ods", "# a\n\nx\n"},
      {"blanks.odt", "a" <> String.duplicate(" ", 100) <> "b\n"},
      {"nothing.pdf", "the file is damaged: couldn't parse input: invalid file header"},
      {"cut.pdf",
       "the file is damaged: failed parsing cross reference table: invalid start value"},
      {"pictures.pdf", "it has no text; it may consist of pictures"},
      {"nested.pdf", "Hello\n"},
      {"encrypted.pdf", "it is encrypted; save it without a password"}
    ]

    assert Enum.sort(File.ls!(folder)) == rows |> Enum.map(&elem(&1, 0)) |> Enum.sort()

    for {name, expected} <- rows do
      found =
        case read(name, File.read!(Path.join(folder, name))) do
          {:ok, text} -> text
          {:error, error} -> error.reason
        end

      assert {name, found} == {name, expected}
    end
  end

  test "cut and changed documents end with a text or a reason", %{tmp_dir: folder} do
    :rand.seed(:exsss, {1, 2, 3})

    for kind <- ~w(docx pptx xlsx odt ods odp pdf), _ <- 1..10 do
      good = File.read!(Path.join(folder, "good." <> kind))
      place = :rand.uniform(byte_size(good)) - 1
      {before, <<_, rest::binary>>} = :erlang.split_binary(good, place)
      changed = [before, before <> <<:rand.uniform(256) - 1>> <> rest, before <> rest]

      case read("a." <> kind, Enum.random(changed)) do
        {:ok, text} -> assert String.valid?(text)
        {:error, error} -> assert Exception.message(error) =~ "a." <> kind
      end
    end
  end
end
