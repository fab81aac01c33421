//! From text to terms; `docs/ARCHITECTURE.md`, section *Text*, has the contract: tokens, stop
//! words, stemming, cutting, trie collection, in this order.

pub(crate) mod analysis;
pub(crate) mod english;
pub(crate) mod html;
mod marks;
pub(crate) mod porter;
pub(crate) mod readable;
pub(crate) mod scan;
pub(crate) mod stemmer;
pub(crate) mod stop_words;
mod sweep;
pub(crate) mod tokenizer;
pub(crate) mod trie_collection;
pub(crate) mod wikitext;
