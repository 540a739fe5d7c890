//! The meaning of schedules, and the errors for invalid ones.

use skillbook_core::schedule::{Cron, Schedule, Zone};

#[test]
fn reports_invalid_schedules() {
    let write = "write minute, hour, day of month, month and day of week, such as 0 9 * * 1, \
         or a name such as @daily";
    let five = "expected five fields, or six with the second first";
    let signs = "write L alone as the day of month, 5L or 1#2 as the day of week";
    let counts = "a step counts within its field: */15 in the minutes is 0, 15, 30 and 45";
    let number = |least| {
        format!("write a number such as {least}, a list (1,3), a range (1-3), a step (*/2) or *")
    };
    let minute = &number(0);
    let rows: [(&str, &str, &str, usize); 49] = [
        ("", &format!("{five}, got nothing"), write, 0),
        ("  ", &format!("{five}, got nothing"), write, 0),
        ("* * * *", &format!("{five}, got \"* * * *\""), write, 0),
        (" 0 9 ", &format!("{five}, got \"0 9\""), write, 1),
        ("* * * * * * 2027", &format!("{five}, got \"* * * * * * 2027\""), "leave out the year", 0),
        ("daily", &format!("{five}, got \"daily\""), "write @daily", 0),
        ("every monday", &format!("{five}, got \"every monday\""), write, 0),
        ("soon", &format!("{five}, got \"soon\""), write, 0),
        (
            "@reboot",
            "expected one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, \
             @annually, got \"@reboot\"",
            write,
            0,
        ),
        ("@daily 5", &format!("{five}, got \"@daily 5\""), write, 0),
        ("60 * * * *", "expected a number from 0 to 59 in the minute, got \"60\"", minute, 0),
        ("x 0 0 * * *", "expected a number from 0 to 59 in the second, got \"x\"", minute, 0),
        ("0 24 * * *", "expected a number from 0 to 23 in the hour, got \"24\"", minute, 2),
        ("0 -5 * * *", "expected a number from 0 to 23 in the hour, got nothing", minute, 2),
        ("0 5- * * *", "expected a number from 0 to 23 in the hour, got nothing", minute, 4),
        ("0 1-2-3 * * *", "expected a number from 0 to 23 in the hour, got \"2-3\"", minute, 4),
        ("0 +5 * * *", "expected a number from 0 to 23 in the hour, got \"+5\"", minute, 2),
        ("0 9, * * *", "expected a number from 0 to 23 in the hour, got nothing", minute, 4),
        ("0 9,,12 * * *", "expected a number from 0 to 23 in the hour, got nothing", minute, 4),
        (
            "0 99999999999 * * *",
            "expected a number from 0 to 23 in the hour, got \"99999999999\"",
            minute,
            2,
        ),
        (
            "0 9:30 * * *",
            "expected a number from 0 to 23 in the hour, got \"9:30\"",
            "write the minute and the hour as two fields, such as 0 9",
            2,
        ),
        (
            "0 0 0 * *",
            "expected a number from 1 to 31 in the day of month, got \"0\"",
            &number(1),
            4,
        ),
        (
            "0 0 1,32 * *",
            "expected a number from 1 to 31 in the day of month, got \"32\"",
            &number(1),
            6,
        ),
        (
            "0 0 15W * *",
            "expected a number from 1 to 31 in the day of month, got \"15W\"",
            "W is not supported; write days of the week, such as 1-5 in the last field",
            4,
        ),
        (
            "0 0 LW * *",
            "expected a number from 1 to 31 in the day of month, got \"LW\"",
            "W is not supported; write days of the week, such as 1-5 in the last field",
            4,
        ),
        ("0 0 L-3 * *", "expected a number from 1 to 31 in the day of month, got \"L\"", signs, 4),
        (
            "0 0 1#2 * *",
            "expected a number from 1 to 31 in the day of month, got \"1#2\"",
            signs,
            4,
        ),
        ("0 L * * *", "expected a number from 0 to 23 in the hour, got \"L\"", signs, 2),
        (
            "0 0 * 13 *",
            "expected a number from 1 to 12 or a name from JAN to DEC in the month, got \"13\"",
            &number(1),
            6,
        ),
        (
            "0 0 * january *",
            "expected a number from 1 to 12 or a name from JAN to DEC in the month, got \
             \"january\"",
            "write JAN",
            6,
        ),
        (
            "0 0 * * 8",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \"8\"",
            minute,
            8,
        ),
        (
            "0 0 * * mon-friday",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \
             \"friday\"",
            "write FRI",
            12,
        ),
        (
            "0 0 * * L",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \"L\"",
            signs,
            8,
        ),
        (
            "0 0 * * 9L",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \"9\"",
            minute,
            8,
        ),
        (
            "0 0 * * é",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \"é\"",
            minute,
            8,
        ),
        (
            "0 0 * * 1#6",
            "expected a number from 1 to 5 after # in the day of week, got \"6\"",
            "write for example 1#2 for the second Monday",
            10,
        ),
        (
            "0 0 * * 1#",
            "expected a number from 1 to 5 after # in the day of week, got nothing",
            "write for example 1#2 for the second Monday",
            10,
        ),
        (
            "? * * * *",
            "expected a number from 0 to 59 in the minute, got \"?\"",
            "write ? alone, as the day of month or the day of week",
            0,
        ),
        (
            "0 0 ?/2 * *",
            "expected a number from 1 to 31 in the day of month, got \"?\"",
            "write ? alone, as the day of month or the day of week",
            4,
        ),
        ("*/0 * * * *", "expected a step from 1 to 59 in the minute, got \"0\"", counts, 2),
        ("*/60 * * * *", "expected a step from 1 to 59 in the minute, got \"60\"", counts, 2),
        ("0 0 * * */7", "expected a step from 1 to 6 in the day of week, got \"7\"", counts, 10),
        ("0 0 */ * *", "expected a step from 1 to 30 in the day of month, got nothing", counts, 6),
        (
            "0 22-2 * * *",
            "expected the smaller value first in a range in the hour, got \"22-2\"",
            "write 22-23,0-2",
            2,
        ),
        (
            "0 0 * * fri-mon",
            "expected the smaller value first in a range in the day of week, got \"fri-mon\"",
            "write 5-6,0-1",
            8,
        ),
        (
            "0 0 * DEC-JAN *",
            "expected the smaller value first in a range in the month, got \"DEC-JAN\"",
            "write 12,1",
            6,
        ),
        (
            "0 0 30 2 *",
            "expected a day that exists, got \"30 2 *\"",
            "no year has such a day; write another day of month, month or day of week",
            4,
        ),
        (
            "0 0 31 4,6,9,11 ? ",
            "expected a day that exists, got \"31 4,6,9,11 ?\"",
            "no year has such a day; write another day of month, month or day of week",
            4,
        ),
        (
            "0 0 0 * * 1#5,\t",
            "expected a number from 0 to 7 or a name from SUN to SAT in the day of week, got \
             nothing",
            minute,
            14,
        ),
    ];
    for (text, message, hint, at) in rows {
        let error = Cron::parse(text).expect_err(text);
        assert_eq!(
            (error.to_string().as_str(), error.hint(), error.span().start),
            (message, hint, at),
            "{text:?}"
        );
    }
    let long = format!("{} * * * *", "0,".repeat(300));
    let error = Cron::parse(&long).unwrap_err();
    assert_eq!(error.expected(), "at most 500 bytes");
    assert_eq!(error.got(), format!("\"{}…\"", "0,".repeat(30)));
}

