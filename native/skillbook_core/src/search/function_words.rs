//! Words that say nothing about the subject of a text: articles, pronouns, prepositions.
//!
//! They are a fixed list, because a rule by rarity fails where a search matters most: among few
//! entries, "what" is a rare word.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::words::{folded, stemmed};

/// The words by language, English first. `docs/vaults.md` lists the English ones.
const LANGUAGES: [&str; 8] = [
    // English
    "a about am an and any are as at be been being but by can could did do does for from had has \
     have he her here him his how i if in into is it its me my no nor not of on or our she \
     should so some than that the their them then there these they this those to us was we were \
     what when where which who whom whose why will with would you your",
    // German
    "aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem den der \
     des dich die dir doch du durch ein eine einem einen einer eines er es euch für gibt haben \
     habe hast hat hier ich ihm ihn ihnen ihr ihre im in ins ist ja kann kannst können \
     könntest man mein meine meinem meinen meiner mich mir mit möchte nach nicht noch nun nur \
     ob oder ohne sein seine sich sie sind so über um und uns unser von vom vor war warum was \
     welche welchen welcher welches wenn wer werden wie will wir wird wo würde zu zum zur",
    // French
    "à ai au aux avec avez avoir ce ces cet cette comme comment dans de des du elle elles en \
     est et été être eux il ils j je l la là le les leur leurs lui ma mais me mes moi mon ne \
     nos notre nous on ont ou où par pas peut peux pour pouvez qu quand que quel quelle quelles \
     quels qui quoi sa sans se ses si son sont sur suis ta te tes toi ton tu un une vos votre \
     vous y",
    // Spanish
    "a al algo algunos ante antes como cómo con cual cuál cuando cuándo de del desde donde \
     dónde e el él ella ellos en entre era eres es esa ese eso esta está estas este esto \
     estos estoy fue ha hay he la las le les lo los más me mi mis mí muy nada ni no nos \
     nosotros o para pero por porque puede puedes que qué quien quién se ser si sí sin sobre \
     son soy su sus también te tengo tiene tu tus tú un una uno unos y ya yo",
    // Italian
    "a ad agli ai al alla alle allo anche c che chi ci come con cosa cui da dal dalla dalle dei \
     del della delle dello di dove e è ed era gli ha hai hanno ho i il in io l la le lei lo \
     loro lui ma mi mia mie miei mio ne nei nel nella nelle no noi non o per perché più può \
     puoi qual quale quali quando quello questa queste questi questo se sei si sia sono su sua \
     sue sugli sul sulla suo te ti tra tu tua tuo un una uno vi voi",
    // Portuguese
    "a à ao aos as às até com como da das de dele dela do dos e é ela elas ele eles em entre \
     era essa esse esta está este estou eu foi há isso isto já lhe mais mas me meu meus minha \
     minhas muito na não nas nem no nos nós o onde os ou para pela pelas pelo pelos pode por \
     porque posso qual quais quando que quem são se sem ser seu seus sua suas também te tem \
     tenho teu tu tua um uma você vocês",
    // Dutch
    "aan al als bij ben bent dan dat de der deze die dit door een en er geen had hebben heb hebt \
     heeft het hij hoe hun ik in is je jij jou jouw kan kun kunnen maar me met mij mijn naar \
     niet nog nu of om onder ons onze ook op over te tot u uit uw van veel voor waar waarom was \
     wat we wel welke wie wil wij worden wordt ze zich zij zijn zo zou",
    // Russian
    "а без бы был была были было быть в вам вас весь во \
     вот все всё вы где да для до его ее её если есть еще \
     ещё же за и из или им их к как какая какие какой ко \
     когда кто ли меня мне можно мой моя мы на над нам \
     нас не него нет ни но о об он она они оно от по под \
     при про с со так такой там то того тоже только тот \
     ты у уже хочу чего чем что чтобы эта эти это этот я",
];

/// The bit of English in [`languages`].
pub const ENGLISH: u8 = 1;

/// By term, and by form.
type Words = LazyLock<FxHashMap<String, u8>>;
static TERMS: Words = LazyLock::new(|| by(stemmed));
static FORMS: Words = LazyLock::new(|| by(folded));

fn by(key: fn(&str) -> String) -> FxHashMap<String, u8> {
    let mut words = FxHashMap::default();
    for (at, list) in LANGUAGES.iter().enumerate() {
        for word in list.split(' ') {
            *words.entry(key(word)).or_default() |= 1 << at;
        }
    }
    words
}

fn find(words: &Words, word: &str) -> u8 {
    // The longest is "könntest".
    if word.len() > 12 {
        return 0;
    }
    words.get(word).copied().unwrap_or(0)
}

/// A bit for each language in which a term is a function word.
pub fn languages(term: &str) -> u8 {
    find(&TERMS, term)
}

/// A bit for each language in which a folded word is a function word. Unlike its term, "wills" is
/// none.
pub fn languages_of_form(form: &str) -> u8 {
    find(&FORMS, form)
}

/// The language of a query: the one with most of its different function words. Other languages than
/// English must have two, since many of their short words are English words ("die", "mit").
pub fn language<'a>(terms: impl Iterator<Item = &'a str>) -> u8 {
    let mut found: Vec<&str> = terms.filter(|term| languages(term) != 0).collect();
    found.sort_unstable();
    found.dedup();
    let count = |bit: u8| found.iter().filter(|term| languages(term) & bit != 0).count();
    let others = (1..LANGUAGES.len()).map(|at| 1 << at);
    let best = others.map(|bit| (count(bit), bit)).reduce(|best, other| {
        // Of equals the first.
        if other.0 > best.0 {
            other
        } else {
            best
        }
    });
    match best {
        Some((words, bit)) if words > 1 && words > count(ENGLISH) => bit,
        _ => ENGLISH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_query_decides() {
        let german = 1 << 1;
        for (text, expected) in [
            ("", ENGLISH),
            ("plan", ENGLISH),
            ("what is the plan", ENGLISH),
            ("mit license", ENGLISH),
            ("die mit the plan of a", ENGLISH),
            ("wie wird das wetter in berlin", german),
            ("est-ce que tu peux traduire ce texte", 1 << 2),
            ("que tiempo hace en madrid con este viento", 1 << 3),
            ("come si dice gatto in inglese per favore non", 1 << 4),
            ("voce pode traduzir isso para mim", 1 << 5),
            ("hoe is het weer vandaag in amsterdam", 1 << 6),
            ("какая погода в москве на завтра", 1 << 7),
        ] {
            let terms: Vec<String> = text.split([' ', '-']).map(stemmed).collect();
            assert_eq!(language(terms.iter().map(String::as_str)), expected, "{text}");
        }
    }

    #[test]
    fn forms_of_function_words_are_none() {
        for (form, term, expected) in
            [("will", "will", true), ("wills", "will", false), ("does", "doe", true)]
        {
            assert!(languages(term) & ENGLISH != 0, "{term}");
            assert_eq!(languages_of_form(form) & ENGLISH != 0, expected, "{form}");
        }
    }

    #[test]
    fn no_word_is_too_long() {
        let longest = TERMS.keys().chain(FORMS.keys()).map(String::len).max();
        assert!(longest <= Some(12), "{longest:?}");
    }
}
