//! The times of any schedule ascend, in every zone. An error has its position in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::schedule::{Cron, Schedule, Zone};

fuzz_target!(|input: (i64, &str, &str)| {
    let (after, name, expression) = input;
    let zone = Zone::named(name).unwrap_or_else(|error| {
        assert!(name.get(error.span()).is_some());
        Zone::named("America/New_York").expect("a zone of the database")
    });
    match Cron::parse(expression) {
        Ok(cron) => {
            let schedule = Schedule::new(cron, zone);
            assert!(schedule.describe().contains(", "));
            let mut last = after;
            for at in schedule.upcoming(after).take(20) {
                assert!(at > last);
                assert!(schedule.local(at).is_some());
                last = at;
            }
        }
        Err(error) => assert!(expression.get(error.span()).is_some()),
    }
});