#[test]
fn knows_zones() {
    let rows = [
        ("UTC", "UTC"),
        ("europe/BERLIN", "Europe/Berlin"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("EST", "EST"),
    ];
    for (written, name) in rows {
        assert_eq!(
            Zone::named(written).map(|zone| zone.name().to_owned()),
            Ok(name.to_owned()),
            "{written}"
        );
    }
    let some = "write a name such as Europe/Berlin, America/New_York or UTC";
    let rows = [
        ("", some),
        ("+01:00", some),
        ("Etc/Unknown", some),
        ("../etc/passwd", some),
        ("Berlin", "write Europe/Berlin"),
        ("new york", "write America/New_York"),
        ("Europe/Berln", "write Europe/Berlin"),
        ("PST", some),
    ];
    for (written, hint) in rows {
        let error = Zone::named(written).expect_err(written);
        let got = if written.is_empty() { "nothing".into() } else { format!("\"{written}\"") };
        assert_eq!(error.to_string(), format!("expected the name of a time zone, got {got}"));
        assert_eq!(error.hint(), hint, "{written}");
    }
    assert_eq!(Zone::named(&"x".repeat(10_000)).unwrap_err().hint(), some);
}

#[test]
fn spellings_of_the_same_times() {
    let rows = [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 jan *"),
        ("@Monthly", "0 0 1 * ?"),
        ("@weekly", "0 0 * * 7"),
        ("@daily", "0 0 * * *"),
        (" @midnight\n", "@daily"),
        ("@hourly", "0 * * * *"),
        ("0 9 * * 1-5", "0 0 9 * * MON-fri"),
        ("0 9 * * 6-7", "0 9 * * SAT-SUN"),
        ("0 9 * * 0-0", "0 9 * * 0"),
        ("0 9 * * 5-7", "0 9 * * fri-sun"),
        ("0 9 * * 1,3,5", "0\t9  * * 1-5/2"),
        ("0 9 * * 7L,0#5", "0 9 * * SUNL,SUN#5"),
        ("*/15 * * * *", "*/15 0-23/1 */1 1/1 *"),
        ("5/20 9 * * *", "5,25,45 9 * * *"),
        ("00 09 01 01 00", "0 9 1 1 0"),
    ];
    for (one, other) in rows {
        assert_eq!(Cron::parse(one), Cron::parse(other), "{one}");
    }
}

#[test]
fn describes() {
    let rows = [
        ("0 9 * * 1", "at 09:00 on Mondays"),
        ("@daily", "at 00:00 every day"),
        ("@hourly", "every hour"),
        ("@weekly", "at 00:00 on Sundays"),
        ("@monthly", "at 00:00 on day 1 of the month"),
        ("@yearly", "at 00:00 on day 1 of the month in January"),
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("5 * * * * *", "at second 5 of every minute"),
        ("*/10 * 9 * * *", "every 10 seconds of every minute of hour 9"),
        ("*/10 5 * * * *", "every 10 seconds of minute 5 of every hour"),
        ("*/15 * * * *", "every 15 minutes"),
        ("5-59/15 * * * *", "at minutes 5, 20, 35 and 50 of every hour"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00 every day"),
        (
            "30 */2 * * *",
            "at minute 30 of hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22 every day",
        ),
        ("0 9-17 * * 1-5", "at minute 0 of hours 9 to 17 on Mondays to Fridays"),
        ("*/15 9-17 * * 1-5", "every 15 minutes of hours 9 to 17 on Mondays to Fridays"),
        ("* 9 * * *", "every minute of hour 9"),
        ("0,30 9,17 * * 6,0", "at 09:00, 09:30, 17:00 and 17:30 on Saturdays and Sundays"),
        ("15 30 9 * * *", "at 09:30:15 every day"),
        ("0 9 L * *", "at 09:00 on the last day of the month"),
        ("0 9 1,15,L * *", "at 09:00 on days 1 and 15 and the last day of the month"),
        ("0 9 1-7 * *", "at 09:00 on days 1 to 7 of the month"),
        ("0 9 * * 5L", "at 09:00 on the last Friday of the month"),
        (
            "0 9 * * 1#1,1#3",
            "at 09:00 on the first Monday of the month and on the third Monday of the month",
        ),
        ("0 9 13 * 5", "at 09:00 on day 13 of the month and also on Fridays"),
        ("0 9 */10 * 1", "at 09:00 on days 1, 11, 21 and 31 of the month, but only on Mondays"),
        ("0 9 1-31 * 1", "at 09:00 every day"),
        ("0 9 * 3-5,12 *", "at 09:00 every day in March to May and December"),
        ("0 0 29 2 *", "at 00:00 on day 29 of the month in February"),
    ];
    for (text, described) in rows {
        let schedule = Schedule::parse(text, "Europe/Berlin").expect(text);
        assert_eq!(schedule.describe(), format!("{described}, Europe/Berlin"), "{text}");
    }
}
