//! The one error of this library: what is wrong with which file.

use std::fmt;

/// A file of a model that cannot be used.
#[derive(Debug, PartialEq)]
pub struct Error {
    /// Its path in the model's folder.
    pub file: String,
    /// The problem, as the rest of a sentence after the file's name and a colon.
    pub problem: String,
}

impl Error {
    pub fn new(file: &str, problem: impl Into<String>) -> Error {
        Error { file: file.to_owned(), problem: problem.into() }
    }

    pub fn expected(file: &str, expected: &str, got: impl fmt::Display) -> Error {
        Error::new(file, format!("expected {expected}, got {got}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.file, self.problem)
    }
}
