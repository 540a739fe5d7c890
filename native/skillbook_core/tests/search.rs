//! Search results: matches, order and snippets.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{all, doc, skills, source, view};
use proptest::prelude::*;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::Catalog;
use skillbook_core::page::document::Document;
use skillbook_core::page::record::Record;
use skillbook_core::source::{Kind, Source, SourceKind};
use skillbook_core::view::search::{Hit, Query};
use skillbook_core::view::{CachedCatalog, Parts, Profile, View};

fn sample() -> View {
    let files = [
        (
            "email/send.md",
            doc("email.send", "aliases: [mail]\n", "Sends a message to one or more people."),
        ),
        (
            "email/search.md",
            doc("email.search", "tags: [inbox, mail]\n", "Finds messages. Send nothing."),
        ),
        (
            "deploy.md",
            doc(
                "deployApp",
                "title: Rolling out\n",
                "# Before\n\nRead the checklists.\n\n## Kubernetes\n",
            ),
        ),
        (
            "notes.md",
            doc(
                "notes",
                "trigger_keywords: [remember]\ntags: [inbox]\n",
                "Keeps what a café said: größe.",
            ),
        ),
        (
            "long.md",
            doc(
                "long",
                "",
                &format!("{}deployment of a message{}", "word ".repeat(500), " word".repeat(500)),
            ),
        ),
        (
            "secret.md",
            doc("secret", "disable-model-invocation: true\n", "A message for people only."),
        ),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    all(skills(&files))
}

fn found<'a>(view: &'a View, query: &Query) -> Vec<&'a str> {
    view.search(query).into_iter().map(|hit| &*view.entry(hit.id).unwrap().name).collect()
}

#[test]
fn finds_the_best_first() {
    let view = sample();
    let rows: &[(&str, &[&str])] = &[
        ("", &[]),
        (" .,", &[]),
        ("zebra", &[]),
        // A name or an alias comes before everything else, in any case.
        ("email.send", &["email.send", "email.search"]),
        ("  EMAIL.Send ", &["email.send", "email.search"]),
        ("mail", &["email.send", "email.search"]),
        ("long", &["long"]),
        // Words of names, written together or not. Entries with words that are alike come last.
        ("send", &["email.send", "email.search"]),
        ("deploy app", &["deployApp", "long"]),
        ("deployapp", &["deployApp", "long"]),
        ("deployApp", &["deployApp", "long"]),
        // Titles, keywords, tags, headings, bodies.
        ("rolling", &["deployApp"]),
        ("remember", &["notes"]),
        // The one with fewer words beside it comes first.
        ("inbox", &["notes", "email.search"]),
        ("kubernetes", &["deployApp"]),
        ("checklist", &["deployApp"]),
        // Case, marks, plurals.
        ("CAFE", &["notes"]),
        ("große", &["notes"]),
        ("cafés", &["notes"]),
        ("messages", &["email.search", "email.send", "long"]),
        // The last word may be a prefix; other words only if they match nothing else.
        ("checkl", &["deployApp"]),
        ("deploy", &["deployApp", "long"]),
        // Words count little in a text of 1,000 words.
        ("deploym message", &["email.search", "email.send", "long"]),
        ("deploy kubernetes", &["deployApp", "long"]),
        // One wrong letter from four letters on, two from eight on.
        ("kubernets", &["deployApp"]),
        ("kuberntse", &["deployApp"]),
        ("kubrnets", &["deployApp"]),
        ("kbrnets", &[]),
        ("remmeber", &["notes"]),
        ("inbix", &["notes", "email.search"]),
        ("inbx zebra", &["notes", "email.search"]),
        ("snd", &[]),
        // More words are better.
        ("message people", &["email.send", "email.search", "long"]),
    ];
    for (text, expected) in rows {
        assert_eq!(found(&view, &Query::new(text)), *expected, "{text}");
    }
}

