//! `skillbook completions`: completions for shells, and man pages, made of the texts of the help.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Arg, ArgAction, Command, ValueEnum, ValueHint};
use clap_complete::{generate, Shell};
use clap_mangen::roff::{roman, Roff};
use clap_mangen::Man;

use crate::arguments::{words, Options};
use crate::help;
use crate::output::{note, reason, usage_error, write};
use crate::Ended;

/// An option as the help describes it.
#[derive(Debug, PartialEq)]
struct Described {
    long: String,
    short: Option<char>,
    value: Option<String>,
    text: String,
}

pub fn run(options: &Options) -> Result<u8, Ended> {
    let wrong = |message: &str| Ok(usage_error(message, "completions --help"));
    match &options.args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["man", folder] => match man_pages(Path::new(folder)) {
            Ok(count) => {
                note(&format!("wrote {count} man pages into {folder}"));
                Ok(0)
            }
            Err(error) => {
                note(&format!("skillbook: {folder}: {}", reason(&error)));
                Ok(1)
            }
        },
        ["man"] => wrong("`completions man` expects a folder"),
        [shell] => match shell.parse::<Shell>() {
            Ok(shell) => {
                let mut script = Vec::new();
                generate(shell, &mut command(), "skillbook", &mut script);
                write(&String::from_utf8_lossy(&script))?;
                Ok(0)
            }
            Err(_) => {
                let names = "bash, zsh, fish, elvish, powershell or man";
                wrong(&format!("`completions` expects {names}, got: {shell}"))
            }
        },
        [] => wrong("`completions` expects a shell: bash, zsh, fish, elvish or powershell"),
        [_, other, ..] => wrong(&format!("`completions` takes one shell, got also: {other}")),
    }
}

/// The command line for clap, which completes it and writes man pages, but never parses it.
fn command() -> Command {
    let commands = help::commands().filter(|(name, _)| *name != "help");
    Command::new("skillbook")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Gives an assistant its skills")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(options(&help::overview()).into_iter().map(|one| arg("", one)))
        .subcommands(commands.map(|(name, summary)| subcommand(name, summary)))
}

fn subcommand(name: &'static str, summary: &'static str) -> Command {
    let text = help::own(name);
    let mut described = options(&text);
    // The options of `explain` are listed by their names, "as for `prompt`".
    let listed = text.split_once("\nOptions: ").map_or("", |(_, rest)| rest);
    let listed = listed.split_once("\n\n").map_or("", |(listed, _)| listed);
    let is_listed = |one: &Described| {
        listed.split([' ', ',', '\n']).any(|word| word.strip_prefix("--") == Some(&one.long))
    };
    described.extend(options(&help::own("prompt")).into_iter().filter(is_listed));
    let mut command = Command::new(name)
        .about(summary)
        .disable_help_flag(true)
        .args(described.into_iter().map(|one| arg(name, one)));
    if name == "completions" {
        let shells = Shell::value_variants().iter().map(Shell::to_string).chain(["man".to_owned()]);
        return command.arg(Arg::new("operand").value_parser(shells.collect::<Vec<_>>()));
    }
    let usage = text.lines().next().unwrap_or_default();
    if ["PATH", "FILE", "FOLDER", "SOURCE"].iter().any(|word| usage.contains(word)) {
        let path = Arg::new("operand").value_hint(ValueHint::AnyPath).action(ArgAction::Append);
        command = command.arg(path);
    }
    command
}

fn arg(command: &str, one: Described) -> Arg {
    let mut arg = Arg::new(one.long.clone()).long(one.long.clone()).help(one.text);
    if let Some(short) = one.short {
        arg = arg.short(short);
    }
    let Some(value) = one.value else { return arg.action(ArgAction::SetTrue) };
    let hint = match value.as_str() {
        "DIR" | "FOLDER" => ValueHint::DirPath,
        "FILE" => ValueHint::FilePath,
        "URL" => ValueHint::Url,
        "WHERE" | "DATABASE" | "PATH" => ValueHint::AnyPath,
        _ => ValueHint::Unknown,
    };
    arg = arg.value_name(value).value_hint(hint).action(ArgAction::Append);
    match words(command, &one.long) {
        Some(words) => arg.value_parser(words.to_vec()),
        None => arg,
    }
}

/// The options that a help describes: lines that begin with two spaces and a dash, with the lines
/// below them that are indented more.
fn options(help: &str) -> Vec<Described> {
    let mut found: Vec<Described> = Vec::new();
    // Several options may share a description.
    let mut open = 0;
    for line in help.lines() {
        let rest = line.strip_prefix("  ").unwrap_or_default();
        if rest.starts_with('-') {
            let (names, text) = rest.split_once("  ").unwrap_or((rest, ""));
            let described = names.split(", ").filter_map(|name| option(name, text.trim()));
            let described: Vec<Described> = described.collect();
            let short = names.strip_prefix('-').and_then(|names| names.chars().next());
            open = described.len();
            found.extend(described);
            if let (Some(last), Some(short)) = (found.last_mut(), short.filter(|c| *c != '-')) {
                last.short = Some(short);
            }
        } else if rest.starts_with("  ") && open > 0 {
            let start = found.len() - open;
            for one in &mut found[start..] {
                let space = if one.text.is_empty() { "" } else { " " };
                one.text = format!("{}{space}{}", one.text, rest.trim());
            }
        } else {
            open = 0;
        }
    }
    found
}

