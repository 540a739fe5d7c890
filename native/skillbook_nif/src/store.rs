//! Decodes rows of the store's table as records, and checks that a profile may see them.

use std::sync::Arc;

use rustler::{Binary, Decoder, NifMap, NifResult, NifUnitEnum, Term};
use skillbook_bridge::twin;
use skillbook_core::page::record::{list, Access, Origin, Record};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::sees;

use crate::profile::profile;

mod atoms {
    rustler::atoms! { content }
}

/// A row takes as long as so many bytes of text.
const ROW: usize = 128;

/// The columns that are read, in the order of [`Row::record`].
const COLUMNS: [&str; 19] = [
    "id",
    "deleted_at",
    "enabled",
    "name",
    "kind",
    "title",
    "description",
    "content",
    "tags",
    "tenant",
    "labels",
    "include_in_prompt",
    "proactive_for",
    "excluded_for",
    "source",
    "version",
    "schedule",
    "timezone",
    "writers",
];

const ORIGINS: [(&str, Origin); 3] =
    [("user", Origin::User), ("agent", Origin::Agent), ("import", Origin::Import)];

/// The decoded rows of a query.
#[derive(Default)]
pub struct Rows {
    /// The records that belong in the catalog.
    pub records: Vec<Record>,
    /// The ids of records that do not, deleted or disabled ones, with the names that they had.
    pub removed: Vec<(i64, Arc<str>)>,
    /// The ids of rows that cannot be read, with the reasons.
    pub unread: Vec<(i64, String)>,
}

impl Rows {
    /// Decodes rows. Their columns may be in any order, and there may be more of them.
    pub fn read(columns: &[String], rows: Vec<Vec<Term>>) -> NifResult<Rows> {
        let place = |name: &str| {
            columns.iter().position(|column| column == name).ok_or(rustler::Error::BadArg)
        };
        // Columns are looked up by name once per query, not once per row.
        let places = COLUMNS.iter().map(|name| place(name)).collect::<NifResult<Vec<usize>>>()?;
        let mut found = Rows::default();
        for values in rows {
            // A row of another length is a bug of the driver, not of the data.
            let whole = values.len() == columns.len();
            let row = whole
                .then(|| places.iter().map(|at| values[*at]).zip(COLUMNS))
                .ok_or(rustler::Error::BadArg)?;
            // A row without a usable id cannot be reported either, so it is a bug of the caller.
            let mut row = Row(row);
            let id = row.next("a number").map_err(|_| rustler::Error::BadArg)?;
            match row.record(id) {
                Ok(Some(record)) => found.records.push(record),
                Ok(None) => found.removed.push((id, row.text().unwrap_or_default().into())),
                Err(reason) => found.unread.push((id, reason)),
            }
        }
        Ok(found)
    }
}

/// The remaining values of a row with their columns, in the form of a database or of a struct.
struct Row<T>(T);

