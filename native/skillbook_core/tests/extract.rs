//! Blocks: which fences hold commands, where they end, and which text remains for the user.

use skillbook_core::text::extract::{extract, steps, Event, Extractor, Unclosed};
use skillbook_core::text::words::split;

/// Case, reply, commands, text, incomplete commands.
type Row =
    (&'static str, &'static str, &'static [&'static str], &'static str, &'static [&'static str]);

fn check(rows: &[Row]) {
    for (case, reply, commands, text, incomplete) in rows {
        let found =
            extract(reply, Unclosed::Hold).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(found.commands, *commands, "{case}: commands");
        assert_eq!(found.text(), *text, "{case}: text");
        assert_eq!(found.incomplete, *incomplete, "{case}: incomplete");

        for command in &found.commands {
            let several =
                split(command).is_err_and(|error| error.kind().as_str() == "several_commands");
            assert!(!several, "{case}: the tokenizer reads several commands in {command:?}");
        }

        let (all, closed) = bytewise(reply);
        assert_eq!(all, [*commands, *incomplete].concat(), "{case}: commands byte by byte");
        assert_eq!(closed, commands.len(), "{case}: closed byte by byte");
    }
}

/// The commands of a reply that is fed byte by byte, and how many of them are in closed blocks.
fn bytewise(reply: &str) -> (Vec<String>, usize) {
    let mut extractor = Extractor::new(Unclosed::Hold);
    let mut events: Vec<_> =
        reply.bytes().flat_map(|byte| extractor.feed(&[byte]).unwrap()).collect();
    events.extend(extractor.finish().unwrap());
    let mut all = Vec::new();
    let mut closed = 0;
    for event in events {
        match event {
            Event::Command(command) => all.push(command.into_owned()),
            Event::Closed => closed = all.len(),
            Event::Text(_) | Event::Comment(_) | Event::Cut | Event::Hidden(_) => {}
        }
    }
    (all, closed)
}

#[test]
fn fences() {
    check(&[
        ("empty", "", &[], "", &[]),
        ("text alone", "Hello.", &[], "Hello.", &[]),
        ("a block alone", "```cmd\na\n```", &["a"], "", &[]),
        ("cmd in any case", "```CMD\na\n```\n```Cmd\nb\n```", &["a", "b"], "", &[]),
        ("cmd as a later word", "```sh cmd\na\n```", &[], "```sh cmd\na\n```", &[]),
        ("cmd as a part of a word", "```cmds\na\n```", &[], "```cmds\na\n```", &[]),
        ("words after cmd", "```cmd title=x\na\n```", &["a"], "", &[]),
        ("a comment on the fence's line", "```cmd # x\n```", &[], "", &[]),
        ("a prompt on the fence's line", "```cmd $ a\n```", &["a"], "", &[]),
        ("a command on the fence's line that is cut off", "```cmd a\n", &[], "", &["a"]),
        ("in a block quote", "> ```cmd\n> a\n> ```", &[], "> ```cmd\n> a\n> ```", &[]),
        (
            "tildes around backticks",
            "~~~cmd\na \"\n```\nx\n```\n\"\n~~~",
            &["a \"\n```\nx\n```\n\""],
            "",
            &[],
        ),
        ("a command on the fence's line", "```cmd a --b\n```", &["a --b"], "", &[]),
        ("and a comment below it", "```cmd a --b\n# c\n\n```", &["a --b"], "", &[]),
        ("tildes", "~~~cmd\na\n~~~", &["a"], "", &[]),
        ("two backticks", "``cmd\na\n``", &[], "``cmd\na\n``", &[]),
        ("a long fence", "`````cmd\na\n`````", &["a"], "", &[]),
        ("a shorter line does not close", "````cmd\na\n```\nb\n````", &["a", "```", "b"], "", &[]),
        ("a longer line closes", "```cmd\na\n`````", &["a"], "", &[]),
        ("another character does not close", "```cmd\na\n~~~\n```", &["a", "~~~"], "", &[]),
        ("blanks after the closing fence", "```cmd\na\n``` \t\nb", &["a"], "b", &[]),
        ("text after the closing fence", "```cmd\na\n``` b\n```", &["a", "``` b"], "", &[]),
        (
            "indentation is taken off",
            "1. Do:\n   ```cmd\n   a \"x\n     y\"\n   ```",
            &["a \"x\n  y\""],
            "1. Do:",
            &[],
        ),
        ("less indentation than the fence", "    ```cmd\n  a\n```", &["a"], "", &[]),
        ("text before a fence on its line", "x ```cmd\na\n", &[], "x ```cmd\na", &[]),
        (
            "inline code at the start of a line",
            "```cmd``` opens a block\nx",
            &[],
            "```cmd``` opens a block\nx",
            &[],
        ),
    ]);
}

#[test]
fn other_fences() {
    check(&[
        (
            "an example in a longer fence",
            "````markdown\n```cmd\na\n```\n````\n```cmd\nb\n```",
            &["b"],
            "````markdown\n```cmd\na\n```\n````",
            &[],
        ),
        ("an example in tildes", "~~~\n```cmd\na\n```\n~~~", &[], "~~~\n```cmd\na\n```\n~~~", &[]),
        (
            "a closed one does not hide the next",
            "```sh\nls\n```\n```cmd\na\n```",
            &["a"],
            "```sh\nls\n```",
            &[],
        ),
        ("one that never closes hides all", "```sh\n```cmd\na\n", &[], "```sh\n```cmd\na", &[]),
        (
            "a whole line in another fence",
            "~~~\n```cmd a```\n~~~",
            &[],
            "~~~\n```cmd a```\n~~~",
            &[],
        ),
    ]);
}

#[test]
fn other_fences_that_hide_commands() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("one that never closes", "é\n~~~sh\nls\n```cmd\na\n```", &["~~~sh\nls\n```cmd\na\n```"]),
        ("one of Markdown that never closes", "~~~md\n```cmd a```\n", &["~~~md\n```cmd a```\n"]),
        (
            "one that the fence of the commands closes",
            "```sh\nls\n```cmd\na\n```\nx",
            &["```sh\nls\n```cmd\na\n"],
        ),
        (
            "behind the mark of a list",
            "- ```sh\n  ````cmd\n  a\n  ````",
            &["- ```sh\n  ````cmd\n  a\n"],
        ),
        (
            "two",
            "```\n```cmd\na\n```\n```cmd\nb\n```\n```\n```cmd c```",
            &["```\n```cmd\na\n", "```\n```cmd c```"],
        ),
        ("an example in Markdown", "```Markdown x\n```cmd\na\n```", &[]),
        ("an example in a longer fence", "````sh\n```cmd\na\n```\n````", &[]),
        ("an example in another fence", "~~~\n```cmd\na\n```\n~~~", &[]),
        ("an example on one line", "```sh\n```cmd a```\n```", &[]),
        ("nothing but code", "```sh\nls", &[]),
        ("a block of another language", "~~~\n```sh\nls", &[]),
        ("a thought", "<think>\n~~~\n```cmd\na", &[]),
    ];
    for (case, reply, expected) in rows {
        let found = extract(reply, Unclosed::Hold).unwrap();
        let hidden: Vec<_> = found.hidden.iter().map(|range| &reply[range.clone()]).collect();
        assert_eq!(hidden, *expected, "{case}");
    }
}

