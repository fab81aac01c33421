//! Tables of the values of runs, as text.

use super::Evaluation;
use super::compare::Comparison;
use crate::shown::{decimals, probability, signed_decimals};

/// Cells padded to the width of their columns: the first to the left, all others to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            text += &match column {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
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
    row.extend(all.iter().map(|run| run.per_query.len().to_string()));
    rows.push(row);
    table(&rows)
}

/// A row for each run and query, a column for each measure.
///
/// # Panics
/// If there is no run.
pub fn queries(all: &[Evaluation]) -> String {
    let mut rows = vec![vec!["run".to_string(), "query".to_string()]];
    rows[0].extend(all[0].measures.iter().map(ToString::to_string));
    for run in all {
        for (qid, values) in &run.per_query {
            let mut row = vec![run.run.clone(), qid.clone()];
            row.extend(values.iter().map(|&value| decimals(value)));
            rows.push(row);
        }
    }
    table(&rows) + "\n"
}

/// A table of each run's comparison with the first, where there is one.
pub fn differences(all: &[Evaluation], against: &[Option<Vec<Comparison>>]) -> String {
    let mut text = String::new();
    for (run, against) in all.iter().zip(against) {
        let Some(against) = against else { continue };
        text += &format!("\n{} against {}:\n", run.run, all[0].run);
        let head = ["measure", "difference", "better", "worse", "p (t-test)", "p (randomisation)"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for (measure, row) in run.measures.iter().zip(against) {
            rows.push(vec![
                measure.to_string(),
                signed_decimals(row.difference),
                row.better.to_string(),
                row.worse.to_string(),
                row.t_test_p.map_or("-".to_string(), probability),
                probability(row.randomisation_p),
            ]);
        }
        text += &table(&rows);
    }
    text
}
