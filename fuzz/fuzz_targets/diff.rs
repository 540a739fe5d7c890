//! A diff applied to one text gives the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::diff::unified;

const NO_END: &str = "\\ No newline at end of file\n";

fuzz_target!(|texts: (&str, &str)| {
    let (from, to) = texts;
    let diff = unified(from, to);
    assert_eq!(diff.is_empty(), from == to);
    let mut old = from.split_inclusive('\n');
    let mut done = String::new();
    let mut at = 1;
    for line in diff.split_inclusive('\n') {
        // The line before has no line end; if that line is removed, there is none to take away.
        if line == NO_END {
            continue;
        }
        let (sign, line) = line.split_at(1);
        match sign {
            "@" => {
                let range = line.split(['-', ' ']).nth(2).expect("a range");
                let (first, count) = range.split_once(',').unwrap_or((range, "1"));
                let first: usize = first.parse().expect("a number");
                let first = if count == "0" { first + 1 } else { first };
                old.by_ref().take(first - at).for_each(|line| done.push_str(line));
                at = first;
            }
            "+" => done.push_str(line),
            " " => {
                done.push_str(old.next().expect("a line"));
                at += 1;
            }
            "-" => {
                assert_eq!(
                    old.next().map(|line| line.trim_end_matches('\n')),
                    Some(line.trim_end_matches('\n'))
                );
                at += 1;
            }
            _ => panic!("{sign}{line}"),
        }
    }
    old.for_each(|line| done.push_str(line));
    let ended = if done.ends_with('\n') && !to.ends_with('\n') {
        &done[..done.len() - 1]
    } else {
        &done[..]
    };
    assert_eq!(ended, to);
});
