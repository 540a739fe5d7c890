//! The native library of connections: the formats of mails, web pages and calendars, and the
//! protocols that have no HTTP. A library of its own, because most applications need none of it.
//!
//! One file or folder per topic, and in `nif/` a file of the same name with its functions for
//! `Skillbook.Connections.Library`.
//!
//! All of it reads strangers' bytes: no panic, no recursion on input, and limits of size, nesting
//! and counts, which each topic documents.

pub mod charset;
pub mod html;
pub mod ical;
pub mod imap;
pub mod mime;
pub mod net;
pub mod smtp;
pub mod xml;
// Tests and fuzz targets run without a virtual machine, whose functions this needs.
#[cfg(all(feature = "nif", not(test)))]
mod nif;
