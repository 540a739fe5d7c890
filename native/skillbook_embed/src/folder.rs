//! Reads the files of a model's folder, up to a size, and the values in its JSON files.

use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::Error;

/// Bytes of a file with settings.
const MAX_SETTINGS: u64 = 1 << 20;
/// Characters of a value in an error.
const MAX_SHOWN: usize = 100;

pub struct Folder {
    path: PathBuf,
}

/// An object in a JSON file.
pub struct Settings {
    file: String,
    fields: Map<String, Value>,
}

impl Folder {
    pub fn new(path: &str) -> Folder {
        Folder { path: PathBuf::from(path) }
    }

    /// The content of a file of at most `max` bytes, `None` if there is no such file.
    pub fn read(&self, file: &str, max: u64) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(file);
        let failed = |error: std::io::Error| Error::new(file, format!("cannot be read: {error}"));
        match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
            // A pipe would wait, a device would not end.
            Ok(metadata) if !metadata.is_file() => {
                return Err(Error::expected(file, "a file", "a folder or a device"))
            }
            Ok(metadata) if metadata.len() > max => return Err(too_large(file, max)),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(max + 1).read_to_end(&mut bytes));
        read.map_err(failed)?;
        if bytes.len() as u64 > max {
            return Err(too_large(file, max));
        }
        Ok(Some(bytes))
    }

    pub fn require(&self, file: &str, max: u64) -> Result<Vec<u8>, Error> {
        self.read(file, max)?.ok_or_else(|| Error::new(file, "not found"))
    }

    /// A JSON file, `None` if there is none.
    pub fn json(&self, file: &str) -> Result<Option<Value>, Error> {
        let Some(bytes) = self.read(file, MAX_SETTINGS)? else { return Ok(None) };
        let json = serde_json::from_slice(&bytes)
            .map_err(|error| Error::expected(file, "JSON", format!("an error: {error}")))?;
        Ok(Some(json))
    }

    /// A file with a JSON object, `None` if there is none.
    pub fn settings(&self, file: &str) -> Result<Option<Settings>, Error> {
        match self.json(file)? {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Settings { file: file.to_owned(), fields })),
            Some(other) => Err(Error::expected(file, "a JSON object", shown(&other))),
        }
    }
}

fn too_large(file: &str, max: u64) -> Error {
    let size = if max >> 20 > 0 { format!("{} MiB", max >> 20) } else { format!("{max} bytes") };
    Error::new(file, format!("is larger than {size}"))
}

/// A value for an error, shortened.
pub fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

/// Whether a path that a file names stays in the folder.
pub fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

impl Settings {
    pub fn error(&self, name: &str, expected: &str) -> Error {
        let got = match self.get(name) {
            None => "nothing".to_owned(),
            Some(value) => shown(value),
        };
        Error::expected(&self.file, &format!("{expected} as `{name}`"), got)
    }

    /// `null` is as good as nothing.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Names of a field in different models; the first one is required.
    pub fn whole(&self, name: &str, range: RangeInclusive<usize>) -> Result<usize, Error> {
        self.get(name)
            .and_then(Value::as_u64)
            .and_then(|number| usize::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                self.error(name, &expected)
            })
    }

    pub fn number(&self, name: &str, default: f32) -> Result<f32, Error> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => match value.as_f64() {
                Some(number) if (0.0..=1.0).contains(&number) => Ok(number as f32),
                _ => Err(self.error(name, "a number from 0 to 1")),
            },
        }
    }

    pub fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.error(name, "true or false")),
        }
    }

    /// One of the given texts.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Error> {
        let got = self.get(name).and_then(Value::as_str);
        let found = got.and_then(|got| choices.iter().find(|(choice, _)| *choice == got));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(choice, _)| format!("{choice:?}")).collect();
            let expected = match names.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                None => String::new(),
            };
            self.error(name, &expected)
        })
    }
}
