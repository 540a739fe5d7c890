//! Unified diffs of two texts, in bounded time for any input.

use std::time::Instant;

use similar::TextDiff;

/// The lines around each change that a hunk shows.
const CONTEXT: usize = 3;

/// The maximum number of lines between the first and the last difference, of both texts together.
/// The search for a short diff needs time and stack that grow with them: a tenth of a second and 64
/// KiB for this many.
const MAX_LINES: usize = 10_000;

/// Returns the hunks that `diff -u` prints after the file names; empty for equal texts.
///
/// Lines end only at `\n`. If more than 10,000 lines lie between the first and the last difference,
/// they are removed and added as a whole. `now` is the time of the call.
///
/// ```
/// let diff = skillbook_core::diff::unified("a\nb\n", "a\nc\n", std::time::Instant::now());
/// assert_eq!(diff, "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
/// ```
pub fn unified(from: &str, to: &str, now: Instant) -> String {
    let [from, to] = [from, to].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut config = TextDiff::configure();
    if between(&from, &to) > MAX_LINES {
        // A search without time left returns exactly that.
        config.deadline(now);
    }
    let diff = config.diff_slices(&from, &to);
    let mut out = String::new();
    // The hunks' own `Display` treats a carriage return as the end of a line, so the lines are
    // written here.
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        out.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            out.push_str(&change.tag().to_string());
            out.push_str(change.value());
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

/// The number of lines without the equal ones at both ends.
fn between(from: &[&str], to: &[&str]) -> usize {
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let first = same(&mut from.iter().zip(to));
    let last = same(&mut from[first..].iter().rev().zip(to[first..].iter().rev()));
    from.len() + to.len() - 2 * (first + last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: u64, line: impl Fn(u64) -> u64) -> String {
        (0..count).map(|number| format!("{}\n", line(number))).collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test is the caller, who reads the clock")]
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
                    let diff = unified(from, to, start);
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
            assert_eq!(between(from, to), expected, "{from:?} {to:?}");
        }
    }
}