impl<'a, T: Iterator<Item = (Term<'a>, &'static str)>> Row<T> {
    fn record(&mut self, id: i64) -> Result<Option<Record>, String> {
        // The only atom in this column is `nil`.
        let is_deleted = self.read("a time or nothing", |value| Some(!value.is_atom()))?;
        if !self.flag()? || is_deleted {
            return Ok(None);
        }
        Ok(Some(Record {
            id,
            name: self.text()?,
            is_skill: self.one_of("skill or note", &[("skill", true), ("note", false)])?,
            title: self.text()?,
            description: self.text()?,
            content: self.next::<&str>("a text")?.into(),
            tags: self.list(list)?,
            tenant: self.tenant()?,
            labels: self.list(list)?,
            include_in_prompt: self.flag()?,
            proactive_for: self.list(list)?,
            excluded_for: self.list(list)?,
            origin: self.one_of("user or agent or import", &ORIGINS)?,
            version: self.next("a number")?,
            schedule: self.next("a text or nothing")?,
            timezone: self.next("a text or nothing")?,
            writers: self.list(list)?,
        }))
    }

    fn next<V: Decoder<'a>>(&mut self, expected: &str) -> Result<V, String> {
        self.read(expected, |value| value.decode().ok())
    }

    /// Databases store an empty text for all tenants, structs have `nil`.
    fn tenant(&mut self) -> Result<Tenant, String> {
        self.next::<Option<String>>("a text or nothing").map(Tenant::from)
    }

    fn text(&mut self) -> Result<String, String> {
        self.next("a text")
    }

    /// Databases store booleans as 1 and 0.
    fn flag(&mut self) -> Result<bool, String> {
        self.read("1 or 0", |value| {
            value.decode().or_else(|_| value.decode().map(|number: i64| number == 1)).ok()
        })
    }

    fn list<V: Decoder<'a>>(
        &mut self,
        items: fn(&str) -> Option<Vec<V>>,
    ) -> Result<Vec<V>, String> {
        self.read("a list of texts in JSON", |value| match value.decode() {
            Ok(json) => items(json),
            Err(_) => value.decode().ok(),
        })
    }

    fn one_of<V: Copy>(&mut self, expected: &str, known: &[(&str, V)]) -> Result<V, String> {
        let find = |text: &str| known.iter().find(|(name, _)| *name == text).map(|found| found.1);
        self.read(expected, |value| match value.decode() {
            Ok(text) => find(text),
            Err(_) => find(&value.atom_to_string().ok()?),
        })
    }

    fn read<V>(
        &mut self,
        expected: &str,
        read: impl FnOnce(Term<'a>) -> Option<V>,
    ) -> Result<V, String> {
        let (value, column) =
            self.0.next().ok_or_else(|| format!("expected {expected}, got no column"))?;
        read(value).ok_or_else(|| {
            let got = value
                .decode()
                .map_or_else(|_| format!("{value:?}"), |text: &str| format!("{text:?}"));
            // The value is cut: it may be a whole document.
            let got: String = got.chars().take(60).collect();
            format!("expected {expected} in the column {column}, got {got}")
        })
    }
}

#[derive(NifUnitEnum, PartialEq)]
enum Kind {
    Skill,
    Note,
}

/// The fields of a `%Skillbook.Stored{}` that limit its readers.
#[derive(NifMap)]
struct AccessMap {
    name: String,
    kind: Kind,
    tenant: Option<String>,
    labels: Vec<String>,
    excluded_for: Vec<String>,
    content: Option<String>,
}

impl From<AccessMap> for Access {
    fn from(map: AccessMap) -> Access {
        Access {
            name: map.name,
            is_skill: map.kind == Kind::Skill,
            tenant: map.tenant.into(),
            labels: map.labels,
            excluded_for: map.excluded_for,
            content: map.content,
        }
    }
}

/// Whether a profile may see each of these records. If the content is missing, the kind alone
/// decides whether a record is a skill.
#[rustler::nif(schedule = "DirtyCpu")]
fn stored_visible(
    ids: Vec<String>,
    tenant: Term,
    grants: Term,
    skills: Vec<Vec<String>>,
    rows: Vec<Term>,
) -> NifResult<Vec<bool>> {
    let profile = profile(ids, tenant, grants, skills, Vec::new())?;
    let sees = sees(&profile).map_err(|_| rustler::Error::BadArg)?;
    seen(rows, sees)
}

/// The bytes of the texts of these, with some for each; too many if one begins with frontmatter,
/// whose YAML may take long.
pub fn texts(rows: &[Term]) -> usize {
    let text = |row: &Term| {
        let content: Binary = row.map_get(atoms::content()).ok()?.decode().ok()?;
        let bytes = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&content);
        Some(if bytes.starts_with(b"---") { twin::BYTES + 1 } else { bytes.len() })
    };
    rows.iter().map(|row| ROW + text(row).unwrap_or(0)).sum()
}

/// Whether a rule admits each of these `%Skillbook.Stored{}`.
pub fn seen(rows: Vec<Term>, sees: impl Fn(&Access) -> bool) -> NifResult<Vec<bool>> {
    rows.into_iter().map(|row| Ok(sees(&row.decode::<AccessMap>()?.into()))).collect()
}