#[test]
fn one_line_blocks() {
    check(&[
        ("a whole block", "```cmd tasks.search --overdue```", &["tasks.search --overdue"], "", &[]),
        ("with blanks", "x\n  ```cmd  a b  ```  \ny", &["a b"], "x\n\ny", &[]),
        ("tildes", "~~~cmd a~~~", &["a"], "", &[]),
        ("a comment", "```cmd # a```", &[], "", &[]),
        ("no command", "```cmd```", &[], "```cmd```", &[]),
        ("a shorter closing fence", "````cmd a```\n", &[], "````cmd a```", &[]),
        ("inline code in it", "```cmd a \"`b`\"```", &["a \"`b`\""], "", &[]),
        (
            "two of them in a text",
            "```cmd a``` or ```cmd b```",
            &[],
            "```cmd a``` or ```cmd b```",
            &[],
        ),
        ("in a list", "1. x\n   ```cmd a```\n2. y", &["a"], "1. x\n\n2. y", &[]),
        ("inside an open block", "```cmd\na\n```cmd b```\nc", &["a", "b"], "c", &[]),
    ]);
}

#[test]
fn lines() {
    check(&[
        ("several commands", "```cmd\na\nb\n```", &["a", "b"], "", &[]),
        ("blank lines and comments", "```cmd\n\n# x\n  #y\na #z\n \t\n```", &["a #z"], "", &[]),
        ("an empty block", "x\n```cmd\n```\ny", &[], "x\n\ny", &[]),
        ("a dollar prompt", "```cmd\n$ a\n```", &["a"], "", &[]),
        ("an angle prompt", "```cmd\n> a\n```", &["a"], "", &[]),
        (
            "one prompt of two is dropped, by the tokenizer",
            "```cmd\n$ $ a\n```",
            &["$ $ a"],
            "",
            &[],
        ),
        (
            "an object behind two prompts",
            "```cmd\n$ $ {\"a\": 1, '\n}\n'\n```",
            &["$ $ {\"a\": 1, '\n}", "'"],
            "",
            &[],
        ),
        ("a comment behind a carriage return", "```cmd\na\n\r# '\nb\n```", &["a", "b"], "", &[]),
        ("no blank, no prompt", "```cmd\n$a\n```", &["$a"], "", &[]),
        ("a comment behind a prompt", "```cmd\n$ # a\n```", &[], "", &[]),
        ("a backslash joins", "```cmd\na \\\n  --b\nc\n```", &["a \\\n  --b", "c"], "", &[]),
        ("a backslash and blanks join", "```cmd\na \\ \n --b\n```", &["a \\ \n --b"], "", &[]),
        ("an escaped backslash does not", "```cmd\na \\\\\nb\n```", &["a \\\\", "b"], "", &[]),
        ("a dangling backslash", "```cmd\na \\\n```", &["a \\"], "", &[]),
        ("a quote goes on", "```cmd\na \"x\ny\" z\nb\n```", &["a \"x\ny\" z", "b"], "", &[]),
        ("a quote that holds a comment", "```cmd\na \"x\n# y\"\n```", &["a \"x\n# y\""], "", &[]),
        ("an apostrophe does not", "```cmd\na what's\nb\n```", &["a what's", "b"], "", &[]),
        (
            "CRLF",
            "x\r\n```cmd\r\na \"b\r\nc\"\r\nd\r\n```\r\ny\r\nz",
            &["a \"b\nc\"", "d"],
            "x\n\ny\nz",
            &[],
        ),
        ("a byte order mark", "\u{feff}```cmd\na\n```\nb", &["a"], "b", &[]),
        ("and no block", "\u{feff}a", &[], "a", &[]),
        ("elsewhere it is a character", "a\n\u{feff}```cmd\nb", &[], "a\n\u{feff}```cmd\nb", &[]),
        ("a lone CR is text", "x\ry", &[], "x\ry", &[]),
    ]);
}

