//! The statements of any text are parts of it, cannot be split further, and do not depend on the
//! order of questions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_drivers::statement::{all, may_read, one, Dialect, Kind};

fuzz_target!(|text: &str| {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let found = all(text, dialect);
        let mut from = 0;
        for statement in found.iter().flatten() {
            let part = statement.text();
            let at = part.as_ptr() as usize - text.as_ptr() as usize;
            assert!(at >= from && text.get(at..at + part.len()) == Some(part));
            from = at + part.len();
            assert_eq!(all(part, dialect).unwrap(), std::slice::from_ref(statement));
            assert_eq!(statement.with_question_marks(), part);
            assert!(dialect == Dialect::Sqlite || statement.kind() != Kind::Read || may_read(part));
        }
        for given in 0..3 {
            if let Ok(statement) = one(text, dialect, given) {
                assert!(
                    given > 0 || found.as_ref().is_ok_and(|found| *found == [statement.clone()])
                );
                assert_eq!(statement.with_question_marks().len(), statement.text().len());
            }
        }
    }
});
