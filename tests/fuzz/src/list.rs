//! Any list is either read as rising docids below the bound, or an error, by every way to read it;
//! and so are its positions.

use crate::fuzzing::damage::edit;
use crate::fuzzing::take::Take;
use millrace::index::list::{Form, ListEncoder, ListError, ListView, MAX_BLOCK, SegmentColumns};
use millrace::query::algorithms::{and, exhaustive};
use millrace::query::cursor::{Norms, RunTerm};
use millrace::query::scratch::Scratch;
use millrace::query::top_k::{Hit, TopK};
use millrace::score::bm25::Bm25;
use millrace::score::bounds::{BoundNorms, code_below};
use std::cell::RefCell;

/// The most documents of a run; each has a norm.
const MOST_DOCUMENTS: u32 = 1 << 17;

thread_local! {
    // Kept from input to input: nothing of a damaged list may stay behind.
    static SCRATCH: RefCell<(TopK, Scratch)> = RefCell::new((TopK::new(), Scratch::new()));
    static NORMS: (Vec<f32>, BoundNorms) = norms();
}

/// The length of a document.
fn length(docid: u32) -> u32 {
    docid.wrapping_mul(0x9e37_79b1) >> (12 + docid % 17)
}

/// Norms of all documents, and of the lengths that bounds have.
fn norms() -> (Vec<f32>, BoundNorms) {
    let lengths: Vec<u32> = (0..MOST_DOCUMENTS).map(length).collect();
    let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>() / lengths.len() as f64;
    let mut norms = Vec::new();
    Bm25::default().norms(&lengths, mean, &mut norms);
    (norms, BoundNorms::new(&Bm25::default(), mean))
}

/// df, bytes of the list, and data.
type Encoded = (u32, u64, Vec<u8>);

/// A list as the encoder writes it, of up to a thousand postings or so.
fn encode(form: Form, take: &mut Take<'_>) -> Encoded {
    let (gap_bits, tf_bits) = (take.u8() % 12, take.u8() % 33);
    let count = 1 + take.u16() % 1300;
    let mut noise = take.u32() | 1;
    let mut encoder = ListEncoder::of_form(form);
    let mut docid = 0u32;
    for _ in 0..count {
        noise = noise.wrapping_mul(0x9e37_79b1).rotate_left(13) ^ 0x5bd1;
        docid += noise >> 8 & ((1 << gap_bits) - 1);
        let tf = noise.rotate_right(7) as u64 & ((1u64 << tf_bits) - 1);
        encoder.push(docid, (tf as u32).saturating_add(1), code_below(length(docid)));
        docid += 1;
    }
    let (df, bytes) = encoder.finish();
    (df, bytes, std::mem::take(encoder.payload()))
}

fn encoded(form: Form, take: &mut Take<'_>) -> Encoded {
    let kind = take.u8();
    let slack = usize::from(take.u8() % 66);
    let (mut df, mut bytes, mut data) = if kind.is_multiple_of(4) {
        let df = u32::from(take.u16());
        let count = usize::from(take.u16());
        let data = take.bytes(count).to_vec();
        (df, data.len() as u64, data)
    } else {
        let (df, bytes, mut data) = encode(form, take);
        for _ in 0..kind >> 2 & 7 {
            edit(&mut data, take);
        }
        // As a lexicon would have it that knows of the damage.
        let bytes = if kind & 0x20 == 0 { data.len() as u64 } else { bytes };
        (df, bytes, data)
    };
    if kind & 0x40 != 0 {
        df = df.wrapping_add(take.u32());
    }
    if kind & 0x80 != 0 {
        bytes = bytes.wrapping_add(take.u64());
    }
    data.resize(data.len() + slack, 0xa5);
    // No room behind it, so that a read beyond the data is seen.
    data.shrink_to_fit();
    (df, bytes, data)
}

/// Reads a list in parts; returns its postings.
fn read(view: &ListView<'_>, documents: u32) -> Result<Vec<(u32, u32)>, ListError> {
    let mut postings = Vec::new();
    let (mut docids, mut tfs) = ([0; MAX_BLOCK], [0; MAX_BLOCK]);
    let (mut columns, len) = (SegmentColumns::default(), view.block_len());
    for block in 0..view.full_blocks() {
        view.decode_block(block, documents, &mut columns, &mut docids[..len])?;
        view.decode_tfs(block, &mut columns, &mut tfs[..len])?;
        for i in [0, 1, len / 2 - 1, len - 1] {
            assert_eq!(view.tf(block, i, &mut columns), Ok(tfs[i]));
        }
        assert_eq!(view.last_docid(block), docids[len - 1]);
        postings.extend(docids[..len].iter().copied().zip(tfs));
    }
    let count = view.decode_tail(documents, &mut docids, &mut tfs)?;
    postings.extend(docids.into_iter().zip(tfs).take(count));
    Ok(postings)
}