#[test]
fn quotes_and_fences() {
    check(&[
        (
            "a code block in a quote",
            "```cmd\na \"x\n```elixir\ny\n```\nz\"\nb\n```\nend",
            &["a \"x\n```elixir\ny\n```\nz\"", "b"],
            "end",
            &[],
        ),
        (
            "quotes in that code",
            "```cmd\na \"x\n```elixir\nIO.puts(\"y\")\n```\n\"\n```",
            &["a \"x\n```elixir\nIO.puts(\"y\")\n```\n\""],
            "",
            &[],
        ),
        (
            "the quote closes behind its fence",
            "```cmd\na \"x\n```py\ny\n```\" --b\nc\n```",
            &["a \"x\n```py\ny\n```\" --b", "c"],
            "",
            &[],
        ),
        (
            "the fence on the line of its quote",
            "```cmd\na \"```py\ny\n```\nz\"\n```",
            &["a \"```py\ny\n```\nz\""],
            "",
            &[],
        ),
        (
            "a cmd example nested in a markdown block",
            "```cmd\na \"\n~~~markdown\n```cmd\nx\n```\n~~~\n\"\n```",
            &["a \"\n~~~markdown\n```cmd\nx\n```\n~~~\n\""],
            "",
            &[],
        ),
        (
            "a bare fence closes the block of a forgotten quote",
            "```cmd\na \"x\n```\ntext\n```cmd\nb\n```",
            &["a \"x", "b"],
            "text",
            &[],
        ),
        (
            "a cmd fence closes the block of a forgotten quote",
            "```cmd\na \"x\n```cmd\nb\n```",
            &["a \"x", "b"],
            "",
            &[],
        ),
        (
            "a nested block that never closes is text",
            "```cmd\na 'x\n```py\ny'\nb",
            &[],
            "",
            &["a 'x\n```py\ny'", "b"],
        ),
    ]);
}