#[test]
fn finds_the_subject_of_a_request() {
    let rows = [
        ("weather_forecast", "Predicts the weather of the next days for a city."),
        ("airqualityreport", "Tells how clean the air is."),
        ("calendar_event", "Creates an event in the calendar and invites people."),
        ("TranslationTool", "Translates a text into another language."),
        ("e-mail", "Writes messages to people and sends them."),
        ("what-now", "Decides what to do next."),
        ("HTTPServer", "Answers requests of browsers."),
        ("wetterbericht", "Sagt das Wetter der nächsten Tage für eine Stadt voraus."),
        ("météo", "Prévoit le temps des prochains jours."),
        ("pogoda", "Прогноз погоды на несколько дней."),
        ("天気予報", "都市の天気を予報します。"),
        ("翻訳", "文章を別の言語に翻訳します。"),
    ];
    let files: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(at, (name, description))| {
            let text = format!("---\nname: {name}\ndescription: {description}\n---\n");
            (format!("{at}.md"), text)
        })
        .collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let view = all(skills(&files));
    for (query, expected) in [
        // Function words do not decide, but names may have them.
        ("What will the weather be like in the next few days?", "weather_forecast"),
        ("what now", "what-now"),
        // Other forms of words, and words that are alike.
        ("Can you please get this translated for me?", "TranslationTool"),
        ("I need a translator", "TranslationTool"),
        ("forecasts", "weather_forecast"),
        // Compounds.
        ("Is the quality of the air good enough for a run?", "airqualityreport"),
        ("calendar events", "calendar_event"),
        ("calendarevents", "calendar_event"),
        ("weatherforecast", "weather_forecast"),
        ("email", "e-mail"),
        ("Send an email to Ann", "e-mail"),
        ("server", "HTTPServer"),
        // Slips and prefixes.
        ("wheather", "weather_forecast"),
        ("Whats the wether going to be tomorrow", "weather_forecast"),
        ("calen", "calendar_event"),
        // Other languages.
        ("Wie wird das Wetter morgen in der Stadt?", "wetterbericht"),
        ("Quel temps fait-il dans les prochains jours ?", "météo"),
        ("Какая погода будет завтра?", "pogoda"),
        ("明日の天気を教えて", "天気予報"),
        ("この文章を翻訳してください", "翻訳"),
    ] {
        assert_eq!(found(&view, &Query::new(query)).first(), Some(&expected), "{query}");
    }
}

#[test]
fn unlisted_entries_are_not_found() {
    let view = sample();
    assert!(view.find("secret").is_some());
    assert_eq!(found(&view, &Query::new("secret people only")), ["email.send"]);
}

#[test]
fn finds_listed_entries() {
    // Whether it is found, and by whom. With `exclude_from_prompt_profile_ids` a note stays
    // readable.
    let rows = [
        ("", true, true),
        ("disable-model-invocation: true\n", false, false),
        ("user-invocable: false\n", true, true),
        ("include_in_prompt: false\n", true, true),
        ("visibility_labels: [secret]\n", false, false),
        ("visibility_labels: {}\n", false, false),
        ("exclude_from_prompt_profile_ids: [reader]\n", false, true),
        ("exclude_from_prompt_profile_ids: [other]\n", true, true),
    ];
    let found = |catalog: Catalog| {
        let view = view(&common::cached(catalog), "reader", &[], None);
        !view.search(&Query::new("pear")).is_empty()
    };
    for (more, skill, note) in rows {
        let text = doc("x", more, "pear");
        assert_eq!(found(skills(&[("x.md", &text)])), skill, "{more}");
        let text = format!("---\n{more}---\npear\n");
        let notes = source("n", SourceKind::Notes, &[], &[("x.md", &text)]);
        assert_eq!(found(Catalog::build(1, vec![notes])), note, "{more} in a note");
    }
}

