use proptest::prelude::*;

use super::build::{build, Draft, File};
use super::parse::{parse, part, Attachment, Mail};
use super::Mailbox;

fn mailbox(name: &str, address: &str) -> Mailbox {
    Mailbox { name: (!name.is_empty()).then(|| name.to_owned()), address: address.to_owned() }
}

fn draft() -> Draft<'static> {
    Draft {
        from: Some(mailbox("Ann", "ann@example.com")),
        to: vec![mailbox("", "bob@example.com")],
        subject: "Report".to_owned(),
        date: 1_700_000_000,
        message_id: "1@example.com".to_owned(),
        text: "Hello".to_owned(),
        ..Draft::default()
    }
}

fn read(raw: &str) -> Mail {
    parse(raw.replace('\n', "\r\n").as_bytes()).expect("a mail")
}

fn empty(name: &str, kind: &str) -> File<'static> {
    File { name: name.to_owned(), r#type: kind.to_owned(), charset: None, data: b"" }
}

/// Bytes in headers that are neither encoded nor UTF-8 are read as those in texts.
#[test]
fn headers_in_other_character_sets() {
    let raw = b"From: J\xfcrgen <j@example.com>\r\nTo: \xc3\x84nne <a@example.com>\r\n\
        Subject: Gr\xfc\xdfe\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
        Content-Type: text/plain; charset=iso-8859-1; name=\"\xdcbersicht.txt\"\r\n\
        Content-Disposition: attachment; filename=\"\xdcbersicht.txt\"\r\n\r\n\xfc\r\n--b--\r\n";
    let mail = parse(raw).unwrap();
    assert_eq!(mail.from, vec![mailbox("Jürgen", "j@example.com")]);
    assert_eq!(mail.to, vec![mailbox("Änne", "a@example.com")]);
    assert_eq!(mail.subject, "Grüße");
    let file = mail.attachments.first().unwrap();
    assert_eq!(file.name.as_deref(), Some("Übersicht.txt"));
    assert_eq!(file.charset.as_deref(), Some("iso-8859-1"));
}