#[test]
fn curly_quotes() {
    check(&[
        ("closed on the line", "```cmd\na “x y”\nb\n```", &["a “x y”", "b"], "", &[]),
        ("closed on a later line", "```cmd\na “x\ny” z\nb\n```", &["a “x\ny” z", "b"], "", &[]),
        ("without a partner", "```cmd\na “x\nb\n```", &["a “x", "b"], "", &[]),
        (
            "the partner stands outside the block",
            "```cmd\na “x\nb\n```\n”",
            &["a “x", "b"],
            "”",
            &[],
        ),
        (
            "the next command has its own pair",
            "```cmd\na “x\nb “y”\n```",
            &["a “x", "b “y”"],
            "",
            &[],
        ),
        (
            "a quote behind one without a partner",
            "```cmd\na “x \"y\nz\"\nb\n```",
            &["a “x \"y\nz\"", "b"],
            "",
            &[],
        ),
        (
            "without a partner, found out lines later",
            "```cmd\na “x\nb\nc “““““““““\nd\n```",
            &["a “x", "b", "c “““““““““", "d"],
            "",
            &[],
        ),
        (
            "a partner behind a nested block that never closes",
            "```cmd\na --b=“x\n~~~py\ny” z\nb\n```",
            &["a --b=“x\n~~~py\ny” z", "b"],
            "",
            &[],
        ),
        (
            "only a block's end shows that the partner is none",
            "  ```cmd\n  a “\\\n~~~py\"$(cat <<E\n”\n1. \n```cmd a```\n~~~",
            &["a “\\\n~~~py\"$(cat <<E\n”", "a"],
            "~~~",
            &[],
        ),
        (
            "fences nest again behind one without a partner",
            "```cmd\na “x \"\n~~~py\n\"\n~~~\n\"\nb\n```",
            &["a “x \"\n~~~py\n\"\n~~~\n\"", "b"],
            "",
            &[],
        ),
        ("neither closes", "```cmd\na “x\n~~~py\nb\n```", &["a “x", "~~~py", "b"], "", &[]),
        ("a curly apostrophe", "```cmd\na it’s\nb\n```", &["a it’s", "b"], "", &[]),
        (
            "a single pair with an apostrophe",
            "```cmd\na ‘it’s\nso’ b\n```",
            &["a ‘it’s\nso’ b"],
            "",
            &[],
        ),
    ]);
}

#[test]
fn many_failing_guesses() {
    // A code block that is never closed is text, however many there are. A curly quote pairs only
    // on its own line.
    let block = "```cmd\na \"\n~~~py\n\"\nb “x y”\nc “z\n```\n";
    let text = block.repeat(1_000);
    let found = extract(&text, Unclosed::Hold).unwrap();
    assert_eq!(found.commands.len(), 3_000);
    for commands in found.commands.chunks(3) {
        assert_eq!(commands, ["a \"\n~~~py\n\"", "b “x y”", "c “z"]);
    }
    let line = format!("a {}", "“x ".repeat(1_000));
    assert_eq!(skillbook_core::text::words::split(&line).unwrap().len(), 1_001);
}

