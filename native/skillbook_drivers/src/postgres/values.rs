//! Parameters on their way to the server, and values on their way back.
//!
//! The server says which type it expects for each parameter. Numbers, text and bytes are converted
//! to it if nothing is lost. For any other type the text is passed on, and the server parses it.
//!
//! Times and dates come back as ISO 8601 text and JSON as text, so a query returns the same values
//! as in SQLite, which has no types for them.

use std::error::Error as StdError;
use std::fmt::Write;

use bytes::BytesMut;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type};

use crate::error::Detail;
use crate::{Error, ErrorKind, Value};

/// The number of characters of a value that an error repeats.
const PREVIEW: usize = 50;
const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
const EPOCH_DAYS: i64 = 10_957;

/// A parameter in the form in which it is sent.
#[derive(Debug, PartialEq)]
pub(super) enum Param {
    Null,
    Text(String),
    Binary(Vec<u8>),
}

impl ToSql for Param {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Param::Null => return Ok(IsNull::Yes),
            Param::Text(text) => out.extend_from_slice(text.as_bytes()),
            Param::Binary(bytes) => out.extend_from_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            Param::Text(_) => Format::Text,
            Param::Null | Param::Binary(_) => Format::Binary,
        }
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

/// Converts a value to the type that the server expects for parameter `number`.
pub(super) fn encode(value: &Value, ty: &Type, number: usize) -> Result<Param, Error> {
    let ty = base(ty);
    let wrong = |expected: String| {
        Err(Error::new(
            ErrorKind::Params,
            Detail::Param { number, expected, given: preview(value) },
        ))
    };
    let whole = |least: i64, most: i64| {
        let found = match value {
            Value::Int(value) => Some(*value),
            // Floats above 2^53 are not exact, so they are refused where an integer is expected.
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => {
                Some(*value as i64)
            }
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        found
            .filter(|found| (least..=most).contains(found))
            .ok_or(format!("an integer from {least} to {most}"))
    };
    let real = || match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let text = || match value {
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(format!("{value:?}")),
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    let sent = match *ty {
        // NULL fits every type.
        _ if *value == Value::Null => Ok(Param::Null),
        Type::BOOL => {
            whole(0, 1).map(|value| Param::Binary(vec![value as u8])).or_else(|_| match value {
                Value::Text(text) if text == "true" => Ok(Param::Binary(vec![1])),
                Value::Text(text) if text == "false" => Ok(Param::Binary(vec![0])),
                _ => Err("a boolean".to_owned()),
            })
        }
        Type::INT2 => whole(i16::MIN.into(), i16::MAX.into())
            .map(|value| binary((value as i16).to_be_bytes())),
        Type::INT4 => whole(i32::MIN.into(), i32::MAX.into())
            .map(|value| binary((value as i32).to_be_bytes())),
        Type::INT8 => whole(i64::MIN, i64::MAX).map(|value| binary(value.to_be_bytes())),
        Type::OID => whole(0, u32::MAX.into()).map(|value| binary((value as u32).to_be_bytes())),
        Type::FLOAT4 => real()
            .map(|value| value as f32)
            .filter(|value| value.is_finite())
            .map(|value| binary(value.to_be_bytes()))
            .ok_or_else(|| "a number of 32 bits".to_owned()),
        Type::FLOAT8 => real()
            .filter(|value| value.is_finite())
            .map(|value| binary(value.to_be_bytes()))
            .ok_or_else(|| "a number".to_owned()),
        Type::NUMERIC => text().map(Param::Text).ok_or_else(|| "a number".to_owned()),
        Type::BYTEA => match value {
            Value::Blob(bytes) => Ok(Param::Binary(bytes.clone())),
            _ => Err("bytes, {:blob, binary},".to_owned()),
        },
        _ if is_text(ty) => text().map(Param::Text).ok_or_else(|| "text".to_owned()),
        _ => match value {
            Value::Text(text) => Ok(Param::Text(text.clone())),
            _ => Err(format!("text for the type {}", ty.name())),
        },
    };
    match sent {
        // Text cannot contain NUL in PostgreSQL.
        Ok(Param::Text(text)) if text.contains('\0') => {
            wrong("text without NUL characters".to_owned())
        }
        Ok(sent) => Ok(sent),
        Err(expected) => wrong(expected),
    }
}

fn binary<const N: usize>(bytes: [u8; N]) -> Param {
    Param::Binary(bytes.to_vec())
}

fn base(ty: &Type) -> &Type {
    let mut ty = ty;
    while let Kind::Domain(inner) = ty.kind() {
        ty = inner;
    }
    ty
}

/// Whether values of a type are sent and read as text.
fn is_text(ty: &Type) -> bool {
    matches!(
        *ty,
        Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::UNKNOWN
            | Type::JSON
            | Type::JSONB
            | Type::XML
    ) || matches!(ty.kind(), Kind::Enum(_))
        || ty.name() == "citext"
}

fn preview(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(text) => match text.char_indices().nth(PREVIEW) {
            Some((end, _)) => format!("{:?}…", &text[..end]),
            None => format!("{text:?}"),
        },
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// The bytes of a value of any type.
pub(super) struct Raw<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(bytes))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Whether [`decode`] can read values of a type.
pub(super) fn is_readable(ty: &Type) -> bool {
    let ty = base(ty);
    is_text(ty)
        || matches!(
            *ty,
            Type::BOOL
                | Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::OID
                | Type::FLOAT4
                | Type::FLOAT8
                | Type::NUMERIC
                | Type::BYTEA
                | Type::CHAR
                | Type::DATE
                | Type::TIME
                | Type::TIMESTAMP
                | Type::TIMESTAMPTZ
                | Type::UUID
                | Type::VOID
        )
}

/// Decodes a value; `None` if it is not a finite number, or malformed.
pub(super) fn decode(ty: &Type, bytes: &[u8]) -> Option<Value> {
    let ty = base(ty);
    Some(match *ty {
        Type::BOOL => Value::Int(fixed::<1>(bytes)?[0].into()),
        Type::INT2 => Value::Int(i16::from_be_bytes(fixed(bytes)?).into()),
        Type::INT4 => Value::Int(i32::from_be_bytes(fixed(bytes)?).into()),
        Type::INT8 => Value::Int(i64::from_be_bytes(fixed(bytes)?)),
        Type::OID => Value::Int(u32::from_be_bytes(fixed(bytes)?).into()),
        // By way of its shortest decimal form: 0.1 as f32 would otherwise become
        // 0.10000000149011612.
        Type::FLOAT4 => finite(f32::from_be_bytes(fixed(bytes)?).to_string().parse().ok()?)?,
        Type::FLOAT8 => finite(f64::from_be_bytes(fixed(bytes)?))?,
        Type::NUMERIC => numeric(bytes)?,
        Type::BYTEA => Value::Blob(bytes.to_vec()),
        Type::DATE => Value::Text(date(i32::from_be_bytes(fixed(bytes)?))),
        Type::TIMESTAMP => Value::Text(timestamp(i64::from_be_bytes(fixed(bytes)?), "")),
        Type::TIMESTAMPTZ => Value::Text(timestamp(i64::from_be_bytes(fixed(bytes)?), "Z")),
        // Fractions of a second are dropped, as in timestamps.
        Type::TIME => {
            Value::Text(clock(i64::from_be_bytes(fixed(bytes)?).div_euclid(MICROS_PER_SECOND)))
        }
        Type::UUID => Value::Text(uuid(fixed(bytes)?)),
        Type::VOID => Value::Null,
        // The first byte is the version of jsonb's format.
        Type::JSONB => text(bytes.get(1..)?),
        _ => text(bytes),
    })
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn finite(value: f64) -> Option<Value> {
    value.is_finite().then_some(Value::Float(value))
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Blob(bytes.to_vec()),
    }
}

/// Decodes a numeric as an integer if it is whole and fits 64 bits, otherwise as the nearest float.
/// Sums of integers are numerics in PostgreSQL; this reads them as SQLite returns them.
fn numeric(bytes: &[u8]) -> Option<Value> {
    let word = |at: usize| {
        bytes.get(at * 2..at * 2 + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    };
    let (count, weight, sign, scale) = (word(0)?, word(1)? as i16, word(2)?, word(3)?);
    let mut digits = match sign {
        0 => String::new(),
        0x4000 => "-".to_owned(),
        _ => return None,
    };
    // The digits are groups of four; the first group counts 10000 to the power of the weight.
    let group =
        |at: i32| if (0..i32::from(count)).contains(&at) { word(4 + at as usize) } else { Some(0) };
    // The integer part, with groups that are not stored as zeros.
    for at in 0..=i32::from(weight).max(0) {
        let at = if weight < 0 { -1 } else { at };
        write!(digits, "{:04}", group(at)?).ok()?;
    }
    // A scale of 0 means that the value was declared or computed as an integer.
    if scale == 0 {
        if let Ok(whole) = digits.parse() {
            return Some(Value::Int(whole));
        }
    }
    digits.push('.');
    for at in 1..=i32::from(scale.div_ceil(4)) {
        write!(digits, "{:04}", group(i32::from(weight) + at)?).ok()?;
    }
    finite(digits.parse().ok()?)
}

fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => day(i64::from(days)),
    }
}

fn timestamp(micros: i64, zone: &str) -> String {
    match micros {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => {
            let seconds = micros.div_euclid(MICROS_PER_SECOND);
            let days = seconds.div_euclid(SECONDS_PER_DAY);
            format!("{}T{}{zone}", day(days), clock(seconds.rem_euclid(SECONDS_PER_DAY)))
        }
    }
}

fn clock(seconds: i64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The date of a day since 2000-01-01, by Howard Hinnant's algorithm `civil_from_days`.
fn day(days: i64) -> String {
    // Years begin in March here, so that the leap day is the last day of a year.
    let days = days + EPOCH_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(value: Value, ty: &Type) -> String {
        match encode(&value, ty, 3) {
            Ok(Param::Null) => "null".to_owned(),
            Ok(Param::Text(text)) => text,
            Ok(Param::Binary(bytes)) => format!("{bytes:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn parameters_are_encoded_for_their_type() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (value, ty, expected) in [
            (Value::Null, Type::INT4, "null"),
            (Value::Int(1), Type::BOOL, "[1]"),
            (text("false"), Type::BOOL, "[0]"),
            (Value::Int(2), Type::BOOL, "expected a boolean as parameter $3, got: 2"),
            (Value::Int(-32768), Type::INT2, "[128, 0]"),
            (
                Value::Int(32768),
                Type::INT2,
                "expected an integer from -32768 to 32767 as parameter $3, got: 32768",
            ),
            (Value::Int(i32::MAX.into()), Type::INT4, "[127, 255, 255, 255]"),
            (
                Value::Int(-2_147_483_649),
                Type::INT4,
                "expected an integer from -2147483648 to 2147483647 as parameter $3, got: \
                 -2147483649",
            ),
            (Value::Float(2.0), Type::INT2, "[0, 2]"),
            (
                Value::Float(2.5),
                Type::INT2,
                "expected an integer from -32768 to 32767 as parameter $3, got: 2.5",
            ),
            (text(" 7 "), Type::INT8, "[0, 0, 0, 0, 0, 0, 0, 7]"),
            (
                text("7; drop"),
                Type::INT8,
                "expected an integer from -9223372036854775808 to 9223372036854775807 as \
                 parameter $3, got: \"7; drop\"",
            ),
            (Value::Int(1), Type::FLOAT8, "[63, 240, 0, 0, 0, 0, 0, 0]"),
            (
                Value::Float(1e300),
                Type::FLOAT4,
                "expected a number of 32 bits as parameter $3, got: 1e300",
            ),
            (text("inf"), Type::FLOAT8, "expected a number as parameter $3, got: \"inf\""),
            (Value::Float(0.1), Type::NUMERIC, "0.1"),
            (Value::Int(5), Type::TEXT, "5"),
            (Value::Float(2.0), Type::TEXT, "2.0"),
            (Value::Blob(vec![1]), Type::TEXT, "expected text as parameter $3, got: 1 bytes"),
            (
                text("a\0"),
                Type::TEXT,
                "expected text without NUL characters as parameter $3, got: \"a\\0\"",
            ),
            (Value::Blob(vec![0, 1]), Type::BYTEA, "[0, 1]"),
            (
                text("a"),
                Type::BYTEA,
                "expected bytes, {:blob, binary}, as parameter $3, got: \"a\"",
            ),
            (text("2026-03-01"), Type::DATE, "2026-03-01"),
            (Value::Int(5), Type::DATE, "expected text for the type date as parameter $3, got: 5"),
        ] {
            assert_eq!(sent(value, &ty), expected);
        }
        let long = sent(text(&"x".repeat(51)), &Type::BYTEA);
        assert!(long.ends_with(&format!("got: \"{}\"…", "x".repeat(50))), "{long}");
    }

    #[test]
    fn values_are_read() {
        let text = |text: &str| Some(Value::Text(text.to_owned()));
        let micros = |seconds: i64| (seconds * MICROS_PER_SECOND).to_be_bytes().to_vec();
        for (ty, bytes, expected) in [
            (Type::BOOL, vec![1], Some(Value::Int(1))),
            (Type::INT2, vec![255, 255], Some(Value::Int(-1))),
            (Type::INT2, vec![255], None),
            (Type::FLOAT4, 0.1f32.to_be_bytes().to_vec(), Some(Value::Float(0.1))),
            (Type::FLOAT8, f64::NAN.to_be_bytes().to_vec(), None),
            (Type::TEXT, vec![255], Some(Value::Blob(vec![255]))),
            (Type::JSONB, b"\x01{}".to_vec(), text("{}")),
            (Type::DATE, 0i32.to_be_bytes().to_vec(), text("2000-01-01")),
            (Type::DATE, (-1i32).to_be_bytes().to_vec(), text("1999-12-31")),
            (Type::DATE, 59i32.to_be_bytes().to_vec(), text("2000-02-29")),
            (Type::DATE, (-730_119i32).to_be_bytes().to_vec(), text("0001-01-01")),
            (Type::DATE, i32::MAX.to_be_bytes().to_vec(), text("infinity")),
            (Type::TIMESTAMP, micros(3661), text("2000-01-01T01:01:01")),
            (Type::TIMESTAMPTZ, (-1i64).to_be_bytes().to_vec(), text("1999-12-31T23:59:59Z")),
            (Type::TIME, micros(86_399), text("23:59:59")),
            (Type::UUID, (0u8..16).collect(), text("00010203-0405-0607-0809-0a0b0c0d0e0f")),
            (Type::VOID, vec![], Some(Value::Null)),
        ] {
            assert_eq!(decode(&ty, &bytes), expected, "{ty} {bytes:?}");
        }
    }

    #[test]
    fn numerics_are_whole_numbers_where_they_fit() {
        let numeric = |weight: i16, sign: u16, scale: u16, groups: &[u16]| {
            let head = [groups.len() as u16, weight as u16, sign, scale];
            let bytes: Vec<u8> =
                head.iter().chain(groups).flat_map(|word| word.to_be_bytes()).collect();
            decode(&Type::NUMERIC, &bytes)
        };
        for (found, expected) in [
            (numeric(0, 0, 0, &[]), Some(Value::Int(0))),
            (numeric(0, 0, 0, &[7]), Some(Value::Int(7))),
            (numeric(1, 0x4000, 0, &[1]), Some(Value::Int(-10_000))),
            (numeric(4, 0, 0, &[922, 3372, 368, 5477, 5807]), Some(Value::Int(i64::MAX))),
            (
                numeric(4, 0, 0, &[922, 3372, 368, 5477, 5808]),
                Some(Value::Float(9_223_372_036_854_775_808.0)),
            ),
            (numeric(0, 0, 1, &[2, 5000]), Some(Value::Float(2.5))),
            (numeric(0, 0, 2, &[2]), Some(Value::Float(2.0))),
            (numeric(-1, 0, 4, &[12]), Some(Value::Float(0.0012))),
            (numeric(-2, 0x4000, 8, &[5]), Some(Value::Float(-0.000_000_05))),
            (numeric(0, 0xc000, 0, &[]), None),
            (decode(&Type::NUMERIC, &[0, 1, 0]), None),
        ] {
            assert_eq!(found, expected);
        }
    }
}
