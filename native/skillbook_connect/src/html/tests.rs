use super::markdown::html;
use super::{text, Text};

fn shows(source: &str) -> String {
    text(source).text
}

#[test]
fn shows_text() {
    let rows = [
        ("", ""),
        ("plain  text\n here", "plain text here"),
        ("<p>one</p><p>two<br>three</p>", "one\n\ntwo\nthree"),
        ("<div>one<div>two</div></div>three", "one\ntwo\nthree"),
        ("a<b>b</b> <i>c</i>&nbsp;&amp; d", "ab c & d"),
        ("<h1>Head</h1>text", "Head\n\ntext"),
        ("<ul><li>one<li>two<ol start=3><li>x<li>y</ol></ul>", "- one\n- two\n  3. x\n  4. y"),
        ("<blockquote>one<p>two</blockquote>three", "> one\n>\n> two\n\nthree"),
        ("<pre>a\n  b\n\nc</pre>", "a\n  b\n\nc"),
        ("<img src=x alt='The logo'>", "[image: The logo]"),
        ("<img src=x><img src=y alt=''>a", "a"),
        ("one<hr>two", "one\n----\ntwo"),
        ("<title>t</title><style>s</style><script>x</script>a<noscript>b</noscript>", "ab"),
        ("<select><option>a<option>b</select>", "a\nb"),
        // Data in tables, and tables that arrange a page.
        (
            "<table><tr><th>Name<th>Sum</tr><tr><td>Ann<td>1<br>2</tr><tr><td><td>3</tr></table>x",
            "Name | Sum\nAnn | 1\n2\n| 3\n\nx",
        ),
        ("<table><tr><td><div>one</div></td><td>two</td></tr></table>", "one\ntwo"),
        ("<table><tr><td>one</tr><tr><td>two</tr></table>", "one\ntwo"),
        // Links, each address once.
        ("<a href='https://a.b/c'>Read</a>", "Read (https://a.b/c)"),
        (
            "<a href='https://a.b/c'>one</a> <a href='https://a.b/c'>two</a>",
            "one (https://a.b/c) two",
        ),
        ("<a href='https://a.b/'>a.b</a>", "a.b"),
        ("<a href='https://a.b'>https://A.b/</a>", "https://A.b/"),
        (
            "<a href='http://evil.example'>https://bank.example</a>",
            "https://bank.example (http://evil.example)",
        ),
        ("<a href='mailto:ann@example.com'>ann@example.com</a>", "ann@example.com"),
        ("<a href='mailto:eve@example.com'>Ann</a>", "Ann (mailto:eve@example.com)"),
        ("<a href='javascript:alert(1)'>a</a><a href='data:x'>b</a><a href='/c'>c</a>", "abc"),
        (
            "<a href=' java\nscript:x'>a</a><a href=' HT\ntps://a.b/ c'>b</a>",
            "ab (HTtps://a.b/%20c)",
        ),
        ("<a href='https://a.b/c'><img src=x alt=Logo></a>", "[image: Logo] (https://a.b/c)"),
        ("<a href='https://a.b/c'></a>x", "x"),
        // Joiners belong to letters and pictures.
        ("\u{645}\u{6cc}\u{200c}\u{62e}", "\u{645}\u{6cc}\u{200c}\u{62e}"),
        ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
    ];
    for (source, expected) in rows {
        assert_eq!(shows(source), expected, "{source}");
    }
}

