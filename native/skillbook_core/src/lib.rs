//! The core of Skillbook: skill documents, commands, catalogs and views.
//!
//! Skills are Markdown documents. A model finds them in its prompt, reads the ones it needs, and
//! acts by writing commands. This crate reads documents and commands, builds catalogs and answers
//! queries about them. It takes bytes and returns values: files, clocks, sockets and threads belong
//! to the crates around it, and a lint (`clippy.toml`) keeps it so.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::{assemble::assemble, Catalog};
//! use skillbook_core::page::document::Document;
//! use skillbook_core::source::Source;
//! use skillbook_core::text::{command, extract};
//! use skillbook_core::view::{CachedCatalog, Profile, View};
//!
//! // A file becomes a document, documents become a catalog, and a profile sees a view of it.
//! let source = Arc::new(Source { root: "/skills".into(), ..Source::default() });
//! let page = b"---\nname: mail.send\ndescription: Sends a message\n---\n# mail.send\n";
//! let document = Arc::new(Document::parse("/skills", "mail/send.md", page));
//! let catalog = Catalog::build(1, vec![assemble(&source, vec![document], vec![])]);
//! let view = View::new(Arc::new(CachedCatalog::new(catalog)), &Profile::unrestricted()).unwrap();
//! assert!(view.prompt().contains("mail"));
//!
//! // A model's reply contains commands, and each names an entry of the view.
//! let reply = "```cmd\nmail.send --to ann\n```";
//! let found = extract::extract(reply, extract::Unclosed::Hold).unwrap();
//! let command = command::parse(&found.commands[0]).unwrap();
//! assert!(view.find(&command.name).is_some());
//! ```
//!
//! # Modules
//!
//! Each module uses only modules above it in this list (`tests/modules.rs` checks it).
//!
//! | module | contents |
//! |---|---|
//! | [`value`], [`json`] | values, JSON with places |
//! | [`hidden`] | hidden characters, and how they are shown |
//! | [`glob`], [`diff`], [`excerpt`] | globs, unified diffs, a line with a caret |
//! | [`markdown`] | Markdown as HTML for the page |
//! | [`source`] | sources of entries, and the kinds of entries |
//! | [`schedule`] | cron expressions and time zones |
//! | [`text`] | the command language: blocks in a reply, commands, words |
//! | [`page`] | one document: frontmatter, fields, sections, flags, diagnostics |
//! | [`catalog`] | all entries of all sources: precedence, changes, findings across entries |
//! | [`search`] | full-text search |
//! | [`view`] | the entries that one profile may see: lookup, help, tools |
//! | [`prompt`] | the system prompt's part about skills |
//! | [`tool`] | commands and skills as tools of models, in the formats of vendors |
//! | [`lint`], [`explain`] | advice for authors; which file a name resolves to, and why |
//! | [`report`] | diagnostics, entries and search results as people read them: text, JSON, SARIF |
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod catalog;
pub mod diff;
pub mod excerpt;
pub mod explain;
pub mod glob;
pub mod hidden;
pub mod json;
pub mod lint;
pub mod markdown;
pub mod page;
pub mod prompt;
pub mod report;
pub mod schedule;
pub mod schema;
pub mod search;
pub mod source;
pub mod tenant;
pub mod text;
pub mod tool;
pub mod value;
pub mod view;