#[test]
fn heredocs() {
    check(&[
        ("a heredoc", "```cmd\na <<EOF\nx\nEOF\nb\n```", &["a <<EOF\nx\nEOF", "b"], "", &[]),
        (
            "its end line in another word",
            "```cmd\na <<EOF\nEOF!\n EOF\nEOF\n```",
            &["a <<EOF\nEOF!\n EOF\nEOF"],
            "",
            &[],
        ),
        (
            "two of them",
            "```cmd\na <<A <<B\n1\nA\n2\nB\nb\n```",
            &["a <<A <<B\n1\nA\n2\nB", "b"],
            "",
            &[],
        ),
        ("quotes in it", "```cmd\na <<E\n\"\nE\nb\n```", &["a <<E\n\"\nE", "b"], "", &[]),
        (
            "fences in it",
            "```cmd\na <<E\n```\nx\n```\nE\nb\n```",
            &["a <<E\n```\nx\n```\nE", "b"],
            "",
            &[],
        ),
        (
            "a code block in it",
            "```cmd\na <<E\n```py\nx\n```\nE\nb\n```\ny",
            &["a <<E\n```py\nx\n```\nE", "b"],
            "y",
            &[],
        ),
        (
            "without an end line the fence closes",
            "```cmd\na <<E\nx\n```\ntext\n```cmd\nb\n```",
            &["a <<E\nx", "b"],
            "text",
            &[],
        ),
        (
            "without an end line to the end of the text",
            "```cmd\na <<E\nx\n```\ntext\n\nmore",
            &["a <<E\nx"],
            "text\n\nmore",
            &[],
        ),
        (
            "the end line stands behind the next cmd fence",
            "```cmd\na <<E\nx\n```\n```cmd\nb <<E\ny\nE\n```",
            &["a <<E\nx", "b <<E\ny\nE"],
            "",
            &[],
        ),
        (
            "an example of a block",
            "```cmd\na <<E\n```cmd\nb\n```\nE\nc\n```",
            &["a <<E\n```cmd\nb\n```\nE", "c"],
            "",
            &[],
        ),
        (
            "an example on one line",
            "```cmd\na <<E\n```cmd b```\nE\nc\n```",
            &["a <<E\n```cmd b```\nE", "c"],
            "",
            &[],
        ),
        (
            "a forgotten end line behind an example",
            "```cmd\na <<E\n```cmd\nb\n```\n```\nx\n```cmd\nc\n```",
            &["a <<E\n```cmd\nb\n```", "c"],
            "x",
            &[],
        ),
        // It may be an example that was cut off.
        (
            "a forgotten fence as well",
            "```cmd\na <<E\nx\n```cmd\nb\n```",
            &[],
            "",
            &["a <<E\nx\n```cmd\nb\n```"],
        ),
        (
            "a forgotten end line behind a code block",
            "```cmd\na <<E\n```py\nx\n```\n```\ntext\n```cmd\nb\n```",
            &["a <<E\n```py\nx\n```", "b"],
            "text",
            &[],
        ),
        (
            "a cmd example in a code block in it",
            "```cmd\na <<E\n````md\n```cmd\nx\n```\n````\nE\n```",
            &["a <<E\n````md\n```cmd\nx\n```\n````\nE"],
            "",
            &[],
        ),
        (
            "indented with its block",
            "  ```cmd\n  a <<E\n    x\n  E\n  ```",
            &["a <<E\n  x\nE"],
            "",
            &[],
        ),
        (
            "the second of two has no end",
            "```cmd\na <<A <<B\n1\nA\n2\n```\ntext\n```cmd\nb\n```",
            &["a <<A <<B\n1\nA\n2", "b"],
            "text",
            &[],
        ),
        (
            "with a quote over lines and a joined one",
            "```cmd\na <<E \"b\nc\" \\\n --d\n```\nE\nf\n```",
            &["a <<E \"b\nc\" \\\n --d\n```\nE", "f"],
            "",
            &[],
        ),
        (
            "a curly quote without a partner before it",
            "```cmd\na “b <<E\n```\n```\nE\nc\n```",
            &["a “b <<E\n```\n```\nE", "c"],
            "",
            &[],
        ),
        (
            "its partner inside, behind a fence that closes the block",
            "```cmd\na “b <<E\n```\n”\nE\nc",
            &["a “b <<E"],
            "”\nE\nc",
            &[],
        ),
        (
            "its partner inside, behind an example of a block",
            "```cmd\na “b <<E\n```cmd\nc\n```\n”\nE\nd\n```",
            &["a “b <<E\n```cmd\nc\n```\n”\nE", "d"],
            "",
            &[],
        ),
        ("its partner inside", "```cmd\na “b <<E\n”\nc\n```", &["a “b <<E\n”", "c"], "", &[]),
        (
            "its block is indented more than its end line",
            "   ```cmd\n   a <<E\n  x\nE\n   b\n   ```",
            &["a <<E\nx\nE", "b"],
            "",
            &[],
        ),
        (
            "quotes, code and a heredoc, indented and CRLF",
            concat!(
                " ```cmd\r\n",
                " a \"\r\n",
                " ```py\r\n",
                "  y(\"\")\r\n",
                " ```\r\n",
                "\" <<E\r\n",
                " ```\r\n",
                " E\r\n",
                " b\r\n",
                " ```\r\n",
                "end",
            ),
            &["a \"\n```py\n y(\"\")\n```\n\" <<E\n```\nE", "b"],
            "end",
            &[],
        ),
        ("no word, no heredoc", "```cmd\na 1 << 2\nb <<\n```", &["a 1 << 2", "b <<"], "", &[]),
    ]);
}