fn option(name: &str, text: &str) -> Option<Described> {
    let name = name.strip_prefix("--")?;
    let (long, value) = match name.split_once(' ') {
        Some((long, value)) => (long, Some(value.to_owned())),
        None => (name, None),
    };
    Some(Described { long: long.to_owned(), short: None, value, text: text.to_owned() })
}

/// Writes the page of each command, and that of all.
fn man_pages(folder: &Path) -> io::Result<usize> {
    fs::create_dir_all(folder)?;
    let command = command();
    fs::write(folder.join("skillbook.1"), man_page(&command, &help::overview())?)?;
    let mut count = 1;
    for one in command.get_subcommands() {
        let name = format!("skillbook-{}", one.get_name());
        let page = man_page(&one.clone().name(name.clone()), &help::own(one.get_name()))?;
        fs::write(folder.join(format!("{name}.1")), page)?;
        count += 1;
    }
    Ok(count)
}

fn man_page(command: &Command, help: &str) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // The text of an option names its values, and the synopsis the operands.
    let shown = |arg: Arg| match arg.get_action() {
        _ if arg.get_id() == "operand" => arg.hide(true),
        action if action.takes_values() => arg.hide_possible_values(true),
        _ => arg,
    };
    let command = command.clone().mut_args(shown);
    let man = Man::new(command.clone()).section("1").source("skillbook").manual("Skillbook");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let paragraphs: Vec<&str> = help.trim_end().split("\n\n").collect();
    let (usage, rest) =
        paragraphs.split_first().map_or(("", &[][..]), |(usage, rest)| (*usage, rest));
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = usage.replacen("Usage: ", "       ", 1);
    as_written(&mut roff, usage.lines().map(|line| line.strip_prefix("       ").unwrap_or(line)));
    roff.control("SH", ["DESCRIPTION"]);
    for paragraph in rest {
        let (first, below) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match first {
            "Options:" | "Global options:" | "Commands:" => {}
            "Examples:" => {
                roff.control("SH", ["EXAMPLES"]);
                let lines = below.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
                as_written(&mut roff, lines);
            }
            _ if first.starts_with("Exit status: ") => {
                roff.control("SH", ["EXIT STATUS"]);
                let text = paragraph.replacen("Exit status: ", "", 1).replace('\n', " ");
                roff.text([roman(text)]);
            }
            // Tables and samples keep their lines.
            _ if paragraph.lines().any(|line| line.starts_with("  ")) => {
                roff.control("PP", []);
                as_written(&mut roff, paragraph.lines());
            }
            _ => {
                roff.control("PP", []);
                roff.text([roman(paragraph.replace('\n', " "))]);
            }
        }
    }
    roff.to_writer(&mut page)?;
    if command.get_opts().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    Ok(page)
}

fn as_written<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_the_help() {
        let help =
            "Usage: x\n\nOptions:\n  --to FOLDER  where to\n               put it\n  --long-name \
                    NAME\n               a name\n  --a N, --b N\n               numbers\n\n\
                    Global options:\n  -h, --help   show this help\n\nExamples:\n  x --to y\n";
        let found = options(help);
        let rows: Vec<_> = found
            .iter()
            .map(|one| (one.long.as_str(), one.short, one.value.as_deref(), one.text.as_str()))
            .collect();
        assert_eq!(
            rows,
            [
                ("to", None, Some("FOLDER"), "where to put it"),
                ("long-name", None, Some("NAME"), "a name"),
                ("a", None, Some("N"), "numbers"),
                ("b", None, Some("N"), "numbers"),
                ("help", Some('h'), None, "show this help"),
            ]
        );
    }

    #[test]
    fn clap_accepts_the_command_line() {
        command().debug_assert();
    }

    #[test]
    fn completions_and_pages_have_every_command() {
        let mut script = Vec::new();
        generate(Shell::Bash, &mut command(), "skillbook", &mut script);
        let script = String::from_utf8(script).unwrap();
        let folder = std::env::temp_dir().join(format!("skillbook-man-{}", std::process::id()));
        man_pages(&folder).unwrap();
        for (name, summary) in help::commands().filter(|(name, _)| *name != "help") {
            assert!(script.contains(&format!("skillbook__subcmd__{name})")), "{name}");
            let page = fs::read_to_string(folder.join(format!("skillbook-{name}.1"))).unwrap();
            assert!(page.contains(&format!("skillbook\\-{name} \\- {}", &summary[..5])), "{page}");
        }
        fs::remove_dir_all(folder).unwrap();
        assert!(script.contains("--max-tokens") && script.contains("sarif"));
    }
}
