//! Every word of a command ends up in its name, its flags or its arguments, and nowhere else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::text::command::{parse, FlagValue};
use skillbook_core::text::words::split;

fuzz_target!(|line: &str| {
    let (Ok(command), Ok(words)) = (parse(line), split(line)) else { return };
    let mut names = std::collections::HashSet::new();
    assert!(command.flags.iter().all(|(name, _)| names.insert(name.clone())), "a flag twice");
    if command.flags.iter().any(|(_, value)| matches!(value, FlagValue::Json(_))) {
        return;
    }
    let values: usize = command
        .flags
        .iter()
        .map(|(_, value)| match value {
            FlagValue::One(_) => 1,
            FlagValue::Many(values) => {
                assert!(values.len() > 1);
                values.len()
            }
            FlagValue::True | FlagValue::Json(_) => 0,
        })
        .sum();
    // `--flag=value` and `get_skill:PATH` make two words of one; a bare `--` makes none.
    assert!(values + command.args.len() <= 2 * words.len());
    let dashes = ['-', '‐', '‑', '‒', '–', '—', '―', '−', '﹣', '－'];
    if !line.contains(dashes) && !line.contains(['{', ':', '：']) {
        assert!(command.flags.is_empty());
        assert_eq!(1 + command.args.len(), words.len());
    }
});
