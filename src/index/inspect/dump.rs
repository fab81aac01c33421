//! Writes all that an index holds as lines for other programs: objects of JSON, or columns with
//! tabs between them.

use crate::index::files::storage::Stop;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::for_each_term;
use crate::index::inspect::find::DocumentRow;
use crate::shown::visible;
use serde_json::json;
use std::io::{self, Write};

/// Writes every term with df, cf and the bytes of its lists, or, with `postings`, with all of
/// these, and their positions if the index has them; with `tsv` postings have a line each. Deleted
/// documents do not count, except for the bytes of their postings. `progress` counts terms. Returns
/// their number.
pub fn terms(
    generation: &Generation,
    tsv: bool,
    postings: bool,
    out: &mut impl Write,
    progress: &Stop,
) -> io::Result<u64> {
    let mut rows = 0;
    progress.expect(generation.manifest().statistics.terms);
    let fields = generation.manifest().settings.index_fields();
    for_each_term::<io::Error>(generation, |lists| {
        let term = fields.shown(&String::from_utf8_lossy(&lists.term));
        let df = lists.df(generation)?;
        let bytes = lists.bytes();
        if df == 0 {
            return Ok(());
        }
        rows += 1;
        progress.pass(1);
        if !postings {
            let mut cf = 0u64;
            lists.postings(generation, |_, tfs| {
                cf += tfs.iter().map(|&tf| u64::from(tf)).sum::<u64>()
            })?;
            match tsv {
                true => writeln!(out, "{term}\t{df}\t{cf}\t{bytes}")?,
                false => {
                    writeln!(out, "{}", json!({"term": term, "df": df, "cf": cf, "bytes": bytes}))?
                }
            }
            return Ok(());
        }
        // A list may be long, so its line is written as it is read.
        let mut first = true;
        let mut failed = Ok(());
        if !tsv {
            write!(out, "{{\"term\":{},\"df\":{df},\"postings\":[", json!(term))?;
        }
        let has_positions = generation.manifest().settings.positions;
        lists.positions(generation, |docids, tfs, mut positions| {
            for (docid, tf) in docids.iter().zip(tfs) {
                let comma = if std::mem::take(&mut first) { "" } else { "," };
                let own = positions.split_off(..*tf as usize).unwrap_or(&[]);
                let own: Vec<String> = own.iter().map(u32::to_string).collect();
                let own = own.join(",");
                let written = match (tsv, has_positions) {
                    (true, true) => writeln!(out, "{term}\t{docid}\t{tf}\t{own}"),
                    (true, false) => writeln!(out, "{term}\t{docid}\t{tf}"),
                    (false, true) => write!(out, "{comma}[{docid},{tf},[{own}]]"),
                    (false, false) => write!(out, "{comma}[{docid},{tf}]"),
                };
                if failed.is_ok() {
                    failed = written;
                }
            }
        })?;
        failed?;
        if !tsv {
            writeln!(out, "]}}")?;
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Writes what is known of every document that is not deleted, which `progress` counts. Returns
/// their number.
pub fn documents(
    generation: &Generation,
    tsv: bool,
    out: &mut impl Write,
    progress: &Stop,
) -> io::Result<u64> {
    progress.expect(generation.live_documents().into());
    for docid in generation.live() {
        progress.pass(1);
        let row = DocumentRow::of(generation, docid)?;
        if tsv {
            let DocumentRow { docid, name, tokens, input, offset, bytes, .. } = row;
            let name = visible(&name.replace(['\t', '\n', '\r'], " "));
            let input = visible(&input);
            writeln!(out, "{docid}\t{name}\t{tokens}\t{input}\t{offset}\t{bytes}")?;
        } else {
            writeln!(out, "{}", serde_json::to_string(&row).map_err(io::Error::from)?)?;
        }
    }
    Ok(generation.live_documents().into())
}
