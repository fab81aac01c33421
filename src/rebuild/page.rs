//! What does the history of an index look like? A page of HTML that stands for itself: charts as
//! SVG, and a table of the last rebuilds.

use super::history::{LogCounts, Outcome, Record};
use crate::chart::{Series, begin, end, escape, upright};
use std::fmt::Write;

const SHOWN: usize = 60;

/// Makes the page of an index from its history, the oldest record first.
pub(crate) fn page(index: &str, history: &[Record]) -> String {
    let shown = &history[history.len().saturating_sub(SHOWN)..];
    let series = |name, value: fn(&Record) -> f64| {
        let values = shown.iter().map(value).collect();
        Series { name, values }
    };
    let mut page = begin("Rebuilds");
    // Writing to a string never fails.
    _ = writeln!(page, "<h1>Rebuilds of {}</h1>", escape(index));
    _ = writeln!(
        page,
        "<p>The last {} of {}, the oldest on the left.</p>",
        shown.len(),
        history.len()
    );
    upright(&mut page, "Documents", SHOWN, &[series("live", |r| r.documents.live as f64)]);
    let changes = [
        series("added", |r| r.documents.added as f64),
        series("changed", |r| r.documents.changed as f64),
        series("removed", |r| r.documents.removed as f64),
    ];
    upright(&mut page, "Documents that changed", SHOWN, &changes);
    let mut stages: Vec<&str> =
        shown.iter().flat_map(|record| record.stages.keys().map(String::as_str)).collect();
    stages.sort_unstable();
    stages.dedup();
    let stage = |name| {
        let seconds = |record: &Record| record.stages.get(name).copied().unwrap_or_default();
        Series { name, values: shown.iter().map(seconds).collect() }
    };
    let stages: Vec<_> = stages.into_iter().map(stage).collect();
    upright(&mut page, "Seconds by stage", SHOWN, &stages);
    let size = series("index", |r| r.index_bytes as f64 / f64::from(1 << 20));
    upright(&mut page, "Size of the index in MiB", SHOWN, &[size]);
    if shown.iter().any(|record| record.logs.is_some()) {
        // A rebuild that has planned nothing anew has no counts: the plan before is still there.
        let of_logs = |record: &Record, count: fn(&LogCounts) -> u64| {
            record.logs.as_ref().map_or(0.0, |logs| count(logs) as f64)
        };
        let queries = Series {
            name: "queries of the window",
            values: shown.iter().map(|record| of_logs(record, |logs| logs.queries)).collect(),
        };
        upright(&mut page, "Queries by which a cache was planned", SHOWN, &[queries]);
        let lists = Series {
            name: "lists",
            values: shown.iter().map(|record| of_logs(record, |logs| logs.lists)).collect(),
        };
        upright(&mut page, "Lists that were planned to be cached", SHOWN, &[lists]);
    }
    table(&mut page, shown);
    end(&mut page);
    page
}

/// Appends the rebuilds, the newest first.
fn table(page: &mut String, shown: &[Record]) {
    page.push_str("<h2>The rebuilds</h2>\n<table><tr><th class=\"t\">began</th><th class=\"t\">outcome</th><th>generation</th><th>documents</th><th>added</th><th>changed</th><th>removed</th><th>seconds</th></tr>\n");
    for record in shown.iter().rev() {
        let (class, outcome) = match record.outcome {
            Outcome::Published if record.incremental => ("", "published a part"),
            Outcome::Published => ("", "published"),
            Outcome::Unchanged => ("", "unchanged"),
            Outcome::Failed => (" class=\"failed\"", "failed"),
        };
        let reason = record.reason.as_deref().map(|reason| format!(": {}", escape(reason)));
        let generation = record.generation.map_or(String::new(), |number| number.to_string());
        let documents = &record.documents;
        _ = writeln!(
            page,
            "<tr{class}><td class=\"t\">{}</td><td class=\"t\">{outcome}{}</td><td>{generation}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td></tr>",
            escape(&record.started),
            reason.unwrap_or_default(),
            documents.live,
            documents.added,
            documents.changed,
            documents.removed,
            record.seconds,
        );
    }
    page.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rebuild::history::DocumentCounts;

    fn record(live: u64, added: u64) -> Record {
        let documents = DocumentCounts { live, added, ..DocumentCounts::default() };
        let stages = [("read".to_string(), 0.5), ("build".to_string(), 1.5)].into();
        Record { documents, stages, outcome: Outcome::Published, ..Record::default() }
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let history = [record(100, 100), record(50, 0)];
        let page = page("idx", &history);
        assert!(page.contains("y=\"20.0\" width=\"9.6\" height=\"140.0\""), "{page}");
        assert!(page.contains("x=\"12.0\" y=\"90.0\" width=\"9.6\" height=\"70.0\""), "{page}");
        assert!(page.contains("<title>build: 1.500</title>"), "{page}");
        // The second part of a bar stands on the first.
        assert!(
            page.contains("y=\"55.0\" width=\"9.6\" height=\"105.0\" fill=\"#0072b2\""),
            "{page}"
        );
        assert!(
            page.contains("y=\"20.0\" width=\"9.6\" height=\"35.0\" fill=\"#e69f00\""),
            "{page}"
        );
        assert_eq!(page.matches("<tr>").count(), 3);
        assert!(!page.contains("Queries by which"));
    }

    #[test]
    fn logs_of_queries_have_charts() {
        let logs = Some(LogCounts { queries: 300, lists: 7, ..LogCounts::default() });
        let page = page("idx", &[record(1, 0), Record { logs, ..record(1, 0) }]);
        assert!(page.contains("<title>queries of the window: 300"), "{page}");
        assert!(page.contains("<title>lists: 7"), "{page}");
    }

    #[test]
    fn no_text_becomes_markup_and_no_history_is_a_page() {
        let reason = Some("<script>alert(1)</script> & \"more\"".to_string());
        let failed = Record { reason, ..Record::default() };
        let page = page("a<b", &[failed]);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
        assert!(page.contains("Rebuilds of a&lt;b") && page.contains("class=\"failed\""));
        assert!(super::page("idx", &[]).contains("<p>None.</p>"));
        let many = vec![record(1, 0); 200];
        assert_eq!(super::page("idx", &many).matches("published</td>").count(), SHOWN);
    }
}
