//! One document by itself: a file, or a record of a database, without regard to other documents.
//!
//! [`document`] reads a whole one, with these parts:
//!
//! | module | contents |
//! |---|---|
//! | [`frontmatter`] | the YAML block: its limits, its repair, writing it |
//! | [`fields`] | the known fields of frontmatter, each with its type |
//! | [`record`] | columns of a database in place of frontmatter |
//! | [`sections`] | headings and fenced code of the body |
//! | [`declaration`] | the flags that a command's page declares |
//! | [`references`] | links to files beside a skill |
//! | [`slip`] | words that are nearly known ones |
//! | [`diagnostic`] | findings, their codes, and fixes |
//!
//! ```
//! use skillbook_core::page::document::Document;
//!
//! let page = b"---\nname: mail.send\ntags: mail, people\n---\n# mail.send\n";
//! let document = Document::parse("/skills", "mail/send.md", page);
//! assert_eq!(document.fields().unwrap().tags, ["mail", "people"]);
//! assert_eq!(document.diagnostics[0].code.as_str(), "field_mended");
//! assert_eq!(document.body(), "# mail.send\n");
//! ```

pub mod declaration;
pub mod diagnostic;
pub mod document;
pub mod fields;
pub mod frontmatter;
pub mod record;
pub mod references;
pub mod sections;
pub mod slip;
