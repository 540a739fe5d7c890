//! Receives the words that the scanner finds.
//!
//! The tokenizer implements [`Sink`] to build words. The extractor passes [`NoWords`], since it only
//! needs to know where a command ends; its calls compile to nothing.

use std::ops::Range;

/// What the machine tells about the words it passes. Ranges are of the scanned source.
pub(in crate::text) trait Sink {
    /// A word begins; `quoted` if by a quote, an escape or a heredoc.
    fn start(&mut self, at: usize, quoted: bool);
    /// These characters of the source belong to the word.
    fn text(&mut self, range: Range<usize>);
    /// These characters, which the source writes otherwise, belong to the word.
    fn push(&mut self, text: &'static str);
    /// A whole word whose value is a part of the source; if that is not all of the word, it is quoted.
    fn word(&mut self, span: Range<usize>, value: Range<usize>);
    /// The word is over.
    fn end(&mut self, at: usize);
    /// The word takes the next heredoc's value, whose lines are all indented further than what is meant if `dedent`.
    fn heredoc(&mut self, dedent: bool);
    /// A line of the `index`th heredoc, without its line break.
    fn heredoc_line(&mut self, index: usize, range: Range<usize>);
    /// How long the word's value is so far.
    fn mark(&self) -> usize;
    /// Takes back what the word got since [`Sink::mark`] gave this.
    fn rewind(&mut self, mark: usize);
}

/// For who only wants to know where a command ends.
pub(in crate::text) struct NoWords;

impl Sink for NoWords {
    fn start(&mut self, _at: usize, _quoted: bool) {}
    fn text(&mut self, _range: Range<usize>) {}
    fn push(&mut self, _text: &'static str) {}
    fn word(&mut self, _span: Range<usize>, _value: Range<usize>) {}
    fn end(&mut self, _at: usize) {}
    fn heredoc(&mut self, _dedent: bool) {}
    fn heredoc_line(&mut self, _index: usize, _range: Range<usize>) {}
    fn mark(&self) -> usize {
        0
    }
    fn rewind(&mut self, _mark: usize) {}
}
