//! Receives the words that the scanner finds.
//!
//! The tokenizer implements [`Sink`] to build words. The extractor passes [`NoWords`], since it
//! only needs to know where a command ends; its calls compile to nothing.

use std::ops::Range;

/// Receives words. Ranges are byte ranges of the scanned source.
pub(in crate::text) trait Sink {
    /// A word begins; `quoted` if it begins with a quote, an escape or a heredoc.
    fn start(&mut self, at: usize, quoted: bool);
    /// These characters of the source belong to the word.
    fn text(&mut self, range: Range<usize>);
    /// This text, which the source writes in another form (an escape, a dash), belongs to the word.
    fn push(&mut self, text: &'static str);
    /// A whole word whose value is a range of the source. It is quoted if the two ranges differ.
    fn word(&mut self, span: Range<usize>, value: Range<usize>);
    /// The word ends.
    fn end(&mut self, at: usize);
    /// The word's value is the next heredoc. With `dedent`, remove the indentation that its lines
    /// have in common.
    fn heredoc(&mut self, dedent: bool);
    /// A line of the `index`th heredoc, without its line break.
    fn heredoc_line(&mut self, index: usize, range: Range<usize>);
    /// The length of the word's value so far.
    fn mark(&self) -> usize;
    /// Removes the text that the word received since [`Sink::mark`] returned this.
    fn rewind(&mut self, mark: usize);
}

/// Ignores all words.
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
