//! What are the terms of a text? The rules are the contract of `docs/ARCHITECTURE.md`, section
//! *Text*: tokens, stop words, stemming, cutting, trie collection, in this order.

pub mod analysis;
pub mod english;
pub mod html;
mod marks;
pub mod porter;
pub mod readable;
pub mod scan;
pub mod stemmer;
pub mod stop_words;
mod sweep;
pub mod tokenizer;
pub mod trie_collection;
pub mod wikitext;