#[test]
fn an_index_speaks_for_itself_alone() {
    // The commands of a domain are found even if its index is hidden or not listed; the index is
    // not an entry.
    for more in ["", "disable-model-invocation: true\n", "visibility_labels: [secret]\n"] {
        let index = format!("---\ndomain: mail\ndescription: pear\n{more}---\nplum\n");
        let command = doc("mail.send", "", "pear");
        let catalog =
            common::cached(skills(&[("mail/SKILL.md", &index), ("mail/send.md", &command)]));
        let view = view(&catalog, "reader", &[], None);
        for (query, expected) in
            [("pear", &["mail.send"][..]), ("plum", &[]), ("mail", &["mail.send"])]
        {
            assert_eq!(found(&view, &Query::new(query)), *expected, "{more} {query}");
            assert_eq!(
                found(&view, &Query { domain: Some("mail"), ..Query::new(query) }),
                *expected,
                "{more} {query}"
            );
        }
    }
    let hidden = doc("mail.send", "disable-model-invocation: true\n", "pear");
    let view =
        all(skills(&[("mail/SKILL.md", "---\ndomain: mail\n---\n"), ("mail/send.md", &hidden)]));
    assert_eq!(found(&view, &Query { domain: Some("mail"), ..Query::new("pear") }), [""; 0]);
}

#[test]
fn filters_and_limits() {
    let view = sample();
    let tags = |tags: &[&str]| tags.iter().map(|tag| tag.to_string()).collect::<Vec<_>>();
    let (inbox, both, none) = (tags(&["inbox"]), tags(&["inbox", "mail"]), tags(&["Inbox"]));
    let all = Query::new("message inbox");
    let rows: &[(Query, &[&str])] = &[
        (all, &["email.search", "notes", "email.send", "long"]),
        (Query { limit: 2, ..all }, &["email.search", "notes"]),
        (Query { limit: 0, ..all }, &[]),
        (Query { kind: Some(Kind::Command), ..all }, &["email.search", "email.send"]),
        (Query { kind: Some(Kind::Note), ..all }, &[]),
        (Query { domain: Some("email"), limit: 1, ..all }, &["email.search"]),
        (Query { domain: Some("none"), ..all }, &[]),
        (Query { tags: &inbox, ..all }, &["email.search", "notes"]),
        (Query { tags: &both, ..all }, &["email.search"]),
        (Query { tags: &none, ..all }, &[]),
    ];
    for (query, expected) in rows {
        assert_eq!(found(&view, query), *expected, "{query:?}");
    }
    // A filter removes hits and changes nothing else.
    let some = view.search(&Query { kind: Some(Kind::Command), ..all });
    let rest: Vec<_> = view.search(&all).into_iter().filter(|hit| some.contains(hit)).collect();
    assert_eq!(some, rest);
}

#[test]
fn only_the_beginning_of_a_query_counts() {
    let view = sample();
    let words = |count: usize| format!("{}message", "zebra ".repeat(count));
    assert_eq!(found(&view, &Query::new(&words(1))).len(), 3);
    // Repeated words are one word.
    assert_eq!(found(&view, &Query::new(&words(40))).len(), 3);
    let different = |count: u8| -> String {
        (0..count).map(|at| format!("zz{}{} ", (b'a' + at / 26) as char, at % 26)).collect()
    };
    assert_eq!(found(&view, &Query::new(&format!("{}message", different(31)))).len(), 3);
    assert_eq!(found(&view, &Query::new(&format!("{}message", different(32)))).len(), 0);
    assert_eq!(found(&view, &Query::new(&format!("{}message", " ".repeat(2041)))).len(), 3);
    assert_eq!(found(&view, &Query::new(&format!("{}message", " ".repeat(2048)))).len(), 0);
}

#[test]
fn equals_are_in_the_order_of_their_names() {
    let names = ["c", "a", "b"]
        .map(|name| (format!("{name}.md"), format!("---\nname: {name}\ndescription: same\n---\n")));
    let files: Vec<_> = names.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let view = all(skills(&files));
    assert_eq!(found(&view, &Query::new("same")), ["a", "b", "c"]);
    assert_eq!(found(&view, &Query { limit: 2, ..Query::new("same") }), ["a", "b"]);
}

fn marked(hit: &Hit) -> String {
    let mut text = hit.snippet.text.clone();
    for (start, length) in hit.snippet.highlights.iter().rev() {
        text.insert(start + length, ']');
        text.insert(*start, '[');
    }
    text
}

