//! The texts of `--help`: files of this crate, which the Elixir command line reads too.
//!
//! A line `@NAME` stands for the text of `parts/NAME.txt`.

macro_rules! texts {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../help/", $folder, $name, ".txt")))),*]
    };
}

const OVERVIEW: &str = include_str!("../help/overview.txt");

const COMMANDS: &[(&str, &str)] = texts!("":
    "run" "shell" "chat" "prompt" "tools" "grammar" "get" "list" "search" "usage" "schedule"
    "breaker" "approvals" "runs" "servers" "serve" "token" "mcp" "connect" "disconnect"
    "connections" "init" "new" "lint" "test" "route" "explain" "install" "update" "outdated"
    "restore" "remove" "export" "publish" "import" "completions"
);

const PARTS: &[(&str, &str)] =
    texts!("parts/": "accounts" "chat" "embedder" "global" "model" "names" "pointer" "shell");

/// The help of all commands.
pub fn overview() -> String {
    expanded(OVERVIEW)
}

/// The help of a command; `None` for an unknown one. The overview has the global options.
pub fn command(name: &str) -> Option<String> {
    let text = find(COMMANDS, name)?;
    Some(format!("{}\n{}", expanded(text), expanded("@pointer\n")))
}

/// The names of all commands with their summaries, in the order of the overview. The last one is
/// `help`.
pub fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let list = OVERVIEW.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.trim_start().split_once(' '))
        .map(|(name, text)| (name, text.trim()))
}

/// The help of a command without the global options, for man pages and completions.
pub fn own(name: &str) -> String {
    expanded(find(COMMANDS, name).unwrap_or(OVERVIEW))
}

/// The advice about a word that is no command, and that other programs have as one.
pub fn meant(word: &str) -> Option<&'static str> {
    let lines = find(PARTS, "names").unwrap_or_default().lines();
    lines
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == word)
        .map(|(_, text)| text.trim_start())
}

fn find(texts: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    texts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn expanded(text: &str) -> String {
    let part = |line: &str| line.strip_prefix('@').and_then(|name| find(PARTS, name.trim_end()));
    text.split_inclusive('\n').map(|line| part(line).unwrap_or(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_overview_has_a_help() {
        let names: Vec<&str> = commands().map(|(name, _)| name).collect();
        assert_eq!(names.last(), Some(&"help"));
        let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names[..names.len() - 1], known);
    }

    #[test]
    fn no_command_is_taken_for_another_one() {
        let names = find(PARTS, "names").unwrap();
        assert_eq!(
            names.lines().filter_map(|line| line.split_once(' ')).count(),
            names.lines().count()
        );
        assert!(commands().all(|(name, _)| meant(name).is_none()));
    }

    #[test]
    fn parts_are_included() {
        for text in COMMANDS.iter().map(|(name, _)| command(name).unwrap()).chain([overview()]) {
            assert!(!text.contains("\n@"), "{text}");
        }
        assert!(overview().contains("\nGlobal options:\n  --dir DIR "));
        assert!(command("lint").unwrap().ends_with("\nskillbook --help lists them.\n"));
    }
}
