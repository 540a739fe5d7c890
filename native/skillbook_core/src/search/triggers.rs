//! Keywords that are looked up in a text: whole words, in any case, with or without accents and
//! plural endings. The words of a phrase follow each other. Where a language writes no spaces
//! between words, a keyword may be anywhere; in Korean it begins a word, since particles are
//! written at its end.

use rustc_hash::{FxHashMap, FxHashSet};
use unicode_normalization::UnicodeNormalization;

use super::words::{stemmed, words};

/// A keyword as it is compared, or as one of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Words between spaces.
    Spaced,
    /// Words between spaces, with endings that are written without one.
    Agglutinated,
    /// No spaces between words.
    Unspaced,
}

/// A keyword of an owner, which is an entry by its place in the catalog.
#[derive(Debug)]
pub struct Keyword {
    /// The owner.
    pub owner: u32,
    /// The keyword as it was written.
    pub text: String,
    /// Its words as they are compared; one text for an unspaced script.
    words: Vec<String>,
    script: Script,
}

impl Keyword {
    /// The number of its words; one for an unspaced script.
    pub fn words(&self) -> usize {
        self.words.len()
    }
}

/// The keywords of the entries that a view may pick.
#[derive(Debug)]
pub struct Triggers {
    all: Vec<Keyword>,
    /// The keywords between spaces, by their first word.
    by_first: FxHashMap<String, Vec<usize>>,
    /// The others.
    others: Vec<usize>,
}

impl Triggers {
    /// The keywords of each owner. Those without a word, and those that are compared like another
    /// one of their owner, are left out.
    pub fn new(owners: impl Iterator<Item = (u32, Vec<String>)>) -> Triggers {
        let mut all = Vec::new();
        for (owner, keywords) in owners {
            let mut seen = FxHashSet::default();
            for text in keywords {
                let script = script(&text);
                let words = compared(&text, script);
                if !words.is_empty() && seen.insert(words.clone()) {
                    all.push(Keyword { owner, text, words, script });
                }
            }
        }
        let mut by_first: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        let mut others = Vec::new();
        for (at, keyword) in all.iter().enumerate() {
            match keyword.script {
                Script::Spaced => by_first.entry(keyword.words[0].clone()).or_default().push(at),
                _ => others.push(at),
            }
        }
        Triggers { all, by_first, others }
    }

    /// The keywords in a text, with the place of the first occurrence of each.
    pub fn find(&self, text: &str) -> Vec<(usize, &Keyword)> {
        let spaced = compared(text, Script::Spaced);
        let mut found = Vec::new();
        for at in 0..spaced.len() {
            for keyword in self.by_first.get(&spaced[at]).into_iter().flatten() {
                let keyword = &self.all[*keyword];
                if spaced[at..].starts_with(&keyword.words) {
                    found.push((at, keyword));
                }
            }
        }
        if !self.others.is_empty() {
            let agglutinated = compared(text, Script::Agglutinated);
            let unspaced = plain(text);
            for keyword in self.others.iter().map(|at| &self.all[*at]) {
                let place = match keyword.script {
                    Script::Agglutinated => {
                        agglutinated.windows(keyword.words.len()).position(|window| {
                            window
                                .iter()
                                .zip(&keyword.words)
                                .all(|(word, wanted)| word.starts_with(wanted))
                        })
                    }
                    _ => unspaced.find(&keyword.words[0]),
                };
                found.extend(place.map(|place| (place, keyword)));
            }
        }
        found
    }
}

/// The script that decides how a keyword is compared.
fn script(text: &str) -> Script {
    let mut script = Script::Spaced;
    for c in text.chars() {
        match c {
            // Thai, Lao, Myanmar, Khmer, kana, and the characters of Chinese and Japanese.
            '\u{E00}'..='\u{EFF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30FF}'
            | '\u{31F0}'..='\u{31FF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF66}'..='\u{FF9D}'
            | '\u{20000}'..='\u{3FFFF}' => return Script::Unspaced,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7AF}' => {
                script = Script::Agglutinated
            }
            _ => {}
        }
    }
    script
}

/// The words of a text as they are compared.
fn compared(text: &str, script: Script) -> Vec<String> {
    match script {
        Script::Spaced => {
            words(text).map(|place| stemmed(&text[place])).filter(|word| !word.is_empty()).collect()
        }
        Script::Agglutinated => {
            let text = plain(text);
            words(&text).map(|place| text[place].to_owned()).collect()
        }
        Script::Unspaced => vec![plain(text.trim())],
    }
}

/// A text in lower case and full-width letters in their usual form. Marks stay: without them kana
/// are other letters, and syllables of Korean fall apart.
fn plain(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).collect()
}