#[test]
fn shows_the_part_that_matches() {
    let view = sample();
    let rows = [
        ("kubernetes checklist", "# Before Read the [checklists]. ## [Kubernetes]"),
        ("cafe grosse größe", "Keeps what a [café] said: [größe]."),
        ("rolling", "About deployApp"),
        ("email.send", "About [email].[send]"),
        (
            "deployment",
            &format!("…{}[deployment] of a message{}…", "word ".repeat(12), " word".repeat(23)),
        ),
    ];
    for (query, expected) in rows {
        let hits = view.search(&Query::new(query));
        // Other entries have words that are alike.
        let named =
            |hit: &&Hit| query != "deployment" || &*view.entry(hit.id).unwrap().name == "long";
        assert_eq!(marked(hits.iter().find(named).unwrap()), expected, "{query}");
    }
}

#[test]
fn shows_the_part_with_most_words() {
    let gap = |bytes: usize| " ".repeat(bytes);
    let rows = [
        // Both words in a snippet, in one part of the body, in two, and too far apart.
        (format!("pear{}pear plum", gap(300)), "…[pear] [plum]"),
        (format!("{}pear{}plum", gap(500), gap(100)), "[pear] [plum]"),
        (format!("{}pear plum", gap(1022)), "[pear] [plum]"),
        (format!("plum{}pear", gap(300)), "[plum]…"),
        (format!("plum{}pear{}pear", gap(300), gap(9)), "…[pear] [pear]"),
        (format!("plum pear{}pear plum plum", gap(2000)), "[plum] [pear]…"),
        // A mark that is a letter too begins a word.
        ("a \u{345}plum".to_owned(), "a [\u{345}plum]"),
        // The last part with a bit, and text beyond it.
        (format!("{}plum pear", gap(8 * 1024 - 2)), "[plum] [pear]"),
        (format!("{}plum", gap(8 * 1024 - 1)), "About x"),
    ];
    for (body, expected) in rows {
        let view = all(skills(&[("x.md", &doc("x", "", &body))]));
        assert_eq!(marked(&view.search(&Query::new("plum pear"))[0]), expected, "{}", body.len());
    }
}

#[test]
fn a_later_generation_answers_as_one_that_was_made_anew() {
    let texts = |second: &str, name: &str| {
        [
            ("a.md".to_owned(), doc("a", "", "apples and pears")),
            ("b.md".to_owned(), doc("b", "", second)),
            ("d.md".to_owned(), doc(name, "", "plums and pears")),
        ]
    };
    let first = source_of(&texts("plums", "d"));
    let queries = ["apple", "pear", "plum", "cherry", "a", "d", "c", "and"];
    let same = |documents: &skillbook_core::catalog::assemble::Assembled,
                next: Arc<CachedCatalog>| {
        let anew = all(Catalog::build(2, vec![again(documents)]));
        let next = View::new(next, &Profile::unrestricted()).unwrap();
        for query in queries {
            assert_eq!(next.search(&Query::new(query)), anew.search(&Query::new(query)), "{query}");
        }
    };
    let before = all(Catalog::build(1, vec![again(&first)]));
    before.search(&Query::new("a"));
    for changed in [texts("plums", "d"), texts("cherries", "d"), texts("plums", "c")] {
        // An unchanged file is the same document, as after a reload.
        let mut second = source_of(&changed);
        for (old, new) in first.entries.iter().zip(&mut second.entries) {
            if old.document.text == new.document.text {
                *new = old.clone();
            }
        }
        let next = common::cached(Catalog::build(2, vec![again(&second)]));
        next.follow(before.catalog());
        // A generation without a search passes on the index that it was given.
        let third = common::cached(Catalog::build(3, vec![again(&second)]));
        third.follow(&next);
        same(&second, next);
        same(&second, third);
    }
}

