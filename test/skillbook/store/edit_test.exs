defmodule Skillbook.Store.EditTest do
  use ExUnit.Case, async: true

  alias Skillbook.Store.Edit

  test "what each edit makes of a content" do
    for {edit, content, expected} <- [
          {{:replace, "b"}, "a", "b"},
          {{:replace, ""}, "a", ""},
          {{:append, "b"}, "a\n", "a\nb"},
          {{:append, "b"}, "", "b"},
          {{:prepend, "b\n"}, "a", "b\na"},
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

  @expected "expected {:replace, text}, {:find_replace, find, with, all?: boolean}, {:append, text}, {:prepend, text} or " <>
              "{:delete, text} as the edit of an entry, got: "
  @empty ~s(expected a text to look for of at least one character as the edit of an entry, got: "")

  test "what cannot be done, and how it is told" do
    text = "# Milk\n\nTwo bottles, every day.\r\nNone on Sundays.\n"

    for {edit, content, message} <- [
          {{:delete, ""}, text, @empty},
          {{:find_replace, "", "x", all?: true}, text, @empty},
          {{:delete, "Two botles"}, text,
           ~s(the text "Two botles" is not in "milk"; the nearest line is line 3: "Two bottles, every day.". Write the text exactly as it stands there)},
          {{:find_replace, "two bottles", "x", all?: true}, text,
           ~s(the text "two bottles" is not in "milk"; the nearest line is line 3: "Two bottles, every day.". Write the text exactly as it stands there)},
          {{:delete, "\nNone on Sunday\nbut"}, text,
           ~s(the text "\\nNone on Sunday\\nbut" is not in "milk"; the nearest line is line 4: "None on Sundays.". Write the text exactly as it stands there)},
          {{:delete, "x"}, "", ~s(the text "x" is not in "milk", whose content is empty)},
          {{:delete, String.duplicate("x", 100)}, "a",
           ~s(the text "#{String.duplicate("x", 60)}..." is not in "milk"; the nearest line is line 1: "a". Write the text exactly as it stands there)},
          {{:append, nil}, text, @expected <> "{:append, nil}"},
          {{:find_replace, "a", "b"}, text, @expected <> ~s({:find_replace, "a", "b"})},
          {:append, text, @expected <> ":append"}
        ] do
      assert {:error, error} = Edit.apply(edit, content, "milk")
      assert Exception.message(error) == message
    end
  end
end
