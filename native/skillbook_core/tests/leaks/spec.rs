//! Documents with markers: each holds a word that no other one has.

use proptest::prelude::*;

pub const LABELS: [&str; 3] = ["red", "green", "blue"];

#[derive(Debug, Clone)]
pub struct Spec {
    pub kind: u8,
    pub domain: u8,
    pub labels: Vec<&'static str>,
    pub in_prompt: bool,
    pub excluded: bool,
    pub shares_alias: bool,
    pub wrong_name: bool,
    /// The number of another entry whose name this one takes, in a later source.
    pub replaces: Option<usize>,
}

pub fn labels() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(LABELS.to_vec(), 0..=LABELS.len())
}

pub fn spec() -> impl Strategy<Value = Spec> {
    let flags = (any::<bool>(), proptest::bool::weighted(0.2), any::<bool>(), any::<bool>());
    let replaces = proptest::option::weighted(0.2, 0..6usize);
    (0..4u8, 0..2u8, labels(), flags, replaces).prop_map(
        |(kind, domain, labels, flags, replaces)| Spec {
            kind,
            domain,
            labels,
            in_prompt: flags.0,
            excluded: flags.1,
            shares_alias: flags.2,
            wrong_name: flags.3,
            replaces,
        },
    )
}

/// A word that only the document with this number contains.
pub fn marker(number: usize) -> String {
    format!("zq{}qz", (b'a' + number as u8) as char)
}

pub fn name(number: usize, spec: &Spec) -> String {
    match spec.kind {
        0 | 1 => format!("dom{}.{}", spec.domain, marker(number)),
        _ => format!("skill-{}", marker(number)),
    }
}

/// The name of a document's entry: its own, or one that it takes.
pub fn used_name(number: usize, specs: &[Spec]) -> String {
    let spec = &specs[number];
    let taken = spec.replaces.filter(|other| *other < specs.len() && spec.kind != 3);
    taken.map_or_else(|| name(number, spec), |other| name(other, &specs[other]))
}

pub fn document(number: usize, specs: &[Spec]) -> (String, String) {
    let (mark, spec) = (marker(number), &specs[number]);
    let name = used_name(number, specs);
    let mut text = format!(
        "---\ndescription: About {mark}\ntitle: Title {mark}\ntags: [{mark}]\nallowed-tools: \
         {mark}\nhandler: {mark}\n"
    );
    if spec.kind != 3 {
        text += &format!("name: {name}\n");
    }
    text += &format!(
        "visibility_labels: [{}]\ninclude_in_prompt: {}\n",
        spec.labels.join(", "),
        spec.in_prompt
    );
    if spec.excluded {
        text += "exclude_from_prompt_profile_ids: [reader]\n";
    }
    text +=
        &format!("aliases: [alias-{mark}{}]\n", if spec.shares_alias { ", shared" } else { "" });
    text += &format!(
        "---\n\n# {name}\n\n{mark}\n\n## Usage\n\n{name} --{mark}\n\n## \
         Flags\n\n--{mark}  A word\n"
    );
    let file = if spec.wrong_name { format!("other-{mark}") } else { mark.clone() };
    let path = match spec.kind {
        0 | 1 => format!("dom{}/{file}.md", spec.domain),
        2 => format!("skill-{mark}/SKILL.md"),
        _ => format!("skill-{mark}.md"),
    };
    (path, text)
}