#[test]
fn a_later_generation_knows_documents_of_one_name_apart() {
    let of = |name: &str, body: &str| {
        source(name, SourceKind::Skills, &[], &[("a.md", &doc("a", "", body))])
    };
    let [one, two, three] =
        [("s", "apples"), ("t", "pears"), ("u", "plums")].map(|(name, body)| of(name, body));
    let before = all(Catalog::build(1, vec![one.clone(), two.clone(), three.clone()]));
    before.search(&Query::new("a"));
    for (sources, found) in [
        (vec![one.clone(), three.clone()], "plums"),
        (vec![one.clone(), two.clone()], "pears"),
        (vec![three.clone(), one.clone()], "apples"),
        (vec![one.clone(), one.clone()], "apples"),
    ] {
        let next = common::cached(Catalog::build(2, sources));
        next.follow(before.catalog());
        let next = View::new(next, &Profile::unrestricted()).unwrap();
        let having = |query: &&str| !next.search(&Query::new(query)).is_empty();
        assert_eq!(
            ["apples", "pears", "plums"].into_iter().filter(having).collect::<Vec<_>>(),
            [found]
        );
    }
}

/// A record of a tenant with some of the words.
fn written(id: i64, tenant: usize, at: usize) -> Record {
    let tenant = ["", "near", "far"].get(tenant).filter(|name| !name.is_empty());
    let word = |step: usize| WORDS[(at / step + id as usize) % WORDS.len()];
    Record {
        id,
        title: format!("{} {}", word(1), word(7)),
        tenant: tenant.map(|name| name.to_string()).into(),
        content: format!("{} and {} w{}x", word(3), word(5), at % 50).into(),
        ..common::record(&format!("{}-{id}", word(2)), "")
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Over a history in which segments are shared, grow, lose most of their documents and are
    /// made one, a search finds what it finds in an index made from nothing.
    #[test]
    fn searches_stay_right_over_a_history(
        steps in proptest::collection::vec(
            (0..4usize, 0..3usize, 0..600i64, 1..300i64, 0..5_000usize),
            1..12,
        ),
        by_tenant in any::<bool>(),
    ) {
        let store = Source { root: "/s".into(), kind: SourceKind::Stored, ..Source::default() };
        let store = Arc::new(store);
        let parts = Parts::new(Some(store.clone()));
        if by_tenant {
            parts.hold(0);
        }
        let mut records: BTreeMap<i64, Record> = BTreeMap::new();
        let mut base = source_of(&[]);
        let readers = ["", "near", "far"].map(|name| Profile {
            tenant: Some(name.to_owned()).into(),
            ..Profile::unrestricted()
        });
        let readers = readers.into_iter().chain([Profile::unrestricted()]);
        let readers: Vec<Profile> = readers.collect();
        for (kind, tenant, first, count, at) in steps {
            // Some parts are packed or forgotten between, and others held by a limit.
            (0..at % 3).for_each(|_| parts.rest());
            parts.forget();
            parts.limit(if at % 2 == 0 { usize::MAX } else { 100_000 });
            let ids = first..first + count;
            match kind {
                0 | 1 => {
                    let put: Vec<Record> = ids.map(|id| written(id, tenant, at)).collect();
                    records.extend(put.iter().map(|record| (record.id, record.clone())));
                    parts.put(put.iter().map(|record| parts.read(record)).collect(), &[]);
                }
                2 => {
                    records.retain(|id, _| !ids.contains(id));
                    parts.put(Vec::new(), &ids.map(|id| (id, "".into())).collect::<Vec<_>>());
                }
                _ => {
                    let text = |id: i64| doc(&format!("file-{id}"), "", WORDS[at % WORDS.len()]);
                    let files = ids.step_by(9).map(|id| (format!("file-{id}.md"), text(id)));
                    base = source_of(&files.collect::<Vec<_>>());
                    parts.publish(vec![Some(base.clone()), None], Arc::default());
                }
            }
            let documents = records.values().map(|r| Arc::new(Document::stored("/s", r))).collect();
            let all = assemble(&store, documents, Vec::new());
            let anew = common::cached(Catalog::build(1, vec![base.clone(), all]));
            for reader in &readers {
                let whole = View::new(anew.clone(), reader).unwrap();
                let part = common::view_of(&parts, &records, reader);
                for query in ["send", "mails sends", "w7x", "sned", "file-9", "mial and w"] {
                    let hits = |view: &View| -> Vec<_> {
                        let hits = view.search(&Query { limit: 50, ..Query::new(query) });
                        let name = |id| view.entry(id).unwrap().name.clone();
                        hits.into_iter().map(|h| (name(h.id), h.score, h.snippet)).collect()
                    };
                    prop_assert_eq!(hits(&part), hits(&whole), "{}", query);
                }
            }
        }
    }
}

fn source_of(files: &[(String, String)]) -> skillbook_core::catalog::assemble::Assembled {
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    source("s", SourceKind::Skills, &[], &files)
}

fn again(
    one: &skillbook_core::catalog::assemble::Assembled,
) -> skillbook_core::catalog::assemble::Assembled {
    let mut copy = source_of(&[]);
    copy.entries = one.entries.clone();
    copy
}

const WORDS: [&str; 12] = [
    "send",
    "sends",
    "sending",
    "mail",
    "email",
    "mial",
    "sendMail",
    "größe",
    "report",
    "reports",
    "reporting",
    "a",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..12)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn hidden_entries_change_nothing(
        texts in proptest::collection::vec((text(), text(), 0..3u8), 1..12),
        queries in proptest::collection::vec(text(), 1..6),
    ) {
        let document = |(at, (description, body, hidden)): (usize, &(String, String, u8))| {
            let more = ["", "visibility_labels: [secret]\n", "disable-model-invocation: true\n"]
                [*hidden as usize];
            let name = format!("{}-{at}", WORDS[at % WORDS.len()]);
            let text = format!(
                "---\nname: {name}\naliases: [alias{at}]\ndescription: about \
                 {description}\n{more}---\n{body}\n"
            );
            (format!("{name}.md"), text, *hidden == 0)
        };
        let files: Vec<_> = texts.iter().enumerate().map(document).collect();
        let catalog = |all: bool| {
            let shown = files.iter().filter(|(.., shown)| all || *shown);
            let files: Vec<_> =
                shown.map(|(path, text, _)| (path.as_str(), text.as_str())).collect();
            view(&common::cached(skills(&files)), "reader", &[], None)
        };
        let (with, without) = (catalog(true), catalog(false));
        let answers = |view: &View, query: &str| -> Vec<_> {
            let hits = view.search(&Query { limit: 5, ..Query::new(query) });
            hits.into_iter()
                .map(|hit| (view.entry(hit.id).unwrap().name.to_string(), hit.score, hit.snippet))
                .collect()
        };
        let names = files.iter().map(|(path, ..)| path.trim_end_matches(".md"));
        for query in queries
            .iter()
            .map(String::as_str)
            .chain(names)
            .chain(WORDS)
            .chain(["alias1", "repotr", "se"])
        {
            prop_assert_eq!(answers(&with, query), answers(&without, query), "{}", query);
        }
    }

    #[test]
    fn highlights_are_the_words_of_the_snippet(
        body in "(send|MAIL|größe|\u{301}|…|日本|[ \n\t]|[a-zé#]{1,30}){0,80}",
        query in "(send|mail|gro|\u{345}|日|[ A-Zé.]){0,12}",
    ) {
        let view = all(skills(&[("x.md", &doc("x", "", &body))]));
        for hit in view.search(&Query::new(&query)) {
            let text = hit.snippet.text.as_str();
            prop_assert!(!text.contains(['\n', '\t']) && !text.contains("  "), "{text:?}");
            prop_assert!(text.len() <= 200 + 64 + 2 * '…'.len_utf8(), "{}", text.len());
            let mut end = 0;
            for (start, length) in hit.snippet.highlights {
                prop_assert!(start >= end && length > 0);
                end = start + length;
                prop_assert!(text[start..end].chars().all(|c| !c.is_whitespace()));
            }
        }
    }
}
