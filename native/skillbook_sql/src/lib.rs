//! The database drivers of Skillbook.
