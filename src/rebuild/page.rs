//! What does the history of an index look like? A page of HTML that stands for itself: charts as SVG, and a
//! table of the last rebuilds.

use super::history::{Outcome, Record};
use std::fmt::Write;

/// Rebuilds that are shown.
const SHOWN: usize = 60;

/// Width and height of a chart, and the width of a rebuild in it.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 140.0;

/// Colours that people with any kind of colour vision tell apart (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];

/// A part of each bar of a chart.
struct Series<'a> {
    name: &'a str,
    values: Vec<f64>,
}

/// Makes the page of an index from its history, the oldest record first.
pub fn page(index: &str, history: &[Record]) -> String {
    let shown = &history[history.len().saturating_sub(SHOWN)..];
    let series = |name, value: fn(&Record) -> f64| {
        let values = shown.iter().map(value).collect();
        Series { name, values }
    };
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Rebuilds</title>\n<style>body{font:14px sans-serif;margin:2em;max-width:60em}table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}td.t,th.t{text-align:left}.failed{color:#b00}</style></head><body>\n",
    );
    // Writing to a string never fails.
    _ = writeln!(page, "<h1>Rebuilds of {}</h1>", escape(index));
    _ = writeln!(
        page,
        "<p>The last {} of {}, the oldest on the left.</p>",
        shown.len(),
        history.len()
    );
    chart(&mut page, "Documents", &[series("live", |r| r.documents.live as f64)]);
    let changes = [
        series("added", |r| r.documents.added as f64),
        series("changed", |r| r.documents.changed as f64),
        series("removed", |r| r.documents.removed as f64),
    ];
    chart(&mut page, "Documents that changed", &changes);
    let mut stages: Vec<&str> =
        shown.iter().flat_map(|record| record.stages.keys().map(String::as_str)).collect();
    stages.sort_unstable();
    stages.dedup();
    let stage = |name| {
        let seconds = |record: &Record| record.stages.get(name).copied().unwrap_or_default();
        Series { name, values: shown.iter().map(seconds).collect() }
    };
    let stages: Vec<_> = stages.into_iter().map(stage).collect();
    chart(&mut page, "Seconds by stage", &stages);
    let size = series("index", |r| r.index_bytes as f64 / f64::from(1 << 20));
    chart(&mut page, "Size of the index in MiB", &[size]);
    table(&mut page, shown);
    page.push_str("</body></html>\n");
    page
}

/// Appends a chart of bars, the parts of each on top of one another.
fn chart(page: &mut String, title: &str, series: &[Series<'_>]) {
    let bars = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let height = |bar: usize| series.iter().map(|series| series.values[bar]).sum::<f64>();
    let most = (0..bars).map(height).fold(0.0, f64::max);
    _ = writeln!(page, "<h2>{title}</h2>");
    if most <= 0.0 {
        return page.push_str("<p>None.</p>\n");
    }
    let (wide, tall) = (WIDTH + 10.0, HEIGHT + 20.0);
    _ = writeln!(
        page,
        "<svg viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\" aria-label=\"{title}\">"
    );
    _ = writeln!(page, "<text x=\"0\" y=\"12\" font-size=\"12\">{}</text>", number(most));
    let step = WIDTH / SHOWN as f64;
    for bar in 0..bars {
        let mut y = tall;
        for (part, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let value = part.values[bar];
            let share = value / most * HEIGHT;
            y -= share;
            if value > 0.0 {
                _ = writeln!(
                    page,
                    "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{share:.1}\" fill=\"{colour}\"><title>{}: {}</title></rect>",
                    bar as f64 * step,
                    step * 0.8,
                    escape(part.name),
                    number(value),
                );
            }
        }
    }
    page.push_str("</svg>\n<p>");
    for (part, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        _ = write!(
            page,
            "<span style=\"color:{colour}\">&#9632;</span> {} &nbsp; ",
            escape(part.name)
        );
    }
    page.push_str("</p>\n");
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

/// A number as people read it.
fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

/// Text as HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
