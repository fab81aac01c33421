//! Options of every job that makes an index: how texts become terms, and how lists are coded.

use crate::Usage;
use millrace::IndexError;
use millrace::inside::codec::ListCodec;
use millrace::inside::index::Form;
use millrace::inside::input::whole_text;
use millrace::inside::text::{Analysis, Stemmer, StopList, Tokenizer};
use std::fmt::Display;
use std::path::PathBuf;

/// Terms and lists. Of an index that is imported, terms are those of queries, and should be as the
/// exporter's.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct IndexArgs {
    /// How text is cut into tokens. words: runs of letters and digits. cjk-bigram: the same, with
    /// Chinese, Japanese and Korean text as overlapping pairs of letters. whitespace: what stands
    /// between white space, as it is, for text that is cut already; then --stemmer and --stopwords
    /// are none unless given.
    #[arg(long, default_value = "words", value_parser = tokenizer, value_name = "NAME")]
    tokenizer: Tokenizer,
    /// Take spellings of a word for one: letters without accents and points, compatible forms
    /// (H2O, fi, km2, full width), ss for sharp s, ae for its ligature; before stop words and
    /// stemmer.
    #[arg(long)]
    fold: bool,
    /// english, porter, none, or the name of another language.
    /// [default: english]
    #[arg(long)]
    stemmer: Option<Stemmer>,
    /// english (33 words), none, or a file with one word on each line. [default: english]
    #[arg(long, value_name = "NAME|FILE")]
    stopwords: Option<PathBuf>,
    /// Compression of the postings: bp128 (fastest), newpfd (smallest), vbyte, rice or pfor.
    #[arg(long, default_value = "bp128", value_name = "NAME")]
    codec: ListCodec,
    /// Number of postings that are compressed together: 64, 128 or 512 (newpfd: 64 or 128).
    #[arg(long, default_value = "128", value_parser = block_size, value_name = "N")]
    block_size: usize,
}

impl IndexArgs {
    pub(crate) fn analysis(&self) -> anyhow::Result<Analysis> {
        let list = self.stopwords.as_deref().map(|list| StopList::Named(list, whole_text));
        Analysis::of(self.tokenizer, self.fold, self.stemmer, list).map_err(|error| {
            match error.setting() {
                "stopwords" => anyhow::anyhow!(error.on_command_line()),
                _ => Usage::from(error).into(),
            }
        })
    }

    pub(crate) fn form(&self) -> Result<Form, Usage> {
        let codec = self.codec;
        let block_len = self.block_size;
        let none = || Usage(IndexError::NoForm { codec, block_len }.to_string());
        Form::new(codec, block_len).ok_or_else(none)
    }
}

/// What is said of letters that are not cut, with the option that is meant.
pub(crate) fn with_option(said: &impl Display) -> String {
    said.to_string().replace("the tokenizer cjk-bigram", "--tokenizer cjk-bigram")
}

fn tokenizer(name: &str) -> Result<Tokenizer, String> {
    Tokenizer::named(name).ok_or_else(|| "it is words, cjk-bigram or whitespace".to_string())
}

/// Reads a number of postings that the blocks of some codec have.
pub(crate) fn block_size(text: &str) -> Result<usize, String> {
    let mut sizes: Vec<usize> = Form::all().map(Form::block_len).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let found = sizes.iter().find(|size| *size == text).and_then(|size| size.parse().ok());
    found.ok_or_else(|| format!("the block sizes are {}", sizes.join(", ")))
}
