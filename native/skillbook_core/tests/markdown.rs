//! Markdown as HTML: tables of rules, and properties over all texts.

use checker::check;
use proptest::prelude::*;
use skillbook_core::markdown::{html, MAX_HTML, MAX_TEXT};

#[path = "common/html.rs"]
mod checker;

fn shown(text: &str) -> String {
    let (html, whole) = html(text, "/files/");
    assert!(whole, "{text:?}");
    check(&html).unwrap_or_else(|error| panic!("{error}\n{text:?}\n{html}"));
    html.trim_end().replace(" rel=\"noreferrer nofollow\"", "")
}

#[test]
fn blocks() {
    let rows = [
        ("# a", "<h2>a</h2>"),
        ("###### a", "<h6>a</h6>"),
        ("a\nb", "<p>a\nb</p>"),
        ("a  \nb", "<p>a<br>\nb</p>"),
        ("---", "<hr>"),
        ("> a", "<blockquote>\n<p>a</p>\n</blockquote>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("3. a", "<ol start=\"3\">\n<li>a</li>\n</ol>"),
        ("- [x] a\n- [ ] b", "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>"),
        (
            "|a|b|\n|:-:|-:|\n|1|2|",
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\" \
             class=\"center\">a</th><th scope=\"col\" class=\"right\">b</th></tr></thead>\n<tr><td \
             class=\"center\">1</td><td class=\"right\">2</td></tr>\n</table></div>",
        ),
        (
            "```rust\na<b\n```",
            "<pre tabindex=\"0\"><code class=\"language-rust\">a&lt;b\n</code></pre>",
        ),
        ("```\"><b>\na\n```", "<pre tabindex=\"0\"><code>a\n</code></pre>"),
        ("*a* **b** ~~c~~ `d`", "<p><em>a</em> <strong>b</strong> <del>c</del> <code>d</code></p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("a <img src=x onerror=y>", "<p>a &lt;img src=x onerror=y&gt;</p>"),
        ("a\u{202E}b", "<p>a\\u{202E}b</p>"),
        ("[^1]\n\n[^1]: a", "<p><a href=\"/files/a\">^1</a></p>"),
    ];
    for (text, expected) in rows {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn links() {
    let rows = [
        ("https://a.test/?b&c", Some("https://a.test/?b&amp;c")),
        ("HTTP://a.test", Some("HTTP://a.test")),
        ("mailto:a@b.test", Some("mailto:a@b.test")),
        ("references/a.md#b", Some("/files/references/a.md#b")),
        ("./a.md", Some("/files/a.md")),
        ("<a b.md>", Some("/files/a%20b.md")),
        ("é.md", Some("/files/%C3%A9.md")),
        ("javascript:alert(1)", None),
        ("JaVaScRiPt:alert", None),
        ("&#106;avascript:alert", None),
        ("<java\tscript:alert>", None),
        ("<\u{1}javascript:alert>", None),
        ("data:text/html,a", None),
        ("vbscript:a", None),
        ("file:///etc/passwd", None),
        ("//a.test", None),
        ("/logout", None),
        ("\\\\\\\\a.test", Some("/files/%5C%5Ca.test")),
        ("../other", None),
        ("a/../../other", None),
        ("a/%2e%2E/other", None),
        (".%2e/other", None),
        ("a//b", None),
        ("#a", None),
        ("?as=b", None),
        ("<>", None),
        ("a.md?as=b", Some("/files/a.md?as=b")),
    ];
    for (address, expected) in rows {
        let link = match expected {
            Some(address) => format!("<p><a href=\"{address}\">x</a></p>"),
            None => "<p>x</p>".to_owned(),
        };
        assert_eq!(shown(&format!("[x]({address})")), link, "{address}");
    }
    assert_eq!(html("[x](a.md)", "").0, "<p>x</p>\n");
    assert_eq!(shown("<a@b.test>"), "<p><a href=\"mailto:a@b.test\">a@b.test</a></p>");
    let image = "<p><a href=\"https://a.test\"><span class=\"image\">Image</span> b</a></p>";
    assert_eq!(shown("![b](https://a.test)"), image);
    assert_eq!(
        shown("[![b](https://a.test)](https://b.test)"),
        "<p><a href=\"https://b.test\">b</a></p>"
    );
}

#[test]
fn deep_nesting_ends() {
    for text in [">".repeat(5_000) + "a", "- ".repeat(5_000) + "a", "*a ".repeat(5_000), {
        "![".repeat(3_000) + &"](b)".repeat(3_000)
    }] {
        let (html, _) = html(&text, "/files/");
        check(&html).unwrap();
        assert!(depth(&html) <= 40);
    }
    let table = ["> ".repeat(29), "|a|\n".into(), "> ".repeat(29), "|-|\n".into()].concat();
    check(&html(&table, "").0).unwrap();
}

/// A list or a table is shown with all of its parts, or as text.
#[test]
fn nesting_ends_at_a_whole_element() {
    for level in 0..40 {
        let quotes = ">".repeat(level);
        for lines in [["- one", "- two", ""], ["7. one", "8. two", ""], ["|one|", "|-|", "|two|"]] {
            let text: String = lines.map(|line| format!("{quotes}{line}\n")).concat();
            let (html, _) = html(&text, "");
            check(&html).unwrap_or_else(|error| panic!("{error}\n{text}\n{html}"));
            assert!(html.contains("one") && html.contains("two"), "{text}\n{html}");
        }
    }
}

/// Texts on which some renderers take quadratic time, or write without limit.
#[test]
fn long_texts_end() {
    let wide =
        format!("{}|\n{}|\n{}", "|a".repeat(40_000), "|-".repeat(40_000), "|\n".repeat(400_000));
    let references =
        format!("[a]: https://a.test/{}\n\n{}", "b".repeat(300_000), "[a] ".repeat(100_000));
    let texts = [
        wide,
        references,
        ">".repeat(MAX_TEXT),
        "[".repeat(MAX_TEXT),
        "![".repeat(MAX_TEXT / 2),
        "[a](".repeat(MAX_TEXT / 4),
        "*a_ ".repeat(MAX_TEXT / 4),
        "<".repeat(MAX_TEXT),
        "<!--".repeat(MAX_TEXT / 4),
        "<?".repeat(MAX_TEXT / 2),
        "`a".repeat(MAX_TEXT / 2),
        "&".repeat(MAX_TEXT),
        "- ".repeat(MAX_TEXT / 2),
        "\u{202E}".repeat(MAX_TEXT / 4),
        "~~~\n".repeat(MAX_TEXT / 4),
        "a\n".repeat(MAX_TEXT),
    ];
    for text in texts {
        let (html, _) = html(&text, "/files/");
        assert!(html.len() <= MAX_HTML + MAX_TEXT * 6, "{}", &text[..40]);
        check(&html).unwrap_or_else(|error| panic!("{error}: {}", &text[..40]));
    }
    assert!(!html(&"a".repeat(MAX_TEXT + 1), "").1);
    assert!(html(&"a".repeat(MAX_TEXT), "").1);
}

fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => prop::sample::select(vec![
            "# ", "> ", "- ", "1. ", "- [ ] ", "\n", "\n\n", "    ", "```\n", "```js\n", "~~~", "`",
            "*", "**", "_", "~~", "[", "](", ")", "![", "](javascript:a)", "](https://a.test)",
            "](a.md)", "](../a)", "<", ">", "<script>", "</script>", "<img src=x onerror=y>",
            "<!--", "-->", "<a@b.test>", "<https://a.test>", "|a|b|\n|-|-|\n|", "|", "&lt;", "&#0;",
            "&", "\"", "'", "\\", "[a]: javascript:b\n", "[a]", "\u{202E}", "\0", "\r\n", "---\n",
            "***\n", "<div>\n", "\t", "a", "é", "[^1]", "[^1]: ", "$$", "^a^", "::: ",
        ]).prop_map(String::from),
        1 => "[ -~]{0,8}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn only_known_tags(text in texts(), files in prop::sample::select(vec!["", "/a%20b/"])) {
        let (html, whole) = html(&text, files);
        prop_assert!(whole);
        check(&html).map_err(|error| TestCaseError::fail(format!("{error}\n{html}")))?;
    }
}

fn depth(html: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        if tag.starts_with('/') {
            depth -= 1;
        } else if !tag.starts_with("br") && !tag.starts_with("hr") {
            depth += 1;
        }
        most = most.max(depth);
    }
    most
}