#[test]
fn fences_behind_the_mark_of_a_list() {
    check(&[
        ("a bullet", "x\n- ```cmd\n  a \"b\n    c\"\n  ```\ny", &["a \"b\n  c\""], "x\n\ny", &[]),
        ("a number", "1. ```cmd\n   a\n   ```\n2) ~~~cmd\n   b\n   ~~~", &["a", "b"], "", &[]),
        ("indented", "  *  ```cmd\n     a\n     ```", &["a"], "", &[]),
        (
            "another fence there closes too",
            "- ```json\n  {}\n  ```\n\n```cmd\na\n```",
            &["a"],
            "- ```json\n  {}\n  ```",
            &[],
        ),
        ("no blank behind the mark", "-```cmd\na", &[], "-```cmd\na", &[]),
        ("no mark", "a. ```cmd\nb", &[], "a. ```cmd\nb", &[]),
        ("a number too long", "1234567890. ```cmd\na", &[], "1234567890. ```cmd\na", &[]),
        ("two marks", "- - ```cmd\na", &[], "- - ```cmd\na", &[]),
        ("text behind the mark", "- x ```cmd\na", &[], "- x ```cmd\na", &[]),
        ("numbers that are text", "12. x\n34 y\n5", &[], "12. x\n34 y\n5", &[]),
    ]);
}

#[test]
fn thoughts() {
    check(&[
        (
            "a draft does not run",
            "<think>\n```cmd\na\n```\n</think>\n\n```cmd\nb\n```\nc",
            &["b"],
            "<think>\n```cmd\na\n```\n</think>\n\nc",
            &[],
        ),
        (
            "behind blanks",
            "\n <thinking>\n```cmd\na\n```\n</thinking>",
            &[],
            "<thinking>\n```cmd\na\n```\n</thinking>",
            &[],
        ),
        ("never ends", "<think>\n```cmd\na\n```\n", &[], "<think>\n```cmd\na\n```", &[]),
        (
            "a fence left open in it",
            "<think>```sh</think>\n```cmd\na\n```",
            &["a"],
            "<think>```sh</think>",
            &[],
        ),
        (
            "its end is of the same kind",
            "<think></thinking>\n```cmd\na\n```",
            &[],
            "<think></thinking>\n```cmd\na\n```",
            &[],
        ),
        ("only at the start", "x <think>\n```cmd\na\n```", &["a"], "x <think>", &[]),
        (
            "once",
            "<think></think>\n<think>\n```cmd\na\n```",
            &["a"],
            "<think></think>\n<think>",
            &[],
        ),
        ("another tag", "<thinks>\n```cmd\na\n```", &["a"], "<thinks>", &[]),
        ("a part of the tag", "<thin", &[], "<thin", &[]),
        ("CRLF", "<think>\r\na\r\n</think>\r\n", &[], "<think>\na\n</think>", &[]),
    ]);
}

