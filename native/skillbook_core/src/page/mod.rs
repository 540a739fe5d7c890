//! One page: a file or a record as it was written, whatever others say.

pub mod declaration;
pub mod diagnostic;
pub mod document;
pub mod fields;
pub mod frontmatter;
pub mod record;
pub mod references;
pub mod sections;
