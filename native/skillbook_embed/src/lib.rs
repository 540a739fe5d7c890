//! The native library of `Skillbook.Embedder.Local`: vectors of texts by a sentence-transformers
//! model of the BERT family. A library of its own, because most applications need none of it.
//!
//! A call runs on a dirty CPU scheduler and, for several texts, on further threads that end with
//! it. No file of a model can make it panic or take memory without limit: shapes are those of
//! `config.json`, whose numbers have limits, and weights are as large as their file.

#![cfg_attr(test, allow(dead_code))]

mod config;
mod encoder;
mod error;
mod folder;
mod math;
mod model;
// Tests run without a virtual machine, whose functions this needs.
#[cfg(not(test))]
mod nif;
mod weights;
