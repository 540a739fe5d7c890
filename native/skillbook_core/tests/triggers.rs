//! The entries that may be loaded for a request, and their keywords.

mod common;

use common::{all, cached, doc, skills, source_of, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::view::triggers::LONGEST;
use skillbook_core::view::{Profile, View};

fn triggered(view: &View, text: &str) -> Vec<(String, String)> {
    let named = |id| view.entry(id).unwrap().name.to_string();
    view.triggered(text).into_iter().map(|found| (named(found.id), found.keyword)).collect()
}

#[test]
fn keywords_are_words_and_not_parts_of_words() {
    // The keyword, a text, and whether the keyword is in it.
    let rows = [
        ("light", "Turn on the light!", true),
        ("light", "LIGHTS on", true),
        ("lights", "a light", true),
        ("light", "a highlight, delightful", false),
        ("light", "lighting", false),
        ("light", "light-hearted", true),
        ("query", "two queries", true),
        ("café", "CAFES nearby", true),
        ("cafe", "im Café\u{301}", true),
        ("short poem", "two short poems, please", true),
        ("short poem", "Short, poem", true),
        ("short poem", "a short and sad poem", false),
        ("short poem", "poem short", false),
        ("short poem", "short", false),
        ("to-do list", "my to do list", true),
        ("c", "C, please", true),
        ("größe", "Die GRÖSSE passt nicht", false),
        ("größe", "welche Größe?", true),
        ("погода", "какая ПОГОДА завтра", true),
        ("погода", "непогода", false),
        ("天気", "今日の天気は？", true),
        ("天気", "天使", false),
        ("メール", "ﾒｰﾙを送って", true),
        ("がん", "かん", false),
        ("날씨", "오늘 날씨가 어때?", true),
        ("날씨", "봄날씨", false),
        ("회의 일정", "회의 일정을 알려줘", true),
        ("가", "강", false),
        ("อากาศ", "วันนี้อากาศเป็นอย่างไร", true),
        ("", "anything", false),
        ("!?", "!?", false),
    ];
    for (keyword, text, expected) in rows {
        let fields = format!("trigger_keywords: [\"{keyword}\"]\n");
        let view = all(skills(&[("a.md", &doc("a", &fields, ""))]));
        let found = triggered(&view, text);
        let wanted = if expected { vec![("a".to_owned(), keyword.to_owned())] } else { Vec::new() };
        assert_eq!(found, wanted, "{keyword:?} in {text:?}");
    }
}

#[test]
fn the_longest_keyword_comes_first_then_the_place_then_the_name() {
    let files = [
        ("a.md", doc("a", "trigger_keywords: [tea, green tea]\n", "")),
        ("b.md", doc("b", "trigger_keywords: [tea]\n", "")),
        ("c.md", doc("c", "trigger_keywords: [tea, cup]\n", "")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let view = all(skills(&files));
    let names = |text| -> Vec<String> {
        triggered(&view, text)
            .into_iter()
            .map(|(name, keyword)| format!("{name}: {keyword}"))
            .collect()
    };
    assert_eq!(names("tea"), ["a: tea", "b: tea", "c: tea"]);
    assert_eq!(names("a cup of tea"), ["c: cup", "a: tea", "b: tea"]);
    assert_eq!(names("a cup of green tea"), ["a: green tea", "c: cup", "b: tea"]);
}

#[test]
fn only_skills_and_commands_of_the_prompt_are_picked() {
    let key = "trigger_keywords: [tea]\n";
    let page = |name: &str, more: &str| doc(name, &format!("{key}{more}"), "");
    let files = [
        ("skill.md", page("skill", "")),
        ("d/run.md", page("d.run", "")),
        ("out.md", page("out", "include_in_prompt: false\n")),
        ("mine.md", page("mine", "include_in_prompt: false\nproactive_for_profile_ids: [ann]\n")),
        ("not.md", page("not", "exclude_from_prompt_profile_ids: [ann]\n")),
        ("people.md", page("people", "disable-model-invocation: true\n")),
        ("secret.md", page("secret", "visibility_labels: [boss]\n")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let notes = [("note.md", format!("---\ntitle: note\n{key}---\nText."))];
    let notes: Vec<_> = notes.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let low = [("low.md", page("low", "proactive_for_profile_ids: [ann]\n"))];
    let low: Vec<_> = low.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let source =
        |name: &str, kind, trust| Source { name: name.into(), kind, trust, ..Source::default() };
    let catalog = cached(Catalog::build(
        1,
        vec![
            source_of(source("s", SourceKind::Skills, Trust::Medium), &files),
            source_of(source("n", SourceKind::Notes, Trust::Medium), &notes),
            source_of(source("l", SourceKind::Skills, Trust::Low), &low),
        ],
    ));

    // The profile and those that it acts for; the entries that may be picked, those with the
    // keyword, those it always gets.
    type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let rows: [Row; 3] = [
        (&["ann"], &["d.run", "low", "mine", "skill"], &["d.run", "mine", "skill"], &["mine"]),
        (&["bob"], &["d.run", "low", "not", "skill"], &["d.run", "not", "skill"], &[]),
        (
            &["bob", "ann"],
            &["d.run", "low", "mine", "skill"],
            &["d.run", "mine", "skill"],
            &["mine"],
        ),
    ];
    for (ids, pickable, with_keyword, proactive) in rows {
        let profile = ids.join(" for ");
        let others = ids[1..].iter().map(|id| id.to_string()).collect();
        let own = view(&catalog, ids[0], &[], None).profile().clone();
        let view = View::new(catalog.clone(), &Profile { others, ..own }).unwrap();
        let name = |id| &*view.entry(id).unwrap().name;
        let may = view.entries().filter(|(id, _)| view.may_pick(*id));
        assert_eq!(may.map(|(_, entry)| &*entry.name).collect::<Vec<_>>(), pickable, "{profile}");
        let all = view.pickable().map(|(_, entry)| &*entry.name);
        assert_eq!(all.collect::<Vec<_>>(), pickable, "{profile}");
        let found: Vec<_> = view.triggered("tea").iter().map(|found| name(found.id)).collect();
        assert_eq!(found, with_keyword, "{profile}");
        assert_eq!(view.proactive().map(name).collect::<Vec<_>>(), proactive, "{profile}");
    }
}

#[test]
fn only_the_beginning_of_a_long_text_counts() {
    let view = all(skills(&[("a.md", &doc("a", "trigger_keywords: [tea]\n", ""))]));
    let long = "é ".repeat(LONGEST / 3);
    assert_eq!(triggered(&view, &format!("tea {long}")).len(), 1);
    assert_eq!(triggered(&view, &format!("{long} tea")), []);
}
