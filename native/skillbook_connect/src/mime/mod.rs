//! Mails: their format (RFC 5322, MIME) read and written.
//!
//! [`parse`] reads anything: what is broken is listed in words among the problems of a mail.
//! [`build`] writes only what every server takes, and refuses values that would need repair.

pub mod build;
pub mod parse;
mod problems;
#[cfg(test)]
mod tests;
mod tree;
mod words;

/// A mailbox of a header. An address without a domain is kept as it is written.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "nif", derive(rustler::NifMap))]
pub struct Mailbox {
    pub name: Option<String>,
    pub address: String,
}