#[test]
fn json_over_lines() {
    check(&[
        (
            "an object",
            "```cmd\na {\n  \"b\": \"}\"\n}\nc\n```",
            &["a {\n  \"b\": \"}\"\n}", "c"],
            "",
            &[],
        ),
        ("never closed", "```cmd\na {\nb\n```\nx", &["a {\nb"], "x", &[]),
        ("a call", "```cmd\n{\n\"b\": 1\n}\nc\n```", &["{\n\"b\": 1\n}", "c"], "", &[]),
        ("a later word", "```cmd\na b {\nc\n```", &["a b {", "c"], "", &[]),
        (
            "a substitution",
            "```cmd\na \"$(cat <<E\n```\nE\n)\" b\nc\n```",
            &["a \"$(cat <<E\n```\nE\n)\" b", "c"],
            "",
            &[],
        ),
        ("not closed", "```cmd\na \"$(cat <<E\nE\nb\n```\nx", &["a \"$(cat <<E\nE\nb"], "x", &[]),
    ]);
}

#[test]
fn unclosed_blocks() {
    check(&[
        ("cut after a command", "x\n```cmd\na\nb", &[], "x", &["a", "b"]),
        ("cut inside a quote", "```cmd\na \"x\ny", &[], "", &["a \"x\ny"]),
        ("cut inside a heredoc", "```cmd\na <<E\nx\n", &[], "", &["a <<E\nx"]),
        ("only the last block is cut", "```cmd\na\n```\n```cmd\nb\n", &["a"], "", &["b"]),
        ("cut right after the fence", "```cmd", &[], "", &[]),
        ("the next cmd fence closes", "```cmd\na\n```cmd\nb\n```", &["a", "b"], "", &[]),
    ]);
    let run = |reply| extract(reply, Unclosed::Run).unwrap();
    assert_eq!(run("```cmd\na\nb").commands, ["a", "b"]);
    assert_eq!(run("```cmd\na\nb").incomplete, [""; 0]);
    assert_eq!(run("x\n```cmd").text(), "x");
}

#[test]
fn the_text_for_the_user() {
    check(&[
        ("the ends are trimmed", " \n x \n\n", &[], "x", &[]),
        (
            "the gap closes to one blank line",
            "x\n\n\n```cmd\na\n```\n\n\n\ny",
            &["a"],
            "x\n\ny",
            &[],
        ),
        ("a gap where there was no blank line", "x\n```cmd\na\n```\ny", &["a"], "x\n\ny", &[]),
        (
            "two blocks leave one gap",
            "x\n```cmd\na\n```\n\n```cmd\nb\n```\ny",
            &["a", "b"],
            "x\n\ny",
            &[],
        ),
        ("other blank lines stay", "x\n\n\ny\n```cmd\na\n```", &["a"], "x\n\n\ny", &[]),
        ("indentation after a gap stays", "- x\n```cmd\na\n```\n  y", &["a"], "- x\n\n  y", &[]),
        ("a block first", "```cmd\na\n```\n\n  y", &["a"], "y", &[]),
        ("not only ASCII", "Grüße\n```cmd\na\n```\n…", &["a"], "Grüße\n\n…", &[]),
    ]);
}

#[test]
fn unchanged_text_is_borrowed() {
    use std::borrow::Cow::Borrowed;
    let found = extract("x\n```cmd\na \"b\nc\" <<E\nd\nE\n```\n", Unclosed::Hold).unwrap();
    assert!(matches!(found.commands[0], Borrowed(_)));
    assert!(matches!(found.pieces[..], [Borrowed("x")]));
    let text = "x\n```sh\ny\n```\n\n`z`";
    let found = extract(text, Unclosed::Hold).unwrap();
    assert!(matches!(found.pieces[..], [Borrowed(piece)] if piece == text));
}