/// Each row hides `Eve says` within `a … b`.
#[test]
fn leaves_out_hidden_text() {
    let rows = [
        "<b style='display:none'>Eve says</b>",
        "<b style='DISPLAY : none !important; display: block'>Eve says</b>",
        "<b style='d\\69splay:none'>Eve says</b>",
        "<b style='display:/**/none'>Eve says</b>",
        "<div style='display:none'><p><b>Eve</b></p> says</div>",
        "<b style='visibility:hidden'>Eve says</b>",
        "<b hidden>Eve says</b>",
        "<b style='opacity:0'>Eve says</b>",
        "<b style='opacity:.01'>Eve says</b>",
        "<b style='font-size:0'>Eve says</b>",
        "<b style='font-size:1px'>Eve says</b>",
        "<b style='font-size:0.1em'>Eve says</b>",
        "<b style='font:0/0 a'>Eve says</b>",
        "<div style='font-size:0'><b style='font-size:150%'>Eve says</b></div>",
        "<b style='color:#fff'>Eve says</b>",
        "<b style='color:white'>Eve says</b>",
        "<b style='color:rgb(255,255,254)'>Eve says</b>",
        "<b style='color:rgb(100% 100% 100%)'>Eve says</b>",
        "<b style='color:transparent'>Eve says</b>",
        "<b style='color:rgba(0,0,0,0)'>Eve says</b>",
        "<b style='color:#00000000'>Eve says</b>",
        "<font color=white>Eve says</font>",
        "<font color=ffffff>Eve says</font>",
        "<div style='background:#123456'><b style='color:#123457'>Eve says</b></div>",
        "<table bgcolor=#000><tr><td>Eve says</table>",
        "<b style='position:absolute;left:-9999px'>Eve says</b>",
        "<b style='position:fixed;top:-200vh'>Eve says</b>",
        "<p style='text-indent:-9999px'>Eve says</p>",
        "<p style='margin-left:-9999px'>Eve says</p>",
        "<p style='margin:0 0 0 -9999px'>Eve says</p>",
        "<p style='max-height:0;overflow:hidden'>Eve says</p>",
        "<p style='width:1px;height:1px;overflow:hidden'>Eve says</p>",
        "<b style='position:absolute;clip:rect(0,0,0,0)'>Eve says</b>",
        "<b style='clip-path:inset(100%)'>Eve says</b>",
        "<b style='transform:scale(0)'>Eve says</b>",
        "<b style='transform:translateX(-9999px)'>Eve says</b>",
        "<template>Eve says</template>",
        "<iframe>Eve says</iframe>",
        "<dialog>Eve says</dialog>",
        "<!-- Eve says -->",
        "<!--Eve--><!--says-->",
        "<? Eve says >",
        // Style sheets.
        "<style>.x{display:none}</style><b class='y x'>Eve says</b>",
        "<style>#x{display:none}</style><b id=x>Eve says</b>",
        "<style>u{display:none}</style><u>Eve says</u>",
        "<style>i, u > b , q{display:none}</style><u><b>Eve says</b></u>",
        "<style>.w .x{display:none}</style><div class=w><p><b class=x>Eve says</b></p></div>",
        "<style>[data-x=\"1\"]{display:none}</style><b data-x=1>Eve says</b>",
        "<style>@media screen{.x{display:none}}</style><b class=x>Eve says</b>",
        "<style>@import 'a'; @font-face{a:b} .x{display:none}</style><b class=x>Eve says</b>",
        "<style><!-- .x{display:none} --></style><b class=x>Eve says</b>",
        "<style>.x{display:none!important}</style><b class=x style='display:block'>Eve says</b>",
        "<style>#x{display:none}.x{display:block}</style><b id=x class=x>Eve says</b>",
        "<style>.\\78{display:none}</style><b class=x>Eve says</b>",
        // As browsers repair it.
        "<p style='display:none'>Eve<b> says</b></i>",
        "<div style='display:none'><table><td></div>Eve says</table></div>",
        "<div style='display:none'></p>Eve says</div>",
    ];
    for row in rows {
        let found = text(&format!("<p>a</p>{row}<p>b</p>"));
        assert_eq!(found.text.split_whitespace().collect::<Vec<_>>(), ["a", "b"], "{row}");
        // The processing instruction has its sign too.
        let signs = usize::from(row.starts_with("<?"));
        assert_eq!(found.hidden, 7 + signs, "{row}: {found:?}");
    }
}

