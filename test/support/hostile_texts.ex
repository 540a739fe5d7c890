defmodule Skillbook.HostileTexts do
  @moduledoc false
  # Texts that make a parser slow if anything in it is worse than linear: one piece, repeated up
  # to a size. Each has a name for messages.

  @pieces [
    "/",
    "a/",
    "../",
    "`",
    "` ",
    "```\n",
    "~~~\n",
    "```cmd\nx\n```\n",
    "```cmd\nx \"a\n```\n",
    "```a\n```cmd\n",
    "    ```cmd\n",
    "> ",
    ">",
    "- ",
    "* a\n",
    "1. ",
    "<",
    "<cmd>",
    "<cmd>x ",
    "</cmd>",
    "<think>",
    "<tool_call>{",
    "<|python_tag|>",
    "<!--",
    "-->",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    " \n",
    "\t\n",
    "\u00A0",
    "\u2028",
    "\u200B",
    "\uFEFF",
    "\"",
    "\"a\" ",
    "'",
    "“",
    "“a",
    "”",
    "«",
    "\\",
    "\\\"",
    "\\\n",
    "(",
    "[",
    "[[",
    "[a](",
    "![a](b ",
    "{",
    "{a",
    "{{",
    "{last}",
    "{1} ",
    "}",
    "{\"a\":",
    "[{\"a\":[",
    "{\"a\":1,\"b\":[1]}",
    "1,",
    "<<E",
    "<<E ",
    "x <<E\n",
    "E\n",
    "$(cat <<E\n",
    "$(",
    "-",
    "--",
    "--a ",
    "--a=b ",
    "--a \"b\" ",
    "---\n",
    "- - ",
    "a: ",
    "a: b: c\n",
    "a:\n",
    "\ta:\n",
    " a:\n",
    "a: \"\n",
    "? ",
    "&a ",
    "*a ",
    "- *a\n",
    "!t ",
    "| ",
    "a: |\n",
    "%",
    "@",
    "a@",
    "a.",
    "a.a ",
    "#",
    "# a\n",
    "#a ",
    "# a",
    "=",
    "a=",
    "|a|b|\n",
    "^a$",
    "*",
    "a*",
    "?",
    "**/",
    ":",
    ",",
    "a,\n",
    ";",
    "$",
    "&&",
    "||",
    "http://",
    "http://a.b/?a=",
    "a",
    "A",
    "0",
    "1",
    "7",
    "9",
    "f",
    "+",
    "0.",
    "1e",
    "9-",
    "9:",
    "9 ",
    "aB3",
    "a b ",
    "word\n",
    "the ",
    "ignore previous ",
    "a-",
    "a_",
    "é",
    "e\u0301",
    "\u0301",
    "🙂",
    "👩\u200D",
    "\u202E",
    "\u{E0061}",
    "İ",
    "ß",
    "한",
    "\0",
    "\e[31m"
  ]

  # A start that puts the rest into another state of the parser, and the piece that follows it.
  @after_starts [
    {"```cmd\nx \"", ["a", "\n", "```\n", "\\", "“", "<<E\n", "```a\n"]},
    {"```cmd\nx “", ["a", "“", "\n", "```a\n"]},
    {"```cmd\nx <<E\n", ["a\n", "\n", "E \n", "```\n"]},
    {"```cmd\n", ["x\n", "x \\\n", "# a\n", "x <<E\nE\n", "<<A <<B ", "x \"a\"\n"]},
    {"```a\n", ["```cmd\n", "a\n", "~~~\n"]},
    {"<cmd>x", [" ", "\n", "<", "\t"]},
    {"<think>", ["</", "<", " "]},
    {"1.", ["0", "9"]},
    {"1e", ["9", "-9"]},
    {"-", ["9", "0"]},
    {"0x", ["f", "9"]},
    {"{", ["9", "0"]},
    {"{\"a\":", ["9", "0."]},
    {"a: ", ["9", "0x9", "1e9", "2026-"]},
    {"2026-01-01T", ["0", "9:", "00:00:00.9"]},
    {"RRULE:FREQ=DAILY;COUNT=", ["9"]},
    {"RRULE:FREQ=DAILY\r\nEXDATE:", ["20260302T090000,", "20260302,"]},
    {"20260302T090000", [",20260302T090000", "/PT1H,20260302T090000"]},
    {"RRULE:FREQ=YEARLY", ["\r\nRRULE:FREQ=YEARLY", ";BYMONTH=2", ";BYMONTHDAY=30,30"]},
    {"FREQ=YEARLY;BYMONTHDAY=", ["1,", "-"]},
    {"Content-Length: ", ["9"]},
    {"{\"a\": \"", ["a", "\\\\", "\\n"]},
    {"{", ["\"a\":[{},", "\"a\": {"]},
    {"[", ["[],", "1,", "\"\","]},
    {"x ", ["\"a\" ", "--a 1 ", "{1}", "a=\"b\" ", "[{1}] "]},
    {"x --a ", ["“", "“a” ", "'", "\"a\"b", "{last} "]},
    {"# ", ["a ", "#", "# "]},
    {"<!--", ["-", "--", ">"]},
    {"## Flags\n\n", ["- `--a`: b\n", "--a ", "| `--a` | b |\n", "- `--a <a|b>` (required)\n"]},
    {"## Usage\n\n```\n", ["x [--a <b>] ", "x --a|", "[", "<a> "]},
    {"## Behavior\n\n```cmd\n", ["x {a}\n", "# name: a\nx\n", "x \"{1}\n"]},
    {"a: &a [", ["x,", "&b ", "[", "{a: "]},
    {"a: &a [x, x]\nb: [", ["*a,", "*a, "]},
    {"a: ", ["'", "\"\\x41", "\"", ": ", "{", "- "]},
    {"a: >\n", [" a\n", "\n", "  \n "]},
    {"a: |\n", [" a\n", "\t\n"]},
    {"* * ", ["* ", "*/5,", "1-5,"]},
    {"select ", ["?,", "'", "\"", "/*", "--\n", "$$", "(", "a,", ";"]}
  ]

  @doc "All texts: pairs of a name and a function from a size in bytes to the text of that size."
  @spec all :: [{String.t(), (pos_integer() -> String.t())}]
  def all do
    plain = for piece <- @pieces, do: {inspect(piece), &text("", piece, &1)}

    started =
      for {start, pieces} <- @after_starts,
          piece <- pieces,
          do: {"#{inspect(start)} <> #{inspect(piece)}", &text(start, piece, &1)}

    plain ++
      started ++
      [{"aliases", &aliases/1}, {"keys", &numbered("k#: v\n", &1)}] ++
      [
        {"flags", &("x " <> numbered("--f# v ", &1))},
        {"words", &numbered("word# ", &1)},
        {"anchors", &numbered("a#: &n# [x, x]\n", &1)},
        {"heredocs", &("x " <> numbered("<<E# ", &1))},
        {"nested lists", &nested("- a:\n", &1)},
        {"references", &numbered("{s#} ", &1)},
        {"paths", &numbered("[a](b/c#.md) ", &1)},
        {"blocks", &numbered("```cmd\nx --n #\n```\n", &1)},
        {"members", &("{" <> numbered(~s("k#":#,), &1))}
      ]
  end

  # Pieces of what flags are read as: numbers, times, zones, rules, addresses, globs and names.
  @values ["9", "-", "+", "0.", "1e", "9:", "9-", "9 ", "2026-01-01,", "T00:00", "monday "] ++
            ["every 2 weeks ", "FREQ=DAILY;", "BYDAY=MO,", "Europe/", "a@b.c, ", "<a@b.c>"] ++
            ["\"a\" <", "=?utf-8?q?", "a,", "a ", "a.", "*a", "#a ", "[", "{\"a\":", "\n", "é"] ++
            ["\u202E", "\"", "word\n"]

  @doc "The texts for values of flags, as `all/0`."
  @spec values :: [{String.t(), (pos_integer() -> String.t())}]
  def values, do: for(piece <- @values, do: {inspect(piece), &text("", piece, &1)})

  # At least one piece, and never more bytes than the size, unless the first piece has more.
  defp text(start, piece, size),
    do: start <> String.duplicate(piece, max(div(size - byte_size(start), byte_size(piece)), 1))

  defp numbered(piece, size), do: growing(size, &String.replace(piece, "#", "#{&1}"))

  # The pieces 1, 2, 3, … up to a size, at least the first.
  defp growing(size, piece) do
    1
    |> Stream.iterate(&(&1 + 1))
    |> Enum.reduce_while({"", 0}, fn n, {text, length} ->
      more = piece.(n)

      if length + byte_size(more) > size and n > 1,
        do: {:halt, {text, length}},
        else: {:cont, {text <> more, length + byte_size(more)}}
    end)
    |> elem(0)
  end

  # Each anchor's value has the one before twice: without a limit, twice as long with each line.
  defp aliases(size) do
    numbered("b#: &b# [*b, *b]\n", max(size - 20, 1))
    |> then(&Regex.replace(~r/&b(\d+) \[\*b, \*b\]/, &1, fn whole, n -> doubled(whole, n) end))
    |> then(&("b0: &b0 x\n" <> &1))
  end

  defp doubled(_whole, n) do
    before = String.to_integer(n) - 1
    "&b#{n} [*b#{before}, *b#{before}]"
  end

  defp nested(piece, size), do: growing(size, &(String.duplicate(" ", &1) <> piece))
end
