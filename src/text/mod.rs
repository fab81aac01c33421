//! From text to terms. Documents and queries go through the same steps, in this order:
//!
//! 1. A token is a maximal run of `char::is_alphanumeric` and of what belongs to the letter before
//!    it (`characters.rs`), lower-cased and composed as a whole. Bytes that are not UTF-8 separate
//!    tokens. With `cjk-bigram`, letters of Chinese, Japanese and Korean become their bigrams
//!    (`tokenizer/cjk.rs`); with `whitespace` a token is what stands between white space. If words
//!    are folded (`fold.rs`), that comes before.
//! 2. A stop word makes no term.
//! 3. The stemmer makes the term of any other token.
//! 4. A term over 255 bytes is cut at the last border of a character before. If nothing is left,
//!    there is no term.
//! 5. The first characters of a term tell its [trie collection](trie_collection).
//!
//! The length of a document is the number of its terms, repeated ones included; the mean length is
//! over all documents, empty ones included.

pub(crate) mod analysis;
mod characters;
pub(crate) mod english;
pub(crate) mod fields;
mod fold;
pub(crate) mod html;
mod marks;
pub(crate) mod porter;
pub(crate) mod readable;
pub(crate) mod scan;
mod spans;
pub(crate) mod stemmer;
pub(crate) mod stop_words;
mod sweep;
pub(crate) mod tokenizer;
pub(crate) mod trie_collection;
pub(crate) mod unspaced;
pub(crate) mod wikitext;
