//! Shares of the documents in private copies of just their postings (`tatikonda11`, DOCP-PI): a
//! baseline for the [ranges](crate::query::engines::share) of `docp-ui`.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::generations::generation::Generation;
use crate::index::lexicon::{LexiconStream, TermEntry};
use crate::index::list::{Form, ListEncoder, ListError, ListView, MAX_BLOCK, SegmentColumns};
use crate::index::run::Run;
use crate::query::engines::share::{ALL, SearchedLists, local};
use crate::score::bounds::code_below;
use std::collections::HashMap;
use std::ops::Range;

/// The postings of a docid range in private memory: of each run the part that lies in the range,
/// with docids relative to the part's first.
#[derive(Debug)]
pub(super) struct Copied {
    runs: Vec<CopiedRun>,
}

const WINDOW_BYTES: usize = 256 << 10;

impl Copied {
    /// Copies the postings of `docids`: as much memory as in the index, and a table of the terms.
    ///
    /// # Errors
    /// If the index is damaged, or has been replaced and its files are gone.
    pub(super) fn new(generation: &Generation, docids: &Range<u32>) -> Result<Self, IndexError> {
        let all = generation.runs().iter().zip(generation.documents().runs());
        let runs = all.map(|(run, documents)| CopiedRun::new(run, docids, documents.lengths()));
        Ok(Self { runs: runs.collect::<Result<_, _>>()? })
    }
}

impl SearchedLists for Copied {
    fn list<'a>(
        &'a self,
        run: &'a Run,
        number: usize,
        term: TermEntry,
    ) -> Result<Option<ListView<'a>>, IndexError> {
        self.runs[number].list(run, term)
    }

    fn place(&self, _: &Run, number: usize) -> Range<u32> {
        self.runs[number].docids.clone()
    }

    fn docids(&self) -> Range<u32> {
        ALL
    }
}

#[derive(Clone, Copy, Debug)]
struct CopiedList {
    start: usize,
    bytes: u64,
    df: u32,
}

#[derive(Debug)]
struct CopiedRun {
    docids: Range<u32>,
    /// How the lists are coded: as those of the run.
    form: Form,
    /// By offset in the run.
    lists: HashMap<u64, CopiedList>,
    data: Vec<u8>,
}

impl CopiedRun {
    /// The run's documents have these lengths.
    fn new(run: &Run, docids: &Range<u32>, lengths: &[u32]) -> Result<Self, IndexError> {
        let wanted = local(docids, run);
        let first_docid = run.first_docid();
        let docids = first_docid + wanted.start..first_docid + wanted.end;
        let lengths = &lengths[wanted.start as usize..wanted.end as usize];
        let codes: Vec<u8> = lengths.iter().map(|&length| code_below(length)).collect();
        let mut lists = HashMap::new();
        let mut data = Vec::new();
        let form = run.postings_header().form;
        let mut encoder = ListEncoder::of_form(form);
        let mut terms = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
        while !docids.is_empty() && terms.advance()? {
            let term = terms.term().list;
            let Some(list) = run.list(term)?.within(wanted.clone()) else { continue };
            copy(&list, &wanted, run.documents(), &codes, &mut encoder)
                .map_err(|source| damaged(run, term, source))?;
            if encoder.df() > 0 {
                let start = data.len();
                let (df, bytes) = encoder.finish();
                data.append(encoder.payload());
                lists.insert(term.offset, CopiedList { start, bytes, df });
            }
        }
        // Room for wide loads.
        data.resize(data.len() + 64, 0);
        data.shrink_to_fit();
        Ok(Self { docids, form, lists, data })
    }

    fn list(&self, run: &Run, term: TermEntry) -> Result<Option<ListView<'_>>, IndexError> {
        let Some(list) = self.lists.get(&term.offset) else { return Ok(None) };
        let data = &self.data[list.start..];
        let view = ListView::of_form(self.form, list.df, list.bytes, data);
        view.map(Some).map_err(|source| damaged(run, term, source))
    }
}

/// Appends the wanted postings of a list.
fn copy(
    list: &ListView<'_>,
    wanted: &Range<u32>,
    documents: u32,
    codes: &[u8],
    encoder: &mut ListEncoder,
) -> Result<(), ListError> {
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    for block in 0..list.blocks() {
        let count = list.decode_postings(block, documents, &mut columns, &mut docids, &mut tfs)?;
        for (&docid, &tf) in docids[..count].iter().zip(&tfs) {
            if wanted.contains(&docid) {
                let docid = docid - wanted.start;
                encoder.push(docid, tf, codes[docid as usize]);
            }
        }
    }
    Ok(())
}

fn damaged(run: &Run, term: TermEntry, source: ListError) -> IndexError {
    IndexError::list(run.postings_path(), HEADER_BYTES as u64 + term.offset)(source)
}