#[test]
fn limits() {
    // In one block, in blocks of a line each, on one line, and after `cmd`.
    let replies: [fn(usize) -> String; 4] = [
        |count| format!("```cmd\n{}```", "a\n".repeat(count)),
        |count| "```cmd\na\n```\n".repeat(count),
        |count| "```cmd a```\n".repeat(count),
        |count| "```cmd a\n```\n".repeat(count),
    ];
    for reply in replies {
        assert_eq!(extract(&reply(10_000), Unclosed::Hold).unwrap().commands.len(), 10_000);
        let error = extract(&reply(10_001), Unclosed::Hold).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a reply may have 10000 commands, and this one has more\n\
             hint: write fewer commands in a reply, and continue when their results are back"
        );
        let mut stream = Extractor::new(Unclosed::Hold);
        assert_eq!(stream.feed(reply(10_001).as_bytes()).unwrap_err(), error);
    }
    assert!(extract(&"x".repeat(16 << 20), Unclosed::Hold).is_ok());
    let error = extract(&"x".repeat((16 << 20) + 1), Unclosed::Hold).unwrap_err();
    assert_eq!(error.kind().as_str(), "text_too_large");
}

/// Text; the name and the line of each command.
type NamedRow = (&'static str, &'static [(Option<&'static str>, &'static str)]);

#[test]
fn comments_name_the_commands_of_a_text_that_is_run() {
    let rows: &[NamedRow] = &[
        ("```cmd\n# name: a\nx.y\n```", &[(Some("a"), "x.y")]),
        (
            "```cmd\n  #  NAME:  a b  \n\n# more\nx.y\nx.z\n```",
            &[(Some("a b"), "x.y"), (None, "x.z")],
        ),
        ("```cmd\n# name: a\n# name: b\nx.y\n```", &[(Some("b"), "x.y")]),
        (
            "1. One:\n\n   ```cmd\n   # name: a\n   x.y \"b\n   # name: c\n   d\"\n   ```",
            &[(Some("a"), "x.y \"b\n# name: c\nd\"")],
        ),
        (
            "```cmd\nx.y <<E\n# name: a\nE\nx.z\n```",
            &[(None, "x.y <<E\n# name: a\nE"), (None, "x.z")],
        ),
        ("```cmd\nx.y “b\n# name: a\n```\n```cmd\nx.z\n```", &[(None, "x.y “b"), (None, "x.z")]),
        ("```cmd\n# name: a\n```\n```cmd\nx.y\n```", &[(None, "x.y")]),
        ("```cmd\n# names: a\nx.y\n```\n# name: b", &[(None, "x.y")]),
        ("```cmd\nx.y\n```\n```cmd\nx.z", &[(None, "x.y")]),
        ("# name: a\nx.y", &[]),
    ];
    for (text, expected) in rows {
        let steps = steps(text).unwrap();
        let found: Vec<_> = steps.lines.iter().map(|line| (line.name, &*line.line)).collect();
        assert_eq!(found, *expected, "{text}");
    }
}

#[test]
fn text_below_the_last_commands_is_kept() {
    let rows = [
        ("```cmd\nx.y\n```\nSum it up.\n\n- briefly\n", "Sum it up.\n\n- briefly"),
        ("First:\n\n```cmd\nx.y\n```\n\nThen:\n\n```cmd\nx.z\n```\n\nSum it up.", "Sum it up."),
        ("```cmd\nx.y\n```\nNow\n```sh\nls\n```\nDone.", "Now\n```sh\nls\n```\nDone."),
        ("```cmd\nx.y\n```\nOne\n```cmd\n# nothing\n```\nTwo", "One\n\nTwo"),
        ("```cmd\nx.y\n```\nOne\n```cmd\nx.z", "One"),
        ("First\n```cmd\nx.y\n```", ""),
        ("Sum it up.", ""),
    ];
    for (text, expected) in rows {
        assert_eq!(steps(text).unwrap().rest.trim(), expected, "{text}");
    }
}
