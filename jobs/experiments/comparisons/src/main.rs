//! Measures what our JSON scanner, HTML tokenizer and English stemmer cost, and what the crates
//! cost that do the same.
//!
//! ```text
//! comparisons json  none|millrace|serde_json|sonic-rs|simd-json        FILE.jsonl
//! comparisons html  none|millrace|html5ever|lol_html|tl                FILE.warc
//! comparisons stems none|millrace|rust-stemmers                        FILE.jsonl
//! ```
//!
//! One pass over a file that is not compressed, in memory. `none` does what all have in common, so
//! that its instructions are taken from those of the others; and what is left over the instructions
//! of a whole build of the same file is the share that `docs/measurements/indexing.md` records.
//! Each prints how many records it saw and a sum over what it found, by which the results can be
//! compared.

mod html;
mod json;
mod stems;

use std::error::Error;
use std::io::Write;
use std::time::Instant;

/// What was found: records, and bytes of text, or of stems.
#[derive(Default)]
struct Found {
    records: u64,
    bytes: u64,
}

impl Found {
    fn add(&mut self, text: &[u8]) {
        self.records += 1;
        self.bytes += text.len() as u64;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const USAGE: &str = "give json|html|stems, who does it, and a file";
    let mut arguments = std::env::args();
    let (Some(_), Some(what), Some(who), Some(path)) =
        (arguments.next(), arguments.next(), arguments.next(), arguments.next())
    else {
        return Err(USAGE.into());
    };
    let file = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    let start = Instant::now();
    let found = match what.as_str() {
        "json" => json::run(&who, &file),
        "html" => html::run(&who, &file),
        "stems" => stems::run(&who, &file),
        _ => return Err(USAGE.into()),
    }?;
    let seconds = start.elapsed().as_secs_f64();
    let Found { records, bytes } = found;
    writeln!(std::io::stdout(), "{what} {who}: {records} records, {bytes} bytes, {seconds:.3} s")?;
    Ok(())
}