/// The other side of the rules: each row shows `Ann`, and nothing is hidden.
#[test]
fn keeps_text_that_can_be_seen() {
    let rows = [
        "<b style='display:block'>Ann</b>",
        "<b style='x-display:none'>Ann</b>",
        "<b style='display:none;display:inline'>Ann</b>",
        "<div style='visibility:hidden'><b style='visibility:visible'>Ann</b></div>",
        "<b style='opacity:0.5'>Ann</b>",
        "<div style='font-size:0'><b style='font-size:14px'>Ann</b></div>",
        "<b style='font:bold 400 12px/0 a'>Ann</b>",
        "<b style='color:#ccc'>Ann</b>",
        "<b style='color:#000;background:#fff'>Ann</b>",
        "<div style='background:navy'><b style='color:#fff'>Ann</b></div>",
        "<div style='background-image:url(a.png)'><b style='color:#fff'>Ann</b></div>",
        "<div style='background:linear-gradient(red, blue)'><b style='color:#fff'>Ann</b></div>",
        "<div style='background:transparent'><b style='color:#333'>Ann</b></div>",
        "<table background=a.png><tr><td style='color:#fff'>Ann</table>",
        "<b style='left:-9999px'>Ann</b>",
        "<b style='position:absolute;left:20px'>Ann</b>",
        "<p style='text-indent:-20px;margin-left:20px'>Ann</p>",
        "<p style='max-height:0'>Ann</p>",
        "<p style='overflow:hidden;height:100%'>Ann</p>",
        "<p style='width:0'>Ann</p>",
        "<b style='clip:rect(0,0,0,0)'>Ann</b>",
        "<details>Ann</details>",
        "<dialog open>Ann</dialog>",
        "<style>.x{display:none}</style><b class=xx>Ann</b>",
        "<style>.w > .x{display:none}</style><div class=w><p><b class=x>Ann</b></p></div>",
        "<style>.x:hover{display:none}</style><b class=x>Ann</b>",
        "<style>@media print{.x{display:none}}</style><b class=x>Ann</b>",
        "<style>@media (max-width:600px){.x{display:none}}</style><b class=x>Ann</b>",
        "<style>.x{display:none}</style><b class=x style='display:inline!important'>Ann</b>",
        "<style>} .x{color:white;;{}</style><b>Ann</b>",
        "<p style='display:none'><div>Ann</div>",
    ];
    for row in rows {
        assert_eq!(text(row), Text { text: "Ann".to_owned(), hidden: 0, cut: false }, "{row}");
    }
}

#[test]
fn leaves_out_characters_without_width() {
    for char in [
        '\u{ad}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{2060}',
        '\u{feff}',
        '\u{202e}',
        '\u{2066}',
        '\u{e0041}',
        '\u{34f}',
        '\u{180e}',
        '\u{3164}',
    ] {
        let found = text(&format!("ig{char}nore"));
        assert_eq!(found, Text { text: "ignore".to_owned(), hidden: 1, cut: false }, "{char:?}");
    }
}

/// Texts that take a careless parser minutes, gigabytes or its stack.
#[test]
fn withstands_hostile_pages() {
    let repeated = |piece: &str, count: usize| piece.repeat(count);
    let rows: Vec<(&str, String)> = vec![
        ("nested", repeated("<div>", 100_000) + "end"),
        ("nested and closed", repeated("<div>", 20_000) + "end" + &repeated("</div>", 20_000)),
        ("quotes", repeated("<blockquote>a", 20_000) + "end"),
        ("lists", repeated("<ul><li>a", 20_000) + "end"),
        ("tables", repeated("<table><tr><td>", 20_000) + "end"),
        ("formatting", repeated("<p><b><i><u>", 5_000) + "end"),
        (
            "different formatting",
            (0..10_000).map(|n| format!("<p><a href={n}><b x={n}>")).collect::<String>() + "end",
        ),
        ("misnested", repeated("<a><b></a></b>", 10_000) + "end"),
        ("misplaced", repeated("<table><b>x", 10_000) + "end"),
        ("forms", repeated("<form><select><option>", 10_000) + "end"),
        ("foreign", repeated("<svg><foreignObject><math><mi>", 10_000) + "end"),
        ("templates", repeated("<template>", 50_000) + "</template>end"),
        (
            "attributes",
            format!("<p {}>end", (0..200_000).map(|n| format!("a{n}=b ")).collect::<String>()),
        ),
        ("comments", repeated("<!--", 20_000) + "-->end"),
        ("tags that do not end", repeated("<a href='", 50_000)),
        ("references", repeated("&notit;&#x41;&", 10_000) + "end"),
        ("blanks", repeated(" \n", 200_000) + "end"),
        ("line ends", repeated("<br>", 20_000) + "end"),
        ("kept line ends", format!("<pre>{}end", repeated("\n", 100_000))),
        (
            "rules",
            format!(
                "<style>{}</style>{}end",
                (0..20_000).map(|n| format!("b .x{n} > i, b{{color:red}}")).collect::<String>(),
                repeated("<b class=x1>", 20_000)
            ),
        ),
        ("braces", format!("<style>{}</style>end", repeated("{", 200_000))),
        ("brackets", format!("<b style='color:{}'>end", repeated("rgb(", 100_000))),
        ("selectors", format!("<style>{}a{{}}</style>end", repeated("a>", 100_000))),
        ("nested media", format!("<style>{}</style>end", repeated("@media all{", 50_000))),
        ("rows", format!("<table>{}</table>end", repeated("<tr><td>a<td>b", 10_000))),
        ("cells", format!("<table><tr>{}</table>end", repeated("<td>a", 20_000))),
        ("links", repeated("<a href='http://a.b/c'>x</a>", 10_000) + "end"),
    ];
    for (name, page) in rows {
        // The stack of the virtual machine's threads is small.
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let start = std::time::Instant::now();
        let found = thread.spawn(move || text(&page)).unwrap().join().unwrap();
        let time = start.elapsed();
        // Seconds would be minutes without a limit; builds for tests are slow.
        assert!(time.as_secs() < 60, "{name}: {time:?}");
        assert!(found.text.len() <= super::MAX_TEXT, "{name}");
    }
}

