defmodule Skillbook.Store.EditTest do
  use ExUnit.Case, async: true

  alias Skillbook.Store.Edit

  test "each edit changes the content" do
    for {edit, content, expected} <- [
          {{:replace, "b"}, "a", "b"},
          {{:replace, ""}, "a", ""},
          {{:append, "b"}, "a\n", "a\nb"},
          {{:append, "b"}, "", "b"},
          {{:append, "b"}, "a", "a\nb"},
          {{:append, "\nb"}, "a", "a\nb"},
          {{:append, "\nb"}, "a\n", "a\n\nb"},
          {{:append, ""}, "a", "a"},
          {{:append, "b"}, "a\r\nc", "a\r\nc\r\nb"},
          {{:append, "\r\nb"}, "a\r\nc", "a\r\nc\r\nb"},
          {{:append, "b"}, "a\r\n", "a\r\nb"},
          {{:prepend, "b\n"}, "a", "b\na"},
          {{:prepend, "b"}, "a", "b\na"},
          {{:prepend, "b"}, "\na", "b\na"},
          {{:prepend, "b"}, "", "b"},
          {{:prepend, ""}, "a", "a"},
          {{:prepend, "b"}, "---\nlabels: [x]\n---\na", "---\nlabels: [x]\n---\nb\na"},
          {{:prepend, "b"}, "---\nlabels: [x]\n---\n", "---\nlabels: [x]\n---\nb"},
          {{:prepend, "b"}, "\uFEFF---\nlabels: [x]\n---\na",
           "\uFEFF---\nlabels: [x]\n---\nb\na"},
          {{:prepend, "b"}, "---\nA line", "b\n---\nA line"},
          {{:delete, "b"}, "abab", "aab"},
          {{:delete, "abab"}, "abab", ""},
          {{:delete, "b\n"}, "a\nb\nc\n", "a\nc\n"},
          {{:find_replace, "b", "x", all?: false}, "abab", "axab"},
          {{:find_replace, "b", "x", all?: true}, "abab", "axax"},
          {{:find_replace, "b", "", all?: true}, "abab", "aa"},
          {{:find_replace, "b", "b", all?: false}, "ab", "ab"},
          {{:find_replace, "aa", "a", all?: true}, "aaaa", "aa"},
          {{:find_replace, "a.c", "x", all?: true}, "abc a.c", "abc x"},
          {{:find_replace, "b", "\\0 \\1 &", all?: true}, "abc", "a\\0 \\1 &c"},
          {{:find_replace, "ü\n世", "x", all?: false}, "aü\n世界", "ax界"}
        ] do
      assert Edit.apply(edit, content, "milk") == {:ok, expected}, inspect(edit)
    end
  end

  @expected "expected {:replace, text}, {:find_replace, find, with, all?: boolean}, " <>
              "{:append, text}, {:prepend, text} or {:delete, text} as the edit of an entry, " <>
              "got: "
  @empty ~s(expected a search text of at least one character as the edit of an entry, got: "")

  test "errors of edits" do
    text = "# Milk\n\nTwo bottles, every day.\r\nNone on Sundays.\n"

    for {edit, content, message} <- [
          {{:delete, ""}, text, @empty},
          {{:find_replace, "", "x", all?: true}, text, @empty},
          {{:delete, "Two botles"}, text,
           ~s(the text "Two botles" does not occur in "milk"; the closest line is line 3: ) <>
             ~s("Two bottles, every day.". Copy the text exactly)},
          {{:find_replace, "two bottles", "x", all?: true}, text,
           ~s(the text "two bottles" does not occur in "milk"; the closest line is line 3: ) <>
             ~s("Two bottles, every day.". Copy the text exactly)},
          {{:delete, "\nNone on Sunday\nbut"}, text,
           ~s(the text "\\nNone on Sunday\\nbut" does not occur in "milk"; the closest line ) <>
             ~s(is line 4: "None on Sundays.". Copy the text exactly)},
          {{:delete, "x"}, "", ~s(the text "x" does not occur in "milk"; its content is empty)},
          {{:delete, String.duplicate("x", 100)}, "a",
           ~s(the text "#{String.duplicate("x", 60)}..." does not occur in "milk"; the ) <>
             ~s(closest line is line 1: "a". Copy the text exactly)},
          {{:append, nil}, text, @expected <> "{:append, nil}"},
          {{:find_replace, "a", "b"}, text, @expected <> ~s({:find_replace, "a", "b"})},
          {:append, text, @expected <> ":append"}
        ] do
      assert {:error, error} = Edit.apply(edit, content, "milk")
      assert Exception.message(error) == message
    end
  end
end
