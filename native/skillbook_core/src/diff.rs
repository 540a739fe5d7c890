//! Unified diffs of two texts, in bounded time for any input.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};

/// The lines around each change that a hunk shows.
const CONTEXT: usize = 3;

/// The maximum number of lines between the first and the last difference, of both texts together.
/// The search for a short diff needs time and stack that grow with them.
const MAX_LINES: usize = 10_000;

/// Returns the hunks that `diff -u` prints after the file names; empty for equal texts.
///
/// Lines end only at `\n`. If more than 10,000 lines lie between the first and the last difference,
/// they are removed and added as a whole.
///
/// ```
/// let diff = skillbook_core::diff::unified("a\nb\n", "a\nc\n");
/// assert_eq!(diff, "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
/// ```
pub fn unified(from: &str, to: &str) -> String {
    let [from, to] = [from, to].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut out = String::new();
    // Changes with at most twice the context between them are in one hunk.
    let near = |one: &Change, next: &Change| next.old.start - one.old.end <= 2 * CONTEXT;
    for changes in changes(&from, &to).chunk_by(near) {
        write_hunk(&mut out, &from, &to, changes);
    }
    out
}

/// Lines that replace others.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

fn changes(from: &[&str], to: &[&str]) -> Vec<Change> {
    let between = between(from, to);
    if between.old.len() + between.new.len() > MAX_LINES {
        return vec![between];
    }
    let mut input = InternedInput::default();
    input.update_before(from.iter().copied());
    input.update_after(to.iter().copied());
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let range = |lines: Range<u32>| lines.start as usize..lines.end as usize;
    diff.hunks()
        .map(|Hunk { before, after }| Change { old: range(before), new: range(after) })
        .collect()
}

/// The lines without the equal ones at both ends.
fn between(from: &[&str], to: &[&str]) -> Change {
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let first = same(&mut from.iter().zip(to));
    let last = same(&mut from[first..].iter().rev().zip(to[first..].iter().rev()));
    Change { old: first..from.len() - last, new: first..to.len() - last }
}

fn write_hunk(out: &mut String, from: &[&str], to: &[&str], changes: &[Change]) {
    let [first, last] = [&changes[0], &changes[changes.len() - 1]];
    let before = first.old.start.min(CONTEXT);
    let after = (from.len() - last.old.end).min(CONTEXT);
    let (old, new) = (
        first.old.start - before..last.old.end + after,
        first.new.start - before..last.new.end + after,
    );
    out.push_str(&format!("@@ -{} +{} @@\n", place(&old), place(&new)));
    let mut at = old.start;
    for change in changes {
        write_lines(out, ' ', &from[at..change.old.start]);
        write_lines(out, '-', &from[change.old.clone()]);
        write_lines(out, '+', &to[change.new.clone()]);
        at = change.old.end;
    }
    write_lines(out, ' ', &from[at..old.end]);
}

/// The first line and their number, as `diff -u` writes them: without the number if it is 1, and
/// with the line before if it is 0.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn lines(count: u64, line: impl Fn(u64) -> u64) -> String {
        (0..count).map(|number| format!("{}\n", line(number))).collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test measures time")]
    fn no_texts_take_long_or_much_stack() {
        let noise = |seed: u64, values: u64| {
            move |number: u64| {
                (number + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) % values
            }
        };
        for count in [MAX_LINES as u64 / 2, 30_000] {
            let texts = [
                lines(count, |number| number),
                lines(count, |number| number + count),
                lines(count, |number| count - number),
                lines(count, noise(1, 2)),
                lines(count, noise(1_000_000, 2)),
                lines(count, noise(1, 50)),
                lines(count, noise(1_000_000, 50)),
                lines(count, noise(1, count)),
                lines(count, noise(1_000_000, count)),
                lines(count, |number| number % 2 * number),
            ];
            // A dirty scheduler's stack has 320 KiB.
            let run = move || {
                for (from, to) in
                    texts.iter().flat_map(|from| texts.iter().map(move |to| (from, to)))
                {
                    let start = Instant::now();
                    let diff = unified(from, to);
                    assert_eq!(diff.is_empty(), from == to);
                    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
                }
            };
            std::thread::Builder::new().stack_size(320 * 1024).spawn(run).unwrap().join().unwrap();
        }
    }

    #[test]
    fn lines_in_between_are_counted() {
        let rows: [(&[&str], &[&str], usize); 5] = [
            (&[], &[], 0),
            (&["a"], &["a"], 0),
            (&["a", "b", "c"], &["a", "x", "y", "c"], 3),
            (&["a", "a"], &["a"], 1),
            (&[], &["a", "b"], 2),
        ];
        for (from, to, expected) in rows {
            let Change { old, new } = between(from, to);
            assert_eq!(old.len() + new.len(), expected, "{from:?} {to:?}");
        }
    }
}
