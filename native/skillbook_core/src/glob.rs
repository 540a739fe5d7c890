//! Globs over names, for the lists of skills and tools that a profile may use.
//!
//! The syntax is [`globset`]'s: `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b}`. In contrast to globs over
//! paths, `*` also matches `/`, since `/` is part of a name here.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// An error about a glob that does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadGlob {
    /// The glob as it was written.
    pub glob: String,
    /// The reason, without the glob.
    pub message: String,
}

/// A set of globs. A name matches if it matches one of them.
///
/// Case matters. `*` matches any characters, including dots and slashes, and `?` matches one
/// character.
///
/// ```
/// use skillbook_core::glob::Globs;
/// let globs = Globs::new(&["email.*".to_owned(), "report-?".to_owned()]).unwrap();
/// assert!(globs.matches("email.send") && globs.matches("report-1"));
/// assert!(!globs.matches("Email.send") && !globs.matches("report-10"));
/// ```
#[derive(Debug, Clone)]
pub struct Globs {
    patterns: Vec<String>,
    set: GlobSet,
}

impl Globs {
    /// Compiles patterns. Without patterns the set matches nothing.
    ///
    /// # Errors
    ///
    /// Returns the first pattern that does not compile, such as `[a`, or all of them if only the
    /// set as a whole is too large.
    pub fn new(patterns: &[String]) -> Result<Globs, BadGlob> {
        let bad = |glob: &str, error: globset::Error| BadGlob {
            glob: glob.to_owned(),
            message: error.kind().to_string(),
        };
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(GlobBuilder::new(pattern).build().map_err(|error| bad(pattern, error))?);
        }
        let set = set.build().map_err(|error| bad(&patterns.join(" "), error))?;
        Ok(Globs { patterns: patterns.to_vec(), set })
    }

    /// Returns true if and only if a pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        self.set.is_match(name)
    }

    /// The patterns that match none of the names, in their order.
    ///
    /// ```
    /// use skillbook_core::glob::Globs;
    /// let globs = Globs::new(&["email.*".to_owned(), "emial.*".to_owned()]).unwrap();
    /// assert_eq!(globs.unmatched(["email.send"].into_iter()), ["emial.*"]);
    /// ```
    pub fn unmatched<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<&str> {
        let mut matched = vec![false; self.patterns.len()];
        for name in names {
            self.set.matches(name).into_iter().for_each(|at| matched[at] = true);
        }
        let patterns = self.patterns.iter().zip(matched).filter(|(_, matched)| !matched);
        patterns.map(|(pattern, _)| pattern.as_str()).collect()
    }

    /// The patterns, unchanged.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

impl PartialEq for Globs {
    fn eq(&self, other: &Globs) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for Globs {}