/// The time of the tokenizer grows with the square of the number of a tag's attributes.
#[test]
fn a_tag_with_too_many_attributes_ends_the_page() {
    let names = |count: usize| (0..count).map(|n| format!(" name{n}")).collect::<String>();
    let words = " word/s".repeat(10_000);
    for (page, cut) in [
        (format!("<p{}>end", names(400)), false),
        (format!("<p{}>end", names(3000)), true),
        (format!("<p a='b'{}>end", names(3000)), true),
        (format!("<p{}>end", names(3000).replace(' ', "='x' ")), true),
        (format!("<p{}>end", names(3000).replace(' ', "=\"x\"")), true),
        // With errors within the tag, which are no end of it.
        (format!("<p{}>end", names(3000).replace(' ', "/")), true),
        (format!("<p{}>end", names(3000).replace("name", "name'a")), true),
        (format!("<!-- <p> --><p{}>end", names(3000)), true),
        // Long values, comments and scripts are none of its attributes.
        (format!("<p title='{words}'>end"), false),
        (format!("<p title = \"{words}\">end"), false),
        (format!("<p title={}>end", words.replace(' ', "")), false),
        (format!("<!--{words}-->end"), false),
        (format!("<script>if (a <b {words}) {{}}</script>end"), false),
        (format!("<title>a <b {words}</title>end"), false),
    ] {
        let found = text(&page);
        let start = &page[..30];
        assert_eq!((found.cut, found.text.ends_with("end")), (cut, !cut), "{start}");
    }
}

#[test]
fn writes_markdown_as_html() {
    let rows = [
        ("Hello **you**", "<p>Hello <strong>you</strong></p>\n"),
        ("a\nb", "<p>a\nb</p>\n"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        (
            "<b>a</b> & <script>x</script>",
            "<p>&lt;b&gt;a&lt;/b&gt; &amp; &lt;script&gt;x&lt;/script&gt;</p>\n",
        ),
        ("<div>\na\n</div>", "<p>&lt;div&gt;\na\n&lt;/div&gt;</p>\n"),
        ("[a](https://b.c/d)", "<p><a href=\"https://b.c/d\">a</a></p>\n"),
        ("<ann@example.com>", "<p><a href=\"mailto:ann@example.com\">ann@example.com</a></p>\n"),
        ("[a](javascript:x) [b](/c) [d](data:e)", "<p>a b d</p>\n"),
        ("[a](JavaScript&colon;x)", "<p>a</p>\n"),
        ("[![a](x.png)](https://b.c)", "<p><a href=\"https://b.c\">a</a></p>\n"),
        ("![a](https://b.c/d.png)", "<p>a</p>\n"),
        (
            "[a](https://b.c \"x\\\" onclick=y\")",
            "<p><a href=\"https://b.c\" title=\"x&quot; onclick=y\">a</a></p>\n",
        ),
        (
            "a | b\n--|--\n1 | 2",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n\
             <tr><td>1</td><td>2</td></tr>\n</tbody></table>\n",
        ),
    ];
    for (source, expected) in rows {
        assert_eq!(html(source), expected, "{source}");
    }
    for piece in ["> ", "- ", "*a **b ", "[", "![", "`", "<", "[a](", "|a|\n|-|\n", "&"] {
        let source = piece.repeat(20_000);
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let start = std::time::Instant::now();
        thread.spawn(move || html(&source)).unwrap().join().unwrap();
        assert!(start.elapsed().as_secs() < 60, "{piece:?}: {:?}", start.elapsed());
    }
}
