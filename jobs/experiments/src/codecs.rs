//! `experiments codecs`: bytes and decoding speed of every codec on the lists that real queries
//! touch, by length (ding09, figures 3 and 4, table 1).

mod measure;

use crate::args::AskedQueries;
use measure::{CodecSetting, ListColumns, ListFigures, measure, settings};
use millrace::inside::index::Run;
use millrace::inside::query::Planner;
use millrace::{Algorithm, Mode, Wanted};
use serde_json::json;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use synthetic::permutation::permutation;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    asked: AskedQueries,
    /// Number of times that each list is decoded. The fastest counts.
    #[arg(long, default_value = "5", value_name = "N")]
    passes: NonZeroUsize,
    /// Greatest number of lists of each length. The first lists that the queries read are taken.
    #[arg(long, default_value = "200", value_name = "N")]
    lists: usize,
    /// Give the documents new docids in a random order first, by this seed: what codecs gain by the
    /// order of the collection goes away.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let classes = touched(args)?;
    anyhow::ensure!(
        !classes.iter().all(ListColumns::is_empty),
        "no term of the queries is in the index"
    );
    for setting in settings() {
        let mut all = ListFigures::default();
        for (power, class) in classes.iter().enumerate().filter(|(_, class)| !class.is_empty()) {
            let figures = measure(&setting, class, args.passes)?;
            all.add(&figures);
            print(args, &setting, Some(1u64 << power), &figures)?;
        }
        print(args, &setting, None, &all)?;
    }
    Ok(())
}

/// The lists of the distinct terms of the queries, by the power of two that their length reaches.
fn touched(args: &Args) -> anyhow::Result<Vec<ListColumns>> {
    let snapshot = args.asked.open()?;
    let runs = snapshot.generation().runs();
    let order = |run: &Run| args.shuffle.map(|seed| permutation(seed, run.documents()));
    let orders: Vec<_> = runs.iter().map(order).collect();
    let wanted = Wanted { k: 10, mode: Mode::Or, algorithm: Algorithm::Auto, ..Wanted::default() };
    let mut planner = Planner::default();
    let mut seen = BTreeSet::new();
    let mut classes = vec![ListColumns::default(); 32];
    for query in args.asked.queries()? {
        let plan = planner.plan(&snapshot, wanted, &query.text)?;
        for (number, (run, order)) in runs.iter().zip(&orders).enumerate() {
            for &entry in plan.lists_of(number).iter().flatten() {
                let class = &mut classes[entry.df.ilog2() as usize];
                if class.len() < args.lists && seen.insert((number, entry.offset)) {
                    let list = run.list(entry)?;
                    class.add(order.as_deref(), |each| list.check(run.documents(), None, each))?;
                }
            }
        }
    }
    Ok(classes)
}

fn print(
    args: &Args,
    setting: &CodecSetting,
    length_from: Option<u64>,
    figures: &ListFigures,
) -> anyhow::Result<()> {
    let gaps = &figures.gaps;
    let tfs = &figures.tfs;
    crate::rows::print(json!({
        "codec": setting.name(),
        "levels": setting.levels,
        "block": setting.block_len,
        "default": setting.is_default(),
        "shuffled": args.shuffle.is_some(),
        "length_from": length_from,
        "lists": figures.lists,
        "postings": gaps.values,
        "bytes_a_docid": gaps.bytes as f64 / gaps.values as f64,
        "bytes_a_tf": tfs.bytes as f64 / tfs.values as f64,
        // Without what blocks are found by, which the papers do not count.
        "codes_a_docid": (gaps.bytes - gaps.directory_bytes) as f64 / gaps.values as f64,
        "gaps_per_s": gaps.values as f64 / gaps.decode_s,
        "docids_per_s": gaps.values as f64 / gaps.docids_s,
        "tfs_per_s": tfs.values as f64 / tfs.decode_s,
        "encoded_gaps_per_s": gaps.values as f64 / gaps.encode_s,
    }))
}