fn check_list(form: Form, (df, bytes, data): &Encoded, documents: u32) -> Option<Vec<(u32, u32)>> {
    let view = match ListView::of_form(form, *df, *bytes, data) {
        Ok(view) => view,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let found = read(&view, documents);
    let mut checked = Vec::new();
    // This many lengths are stored; with a greater bound the lists' bounds are not compared.
    let lengths: Vec<u32> = (0..MOST_DOCUMENTS).map(length).collect();
    let lengths = Some(&lengths[..]).filter(|lengths| lengths.len() >= documents as usize);
    let check = view.check(documents, lengths, |docids, tfs| {
        checked.extend(docids.iter().copied().zip(tfs.iter().copied()));
    });
    if check.is_ok() {
        assert_eq!(found.as_ref(), Ok(&checked));
    }
    if check.is_ok() && lengths.is_some() {
        let mut encoder = ListEncoder::of_form(form);
        let mut push = |&(docid, tf)| encoder.push(docid, tf, code_below(length(docid)));
        checked.iter().for_each(&mut push);
        let (df_again, bytes_again) = encoder.finish();
        assert_eq!((*df, *bytes), (df_again, bytes_again));
        assert!(encoder.payload()[..] == data[..*bytes as usize], "check accepts one form alone");
    }
    let postings = found.ok()?;
    assert_eq!(postings.len(), *df as usize);
    assert!(postings.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(postings.iter().all(|&(docid, tf)| docid < documents && tf > 0));
    Some(postings)
}

fn search(all: bool, terms: &[RunTerm<'_>], documents: u32, k: usize) -> Option<Vec<Hit>> {
    let mut hits = Vec::new();
    let found = SCRATCH.with_borrow_mut(|(top, scratch)| {
        top.reset(k);
        let algorithm = if all { and::search } else { exhaustive::search };
        let found = NORMS.with(|(norms, bounds)| {
            let norms = Norms { documents: norms, bounds, statics: &[], globals: &[] };
            algorithm(&scratch.run(terms, 7..7 + documents, norms), top, scratch)
        });
        top.take(&mut hits);
        found
    });
    assert!(hits.len() <= k);
    assert!(hits.iter().all(|hit| (7..7 + documents).contains(&hit.docid)));
    found.is_ok().then_some(hits)
}

/// What is asked of an input.
pub fn list(data: &[u8]) {
    super::positions::positions(data);
    let mut take = Take(data);
    let forms: Vec<Form> = Form::all().collect();
    let form = forms[usize::from(take.u8()) % forms.len()];
    let documents = match take.u8() % 4 {
        0 => u32::from(take.u16()),
        _ => MOST_DOCUMENTS,
    };
    let k = 1 + usize::from(take.u8());
    let lists: Vec<Encoded> = (0..1 + take.u8() % 3).map(|_| encoded(form, &mut take)).collect();
    let read: Vec<_> = lists.iter().map(|list| check_list(form, list, documents)).collect();
    // With any other bound too.
    check_list(form, &lists[0], take.u32());

    let terms: Result<Vec<_>, ListError> = lists
        .iter()
        .map(|(df, bytes, data)| {
            let list = Some(ListView::of_form(form, *df, *bytes, data)?);
            Ok(RunTerm { weight: 1.5.into(), list })
        })
        .collect();
    let Ok(terms) = terms else { return };
    // The kernels may read wider than the list where there is room, and have to agree either way.
    let or = search(false, &terms, documents, k);
    let and = search(true, &terms, documents, k);
    if read.iter().all(Option::is_some) {
        let docids = |list: &Option<Vec<(u32, u32)>>| -> Vec<u32> {
            list.iter().flatten().map(|posting| posting.0).collect()
        };
        let lists: Vec<Vec<u32>> = read.iter().map(docids).collect();
        let mut any: Vec<u32> = lists.concat();
        any.sort_unstable();
        any.dedup();
        let all = any.iter().filter(|docid| lists.iter().all(|l| l.binary_search(docid).is_ok()));
        assert_eq!(and.map(|hits| hits.len()), Some(all.count().min(k)));
        assert_eq!(or.map(|hits| hits.len()), Some(any.len().min(k)));
    }
}