/// A mail in a mail is one, as it is; one that would need an encoding is a file.
#[test]
fn attached_mails() {
    let long = format!("Subject: {}\n\nHi", "a".repeat(1_000));
    let (mail, file) = ("message/rfc822", "application/octet-stream");
    let rows: [(&[u8], &str, &[u8]); 5] = [
        (b"Subject: a\n\nHi\n", mail, b"Subject: a\r\n\r\nHi\r\n"),
        (b"Subject: a\r\n\r\n\xfc\r\n", mail, b"Subject: a\r\n\r\n\xfc\r\n"),
        (b"Subject: a\r\n\r\nHi\0", file, b"Subject: a\r\n\r\nHi\0"),
        (b"Subject: a\r\n\r\nH\ri", file, b"Subject: a\r\n\r\nH\ri"),
        (long.as_bytes(), file, long.as_bytes()),
    ];
    for (data, kind, sent) in rows {
        let file = File {
            name: "a.eml".to_owned(),
            r#type: "message/rfc822".to_owned(),
            charset: None,
            data,
        };
        let raw = build(&Draft { attachments: vec![file], ..draft() }).unwrap();
        let mail = parse(&raw).unwrap();
        let found = mail.attachments.first().unwrap();
        assert_eq!((found.name.as_deref(), found.r#type.as_str()), (Some("a.eml"), kind));
        let content = part(&raw, found.part).unwrap();
        let content = content.strip_suffix(b"\r\n").unwrap_or(&content);
        assert_eq!(content, sent.strip_suffix(b"\r\n").unwrap_or(sent), "{raw:?}");
    }
}

#[test]
fn builds_and_parses() {
    let mail = Draft {
        cc: vec![mailbox("Cärl, the \"great\"", "carl@example.com")],
        reply_to: vec![mailbox("", "office@example.com")],
        subject: "Grüße: ein Bericht".to_owned(),
        in_reply_to: vec!["0@example.com".to_owned()],
        references: vec!["a@example.com".to_owned(), "0@example.com".to_owned()],
        text: "Hello\n\nFrom here on.\n.\n".to_owned(),
        html: Some("<p>Hello</p>".to_owned()),
        attachments: vec![File {
            name: "Übersicht 1.csv".to_owned(),
            r#type: "text/csv".to_owned(),
            charset: Some("iso-8859-1".to_owned()),
            data: b"a,b\n1,2\r\n\0\xff",
        }],
        ..draft()
    };
    let raw = build(&mail).unwrap();
    assert!(raw.is_ascii());
    assert!(raw.split(|&byte| byte == b'\n').all(|line| line.len() <= 79), "{raw:?}");
    assert_eq!(
        parse(&raw).unwrap(),
        Mail {
            from: vec![mailbox("Ann", "ann@example.com")],
            to: vec![mailbox("", "bob@example.com")],
            cc: vec![mailbox("Cärl, the \"great\"", "carl@example.com")],
            bcc: vec![],
            reply_to: vec![mailbox("", "office@example.com")],
            subject: "Grüße: ein Bericht".to_owned(),
            date: Some(1_700_000_000),
            message_id: Some("1@example.com".to_owned()),
            in_reply_to: vec!["0@example.com".to_owned()],
            references: vec!["a@example.com".to_owned(), "0@example.com".to_owned()],
            text: Some("Hello\n\nFrom here on.\n.\n".to_owned()),
            html: Some("<p>Hello</p>".to_owned()),
            attachments: vec![Attachment {
                part: 4,
                name: Some("Übersicht 1.csv".to_owned()),
                r#type: "text/csv".to_owned(),
                charset: Some("iso-8859-1".to_owned()),
                size: 11,
                inline: false,
            }],
            problems: vec![],
        }
    );
    assert_eq!(part(&raw, 4).unwrap(), b"a,b\n1,2\r\n\0\xff");
    assert_eq!(part(&raw, 2).unwrap(), b"Hello\r\n\r\nFrom here on.\r\n.\r\n");
    for number in [0, 1, 5, u32::MAX] {
        assert_eq!(part(&raw, number), Err(format!("the mail has no part {number}")));
    }
}

#[test]
fn refuses_what_would_need_repair() {
    type Change = fn(&mut Draft<'static>);
    let address = "expected an address such as \"ann@example.com\" as";
    let rows: Vec<(Change, String)> = vec![
        (
            |mail| mail.subject = "a\r\nBcc: eve@example.com".to_owned(),
            "expected one line without control characters as subject, got: \
             \"a\\r\\nBcc: eve@example.com\""
                .to_owned(),
        ),
        (
            |mail| mail.subject = "=?utf-8?q?a?=".to_owned(),
            "expected a text without \"=?\", which mail programs decode, as subject, got: \
             \"=?utf-8?q?a?=\""
                .to_owned(),
        ),
        (
            |mail| mail.subject = "a\u{0}".to_owned(),
            "expected one line without control characters as subject, got: \"a\\0\"".to_owned(),
        ),
        (
            |mail| mail.subject = "a".repeat(2001),
            "expected at most 2000 bytes as subject, got 2001 bytes".to_owned(),
        ),
        (|mail| mail.to = vec![mailbox("", "bob")], format!("{address} to, got: \"bob\"")),
        (
            |mail| mail.to = vec![mailbox("", "bob@example.com, eve@example.com")],
            format!("{address} to, got: \"bob@example.com, eve@example.com\""),
        ),
        (
            |mail| mail.cc = vec![mailbox("", "bob@example.com>\r\nX: y")],
            format!("{address} cc, got: \"bob@example.com>\\r\\nX: y\""),
        ),
        (
            |mail| mail.bcc = vec![mailbox("", "b@bücher.com")],
            format!("{address} bcc, got: \"b@bücher.com\""),
        ),
        (|mail| mail.from = Some(mailbox("", "")), format!("{address} from, got: \"\"")),
        (
            |mail| mail.reply_to = vec![mailbox("", "a@b..c")],
            format!("{address} reply_to, got: \"a@b..c\""),
        ),
        (
            |mail| mail.to = vec![mailbox("Bob\nX: y", "bob@example.com")],
            "expected one line without control characters as a name in to, got: \"Bob\\nX: y\""
                .to_owned(),
        ),
        (
            |mail| mail.to = vec![mailbox("", "bob@example.com"); 2001],
            "expected at most 2000 entries in to, got 2001".to_owned(),
        ),
        (
            |mail| mail.message_id = "a@b>\r\nX: y".to_owned(),
            "expected an id such as \"1a2b@example.com\" as message_id, got: \
             \"a@b>\\r\\nX: y\""
                .to_owned(),
        ),
        (
            |mail| mail.message_id = String::new(),
            "expected an id such as \"1a2b@example.com\" as message_id, got: \"\"".to_owned(),
        ),
        (
            |mail| mail.references = vec!["a b".to_owned()],
            "expected an id such as \"1a2b@example.com\" as references, got: \"a b\"".to_owned(),
        ),
        (
            |mail| {
                mail.attachments = vec![File {
                    name: "a".to_owned(),
                    r#type: "a".to_owned(),
                    charset: None,
                    data: b"",
                }];
            },
            "expected a media type such as \"text/csv\" of the attachment \"a\", got: \"a\""
                .to_owned(),
        ),
        (
            |mail| {
                mail.attachments = vec![File {
                    name: "a\"\r\n".to_owned(),
                    r#type: "a/b".to_owned(),
                    charset: None,
                    data: b"",
                }];
            },
            "expected one line without control characters as the name of an attachment, got: \
             \"a\\\"\\r\\n\""
                .to_owned(),
        ),
    ];
    for (change, error) in rows {
        let mut mail = draft();
        change(&mut mail);
        assert_eq!(build(&mail), Err(error));
    }
}

/// Each row: the mail, then text, HTML, attachments and problems as a debug text.
#[test]
fn shows_bodies() {
    let alternative = "Content-Type: multipart/alternative; boundary=a\n\n\
                       --a\n\nplain\n--a\nContent-Type: text/html\n\n<p>html</p>\n--a--\n";
    let rows: Vec<(String, &str, &str, &str)> = vec![
        ("Subject: a\n\nbody\n".into(), "body\n", "", ""),
        // No header at all; only a header; nothing.
        ("body\nmore".into(), "body\nmore", "", ""),
        ("\nbody".into(), "body", "", ""),
        ("Subject: a".into(), "", "", ""),
        (format!("Subject: a\n{alternative}"), "plain", "<p>html</p>", ""),
        // A text after the alternatives belongs to both.
        (
            format!(
                "Content-Type: multipart/mixed; boundary=m\n\n--m\n{alternative}\n--m\n\n\
                 a <footer>\n--m--"
            ),
            "plain\na <footer>",
            "<p>html</p>\n<pre>a &lt;footer&gt;</pre>",
            "",
        ),
        // HTML without an alternative beside a text.
        (
            "Content-Type: multipart/mixed; boundary=m\n\n--m\n\none\n--m\n\
             Content-Type: text/html\n\n<p>two</p>\n--m--"
                .into(),
            "one\ntwo",
            "<pre>one</pre>\n<p>two</p>",
            "",
        ),
        // An attached text, a text with a name, an image within the text.
        (
            "Content-Type: multipart/mixed; boundary=m\n\n--m\n\none\n--m\n\
             Content-Disposition: attachment\n\ntwo\n--m\nContent-Type: text/plain; name=c.txt\n\n\
             three\n--m\nContent-Type: image/png; name=\"d.png\"\nContent-Disposition: inline\n\
             Content-Transfer-Encoding: base64\n\niVBORw==\n--m--"
                .into(),
            "one",
            "",
            "2 - text/plain 3; 3 c.txt text/plain 5; 4 d.png image/png 4 inline",
        ),
        // A mail in a mail.
        (
            "Content-Type: multipart/mixed; boundary=m\n\n--m\n\none\n--m\n\
             Content-Type: message/rfc822\n\nSubject: inner\n\ntext\n--m--"
                .into(),
            "one",
            "",
            "2 inner message/rfc822 22",
        ),
        (
            "Content-Type: multipart/digest; boundary=m\n\n--m\n\nSubject: inner\n\ntext\n--m--"
                .into(),
            "",
            "",
            "1 inner message/rfc822 22",
        ),
        // An invitation is no text.
        (
            "Content-Type: multipart/alternative; boundary=m\n\n--m\n\none\n--m\n\
             Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\n--m--"
                .into(),
            "one",
            "",
            "2 - text/calendar 15",
        ),
    ];
    for (raw, text, html, attachments) in rows {
        let mail = read(&raw);
        let listed: Vec<String> = mail
            .attachments
            .iter()
            .map(|one| {
                let name = one.name.as_deref().unwrap_or("-");
                let inline = if one.inline { " inline" } else { "" };
                format!("{} {name} {} {}{inline}", one.part, one.r#type, one.size)
            })
            .collect();
        assert_eq!(mail.text.unwrap_or_default(), text, "{raw}");
        assert_eq!(mail.html.unwrap_or_default(), html, "{raw}");
        assert_eq!(listed.join("; "), attachments, "{raw}");
    }
}

#[test]
fn reads_headers() {
    let mail = read(
        "From: =?utf-8?q?Gr=C3=BC=C3=9Fe?= <a@b.c>\n\
         To: friends: x@y.z, \"Q, R\" <q@r.s>;\nCc: undisclosed-recipients:;\n\
         Subject: =?iso-8859-1?Q?caf=E9?= =?shift_jis?B?grE=?=\n and more\n\
         Date: Mon, 23 Oct 2023 12:00:00 +0200\nMessage-ID: <i@d>\nIn-Reply-To: <p@d>\n\
         References: <o@d>\n <p@d>\n\nbody",
    );
    assert_eq!(mail.from, [mailbox("Grüße", "a@b.c")]);
    assert_eq!(mail.to, [mailbox("", "x@y.z"), mailbox("Q, R", "q@r.s")]);
    assert_eq!(mail.cc, []);
    assert_eq!(mail.subject, "caféこ and more");
    assert_eq!(mail.date, Some(1_698_055_200));
    assert_eq!(mail.message_id.as_deref(), Some("i@d"));
    assert_eq!(mail.in_reply_to, ["p@d"]);
    assert_eq!(mail.references, ["o@d", "p@d"]);
    assert_eq!(mail.problems, [""; 0]);
}

#[test]
fn tells_what_is_broken() {
    let mixed = "Content-Type: multipart/mixed; boundary=m";
    let deep = |depth: usize| {
        let mut raw = String::new();
        for level in 0..depth {
            raw.push_str(&format!(
                "Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n"
            ));
        }
        raw + "\nend"
    };
    const CUT: &str = "the end of its parts is missing; it may be cut";
    let rows: Vec<(String, &str, &[&str])> = vec![
        ("body".into(), "body", &["it has no header"]),
        (
            "Subject: a\nSubject: b\nDate: never\n\nc".into(),
            "c",
            &["2 headers are named Subject; the first one is shown", "its date cannot be read"],
        ),
        (format!("{mixed}\n\n--m\n\none\n--m\n\ntwo"), "one\ntwo", &[CUT]),
        (
            format!("{mixed}\n\nno part"),
            "no part",
            &["it says that it has parts, and has none; it is shown as it is"],
        ),
        (
            "Content-Type: multipart/mixed\n\nno boundary".into(),
            "no boundary",
            &["it says that it has parts, and has none; it is shown as it is"],
        ),
        (
            "Content-Transfer-Encoding: base64\n\naGVs!bG8=".into(),
            "hello",
            &["a part is not encoded as it says; what can be read is shown"],
        ),
        (
            "Content-Transfer-Encoding: quoted-printable\n\na=zzb=20c=".into(),
            "a=zzb c",
            &["a part is not encoded as it says; what can be read is shown"],
        ),
        (
            "Content-Transfer-Encoding: x-unknown\n\na".into(),
            "a",
            &["a part has an unknown encoding, and is shown as it is"],
        ),
        (
            "Content-Transfer-Encoding: x-uuencode\n\na".into(),
            "a",
            &["a part is not encoded as it says; what can be read is shown"],
        ),
        (
            "Content-Type: text/plain; charset=klingon\n\na".into(),
            "a",
            &["its character set \"klingon\" is unknown"],
        ),
        (
            "Content-Type: text/plain; charset=utf-8\n\
             Content-Transfer-Encoding: quoted-printable\n\na=FFb"
                .into(),
            "a\u{fffd}b",
            &["some of its characters cannot be read in the character set that it names"],
        ),
        (
            deep(40),
            "",
            &["its parts are nested too deeply; the inner ones are one attachment", CUT],
        ),
        (
            format!("{mixed}\n{}", "\n--m\n\na".repeat(1500)),
            "",
            &["it has more than 1000 parts; others are left out"],
        ),
    ];
    for (raw, text, problems) in rows {
        let mail = read(&raw);
        let mut expected: Vec<&str> = problems.to_vec();
        let mut found: Vec<&str> = mail.problems.iter().map(String::as_str).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{raw:.200}");
        if !text.is_empty() {
            assert_eq!(mail.text.as_deref(), Some(text), "{raw:.200}");
        }
    }
}

/// Pieces of mails with a meaning, so that the parser gets into all its states.
fn mails() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "Content-Type: multipart/mixed; boundary=a\r\n", "Content-Type: text/html\n",
            "Content-Type: multipart/alternative; boundary=\"b\"\r\n", "\r\n--a\r\n", "\n--b\n",
            "\r\n--a--\r\n", "--b--", "\r\n\r\n", "\n", "\r", "Content-Type: message/rfc822\r\n",
            "Content-Transfer-Encoding: base64\r\n", "Content-Type: multipart/digest;boundary=a\n",
            "Content-Transfer-Encoding: quoted-printable\r\n", "aGVsbG8=", "=C3=BC=\r\n", "=",
            "From: Ann <ann@example.com>\r\n", "To: a:b,c;, \"d\" (e) <f@g>,\r\n ,<\r\n",
            "Subject: =?utf-8?q?=C3=BC?= =?iso-2022-jp?B?GyRC?=\r\n", "From ann Mon\n",
            "Content-Disposition: attachment; filename*0*=utf-8''%C3; filename*1=b\r\n",
            "Content-Type: text/plain; charset=utf-16\r\n", "Date: 1 Jan 99999 99:99 +9999\r\n",
            "Date: Mon, 1 Jan 2024 00:00:00 GMT\r\n", "References: <a> <b\r\n c> >\r\n", ":", " ",
            "Content-Type: ;;=;/\r\n", "Message-ID: <>\r\n", "<p hidden>", "text", "\0", "\u{fe0f}",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,90}",
        "\\PC{0,40}",
        prop::collection::vec(prop::sample::select(vec![
            "=?utf-8?q?a?=", "Grüße", "\"", "\\", "<a@b>", "(c)", ";", ",", "日本語", "👩‍👩‍👧", "?=", "=20",
            "averyverylongwordwithoutanyblankinitthatislongerthanthelinesofmailsmaybeforasubject",
        ]), 0..8).prop_map(|words| words.join(" ")),
    ]
    .prop_map(|text| {
        let text: String = text.chars().filter(|char| !char.is_control()).collect();
        text.replace("=?", "").replace('=', "-").split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[ -~]{0,200}",
        "\\PC{0,60}",
        prop::sample::select(vec![
            ".",
            "..",
            "From here",
            "--a",
            "--",
            "=",
            "=20",
            "a ",
            "\t",
            "-- ",
            ">From",
            "",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_built_is_read_back(
        subject in words(),
        name in words(),
        to in prop::collection::vec(words(), 1..40),
        text in texts(),
        html in prop::option::of(texts()),
        files in prop::collection::vec((words(), prop::collection::vec(any::<u8>(), 0..200)), 0..4),
        ids in prop::collection::vec("[!-;=?-~]{1,80}", 0..20),
    ) {
        let mailbox = |name: &String| Mailbox {
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            address: "a.b+c@example.com".to_owned(),
        };
        let draft = Draft {
            from: Some(mailbox(&name)),
            to: to.iter().map(mailbox).collect(),
            subject: subject.clone(),
            references: ids.clone(),
            text: text.clone(),
            html: html.clone(),
            attachments: files
                .iter()
                .map(|(name, data)| File {
                    name: name.clone(),
                    r#type: "application/pdf".to_owned(),
                    charset: None,
                    data,
                })
                .collect(),
            ..draft()
        };
        let raw = build(&draft).unwrap();
        prop_assert!(raw.is_ascii());
        prop_assert!(raw.split(|&byte| byte == b'\n').all(|line| line.len() <= 998));
        prop_assert!(!raw.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r'));
        // No header but ours.
        let header = String::from_utf8(raw.clone()).unwrap();
        let header = header.split("\r\n\r\n").next().unwrap();
        for line in header.split("\r\n") {
            let name = line.split(':').next().unwrap();
            prop_assert!(
                line.starts_with([' ', '\t'])
                    || ["From", "To", "Subject", "Date", "Message-ID", "References",
                        "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]
                        .contains(&name),
                "{}", header
            );
        }
        let mail = parse(&raw).unwrap();
        prop_assert_eq!(mail.subject, subject);
        prop_assert_eq!(mail.from, vec![mailbox(&name)]);
        prop_assert_eq!(mail.to, to.iter().map(mailbox).collect::<Vec<_>>());
        prop_assert_eq!(mail.references, ids);
        prop_assert_eq!(mail.text.unwrap_or_default(), text);
        prop_assert_eq!(mail.html, html);
        prop_assert_eq!(mail.problems, vec![""; 0]);
        prop_assert_eq!(mail.attachments.len(), files.len());
        for (listed, (name, data)) in mail.attachments.iter().zip(&files) {
            prop_assert_eq!(listed.name.as_deref().unwrap_or_default(), name);
            prop_assert_eq!(&part(&raw, listed.part).unwrap(), data);
        }
    }

    #[test]
    fn every_mail_is_read_and_so_are_its_parts(
        raw in mails(),
        end in any::<prop::sample::Index>(),
    ) {
        for raw in [&raw[..], &raw[..end.index(raw.len() + 1)]] {
            let mail = parse(raw).unwrap();
            for attachment in &mail.attachments {
                let content = part(raw, attachment.part);
                prop_assert_eq!(content.map(|bytes| bytes.len()), Ok(attachment.size));
            }
        }
    }

    #[test]
    fn no_field_begins_another_header(
        field in 0_usize..7,
        value in "[a-z@.<>]{0,5}[\r\n\0\u{b}\u{85}][ a-zA-Z:<>@.\r\n]{0,20}",
    ) {
        let mut mail = draft();
        match field {
            0 => mail.subject = value.clone(),
            1 => mail.to = vec![mailbox(&value, "bob@example.com")],
            2 => mail.to = vec![mailbox("", &value)],
            3 => mail.message_id = value.clone(),
            4 => mail.in_reply_to = vec![value.clone()],
            5 => mail.attachments =
                vec![empty(&value, "a/b")],
            _ => mail.attachments =
                vec![empty("a", &value)],
        }
        prop_assert!(build(&mail).is_err());
    }
}

/// Mails that take a careless parser minutes, gigabytes or its stack.
#[test]
fn withstands_hostile_mails() {
    let nested = |kind: &str, count: usize| {
        let mut raw = String::new();
        for level in 0..count {
            raw.push_str(&format!("Content-Type: {kind}; boundary=b{level}\n\n--b{level}\n"));
        }
        raw
    };
    let mebibytes = |piece: &str, size: usize| piece.repeat((size << 20) / piece.len());
    let rows: Vec<(&str, String)> = vec![
        ("nested parts", nested("multipart/mixed", 20_000)),
        ("nested digests", nested("multipart/digest", 20_000)),
        ("nested mails", "Content-Type: message/rfc822\n\n".repeat(50_000)),
        ("parts", format!("{}{}", nested("multipart/mixed", 1), "\n\n--b0\n".repeat(100_000))),
        ("delimiters", format!("{}{}", nested("multipart/mixed", 1), mebibytes("--b0", 4))),
        ("one header", format!("Subject: {}\n\na", mebibytes("a b ", 4))),
        ("encoded words", format!("Subject: {}\n\na", mebibytes("=?utf-8?q?a?= ", 1))),
        ("parts of words", format!("Subject: {}\n\na", mebibytes("=?utf-8?q?=C3?= ", 1))),
        ("words without an end", format!("Subject: {}\n\na", mebibytes("=?a", 1))),
        ("one line of fields", mebibytes("a: b", 4)),
        ("addresses", format!("To: {}\n\na", mebibytes("a@b.c, ", 1))),
        ("groups", format!("To: {}\n\na", mebibytes("a:", 1))),
        ("comments", format!("To: {}\n\na", mebibytes("(", 1))),
        ("quotes", format!("To: {}\n\na", mebibytes("\"<", 1))),
        ("references", format!("References: {}\n\na", mebibytes("<a@b> ", 1))),
        ("headers", format!("{}\na", mebibytes("a: b\n", 4))),
        ("attributes", format!("Content-Type: text/plain; {}\n\na", mebibytes("a*0*=b; ", 1))),
        (
            "attributes of a part",
            format!("Content-Disposition: attachment; {}\n\na", mebibytes("filename*1=b; ", 1)),
        ),
        ("text", format!("Subject: a\n\n{}", mebibytes("hello world\n", 16))),
        (
            "attachment",
            format!(
                "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{}",
                mebibytes("aGVsbG8gd29ybGQ=\n", 4)
            ),
        ),
        (
            "quoted-printable",
            format!("Content-Transfer-Encoding: quoted-printable\n\n{}", mebibytes("=C3=BC", 2)),
        ),
        ("blank lines", mebibytes("\n", 8)),
        ("nothing but blanks", mebibytes(" ", 8)),
    ];
    for (name, raw) in rows {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let start = std::time::Instant::now();
        let mail = thread.spawn(move || parse(raw.as_bytes())).unwrap().join().unwrap().unwrap();
        let time = start.elapsed();
        assert!(time.as_secs() < 60, "{name}: {time:?}");
        assert!(mail.text.unwrap_or_default().len() <= super::parse::MAX_TEXT, "{name}");
        assert!(mail.attachments.len() <= 1000 && mail.problems.len() <= 21, "{name}");
        assert!(mail.to.len() <= 2000 && mail.references.len() <= 2000, "{name}");
    }
}
