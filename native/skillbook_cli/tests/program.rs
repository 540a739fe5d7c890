//! The program alone, and with a script in the place of the Elixir command line. The outputs of
//! commands are compared with Elixir's in `packages/cli/test/skillbook/cli/native_test.exs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "---\nname: mail.send\ndescription: Sends a message to people\n\
                    handler: Skillbook.Gone\n---\n## Usage\n\nmail.send\n";

/// A folder with a copy of the program, which so finds no checkout, and a folder of skills.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("skillbook-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("skills/mail")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_skillbook"), folder.join("skillbook")).unwrap();
    fs::write(folder.join("skills/mail/send.md"), PAGE).unwrap();
    folder
}

fn run(folder: &Path, line: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new(folder.join("skillbook"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn alone_it_reads_folders() {
    let folder = folder("alone");
    let unchecked = "skills/mail/send.md:4:1: info: the handler `Skillbook.Gone` was not looked \
                     up: the code of its application is not loaded [handler_unchecked]\n";
    let (status, output, errors) = run(&folder, "lint", &[]);
    assert!(output.starts_with(unchecked), "{output}");
    assert_eq!((status, errors.as_str()), (0, ""));
    let (status, output, errors) = run(&folder, "list --domain mail", &[]);
    let row = "mail.send  command  skills  Sends a message to people\n";
    assert_eq!((status, output.as_str(), errors.as_str()), (0, row, ""));
    let (_, output, _) = run(&folder, "get tasks.create", &[]);
    assert!(output.starts_with("# tasks.create\n"), "{output}");
    let (_, output, _) = run(&folder, "explain tasks.create", &[]);
    assert!(
        output.starts_with("builtin/tasks/create.md\n  from the source `builtin`\n"),
        "{output}"
    );
    let version = format!("skillbook {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&folder, "--version", &[]), (0, version, String::new()));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn alone_it_says_what_needs_elixir() {
    let folder = folder("needs");
    let needs = |wanted: &str| {
        format!(
            "skillbook: {wanted} needs Elixir, which this program alone does not have.\nRun \
             bin/skillbook of a checkout of the project, or set SKILLBOOK_ELIXIR to its path\n"
        )
    };
    for (line, wanted) in [
        ("serve --port 4000", "`serve`"),
        ("run -c tasks.search", "`run`"),
        ("--db :memory: list", "`--db`"),
        ("search --vault notes x", "`--vault`"),
    ] {
        assert_eq!(run(&folder, line, &[]), (3, String::new(), needs(wanted)), "{line}");
    }
    fs::create_dir(folder.join(".skillbook")).unwrap();
    fs::write(folder.join(".skillbook/skillbook.db"), "").unwrap();
    let expected = (3, String::new(), needs("`.skillbook/skillbook.db`"));
    assert_eq!(run(&folder, "list", &[]), expected);
    assert_eq!(run(&folder, "lint", &[]).0, 0);
    let (status, _, errors) = run(&folder, "serve", &[("SKILLBOOK_ELIXIR", "/no/such/script")]);
    assert_eq!(status, 3);
    let start = "skillbook: `serve` needs Elixir, which this program alone does not have, and \
                 /no/such/script cannot be run: No such file or directory";
    assert!(errors.starts_with(start), "{errors}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn other_lines_are_handed_over() {
    let folder = folder("over");
    let script = folder.join("elixir.sh");
    fs::write(&script, "#!/bin/sh\necho \"$SKILLBOOK_NATIVE:$*\"\nexit 7\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let elixir = [("SKILLBOOK_ELIXIR", script)];
    for line in ["serve --port 4000", "--db x list", "list", "lint skills"] {
        // A handler of Skillbook that is not known here.
        assert_eq!(
            run(&folder, line, &elixir),
            (7, format!("0:{line}\n"), String::new()),
            "{line}"
        );
    }
    let (status, output, _) = run(&folder, "list --dri x", &elixir);
    assert_eq!((status, output.as_str()), (2, ""));
    // The script has handed the line over, so it does not get it back.
    let both = [("SKILLBOOK_ELIXIR", script), ("SKILLBOOK_NATIVE", "0")];
    assert_eq!(run(&folder, "serve", &both).0, 3);
    assert_eq!(run(&folder, "list", &both).0, 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = folder("pipe");
    let line = format!("{} list; echo $? >&2", folder.join("skillbook").display());
    let output = Command::new("sh")
        .args(["-c", &format!("({line}) | true; ({line}) >/dev/full")])
        .current_dir(&folder)
        .env("SKILLBOOK_NATIVE", "0")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let expected = "skillbook: cannot write standard output: no space left on device\n1\n";
    assert!(errors.starts_with("0\n") && errors.ends_with(expected), "{errors}");
    fs::remove_dir_all(folder).unwrap();
}
