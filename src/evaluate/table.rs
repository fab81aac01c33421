//! Tables of the values of runs, as text.

use super::Evaluation;
use crate::shown::{decimals, probability, signed_decimals};

/// Lines with cells padded to the width of their columns: the first to the left, all others to the
/// right. The rows are made twice, so that none has to be kept.
fn table<I: Iterator<Item = Vec<String>>>(rows: impl Fn() -> I) -> impl Iterator<Item = String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows() {
        widths.resize(widths.len().max(row.len()), 0);
        let cells = widths.iter_mut().zip(&row);
        cells.for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    rows().map(move |row| {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    })
}

/// A row for each measure, a column for each run; all have the same judgements and measures.
///
/// # Panics
/// If there is no run.
pub fn means(all: &[Evaluation]) -> String {
    let mut rows = vec![vec!["measure".to_string()]];
    rows[0].extend(all.iter().map(|run| run.run.clone()));
    for (at, measure) in all[0].measures.iter().enumerate() {
        let mut row = vec![measure.to_string()];
        row.extend(all.iter().map(|run| decimals(run.means[at])));
        rows.push(row);
    }
    let mut row = vec!["queries".to_string()];
    row.extend(all.iter().map(|run| run.qrels.len().to_string()));
    rows.push(row);
    table(|| rows.iter().cloned()).collect()
}

/// A line for each run and query, a column for each measure.
///
/// # Panics
/// If there is no run.
pub fn queries(all: &[Evaluation]) -> impl Iterator<Item = String> {
    let rows = || {
        let names = all[0].measures.iter().map(ToString::to_string);
        let head = ["run".to_string(), "query".to_string()].into_iter().chain(names).collect();
        let rows = all.iter().flat_map(|run| {
            run.per_query().map(|(qid, values)| {
                let names = [run.run.clone(), qid.to_string()].into_iter();
                names.chain(values.iter().map(|&value| decimals(value))).collect()
            })
        });
        std::iter::once(head).chain(rows)
    };
    table(rows).chain(std::iter::once("\n".into()))
}

/// A table of the comparison with the first run for each of the others.
pub fn differences(all: &[Evaluation]) -> String {
    let mut text = String::new();
    for run in all {
        let Some((first, against)) = &run.against else { continue };
        text += &format!("\n{} against {first}:\n", run.run);
        let p = |p: Option<f64>| p.map_or("-".to_string(), probability);
        let mut rows = vec![HEAD.map(String::from).to_vec()];
        for (measure, row) in run.measures.iter().zip(against) {
            rows.push(vec![
                measure.to_string(),
                signed_decimals(row.difference),
                row.better.to_string(),
                row.worse.to_string(),
                p(row.t_test_p),
                p(Some(row.randomisation_p)),
                p(row.t_test_p_holm),
                p(row.randomisation_p_holm),
            ]);
        }
        // Those of Holm are for several runs.
        let columns = if all.len() > 2 { HEAD.len() } else { HEAD.len() - 2 };
        rows.iter_mut().for_each(|row| row.truncate(columns));
        text.extend(table(|| rows.iter().cloned()));
    }
    text
}

const HEAD: [&str; 8] = [
    "measure",
    "difference",
    "better",
    "worse",
    "p (t-test)",
    "p (randomisation)",
    "Holm (t-test)",
    "Holm (randomisation)",
];
