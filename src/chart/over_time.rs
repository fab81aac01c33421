//! How is what happens over time drawn? As rows of cells, the busier the darker, and as bars below
//! a limit.

use super::{COLOURS, NAMES, NUMBERS, ROW, WIDTH, begin_chart, end_chart, escape, number};
use std::fmt::Write;

const TALL: f64 = 140.0;
/// Room for the numbers of the axis of time.
const BELOW: f64 = 18.0;
/// Marks on the axis of time.
const MARKS: usize = 4;

/// Appends a row for each name with a cell for each slice of time, as dark as its share of 1.
pub(super) fn strips(page: &mut String, title: &str, slice_s: f64, rows: &[(String, Vec<f64>)]) {
    let slices = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    _ = writeln!(page, "<h2>{}</h2>", escape(title));
    if slices == 0 {
        return page.push_str("<p>None.</p>\n");
    }
    let tall = ROW * rows.len() as f64;
    begin_chart(page, title, NAMES + WIDTH + NUMBERS, tall + BELOW);
    let wide = WIDTH / slices as f64;
    for (row, (name, shares)) in rows.iter().enumerate() {
        let y = row as f64 * ROW;
        _ = writeln!(
            page,
            "<text x=\"0\" y=\"{}\" font-size=\"12\">{}</text>",
            y + 14.0,
            escape(name)
        );
        for (slice, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            _ = writeln!(
                page,
                "<rect x=\"{:.1}\" y=\"{y}\" width=\"{wide:.1}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{:.3}\"><title>{}, {} s: {:.1} %</title></rect>",
                NAMES + slice as f64 * wide,
                ROW * 0.8,
                COLOURS[0],
                // What is there is seen.
                (0.25 + 0.75 * share).min(1.0),
                escape(name),
                number(slice as f64 * slice_s),
                share * 100.0,
            );
        }
    }
    axis(page, tall + 14.0, slices as f64 * slice_s);
    end_chart(page);
}

/// Appends a bar for each slice of time, and a line at a limit if there is one. `shown` writes a
/// value.
pub(super) fn bars(
    page: &mut String,
    title: &str,
    slice_s: f64,
    values: &[f64],
    limit: Option<(&str, f64)>,
    shown: impl Fn(f64) -> String,
) {
    _ = writeln!(page, "<h2>{}</h2>", escape(title));
    let greatest = values.iter().copied().fold(0.0, f64::max);
    if greatest <= 0.0 {
        return page.push_str("<p>None.</p>\n");
    }
    let top = greatest.max(limit.map_or(0.0, |limit| limit.1));
    begin_chart(page, title, NAMES + WIDTH + NUMBERS, 20.0 + TALL + BELOW);
    let wide = WIDTH / values.len() as f64;
    let y = |value: f64| 20.0 + TALL * (1.0 - value / top);
    _ = writeln!(
        page,
        "<text x=\"0\" y=\"{:.1}\" font-size=\"12\">{}</text>",
        y(greatest) + 4.0,
        shown(greatest)
    );
    for (slice, &value) in values.iter().enumerate() {
        _ = writeln!(
            page,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{} s: {}</title></rect>",
            NAMES + slice as f64 * wide,
            y(value),
            wide * 0.9,
            20.0 + TALL - y(value),
            COLOURS[0],
            number(slice as f64 * slice_s),
            shown(value),
        );
    }
    if let Some((name, value)) = limit {
        let at = y(value);
        _ = writeln!(
            page,
            "<path d=\"M{NAMES} {at:.1}h{WIDTH}\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"5 4\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"end\">{}: {}</text>",
            COLOURS[5],
            NAMES + WIDTH,
            at - 5.0,
            escape(name),
            shown(value),
        );
    }
    axis(page, 20.0 + TALL + 14.0, values.len() as f64 * slice_s);
    end_chart(page);
}

/// Marks of so many seconds below a chart.
fn axis(page: &mut String, y: f64, seconds: f64) {
    for mark in 0..=MARKS {
        let share = mark as f64 / MARKS as f64;
        _ = writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{y}\" font-size=\"12\" text-anchor=\"middle\">{} s</text>",
            NAMES + share * WIDTH,
            number(share * seconds)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_dark_as_their_shares() {
        let mut page = String::new();
        strips(&mut page, "Busy", 0.5, &[("<Read>".into(), vec![1.0, 0.0, 0.5, 0.0])]);
        for part in [
            "<rect x=\"200.0\" y=\"0\" width=\"180.0\" height=\"16\" fill=\"#0072b2\" fill-opacity=\"1.000\"><title>&lt;Read&gt;, 0 s: 100.0 %</title>",
            "<rect x=\"560.0\" y=\"0\" width=\"180.0\" height=\"16\" fill=\"#0072b2\" fill-opacity=\"0.625\"><title>&lt;Read&gt;, 1 s: 50.0 %</title>",
            ">0.500 s</text>",
            ">2 s</text>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("<rect").count(), 2);
    }

    #[test]
    fn bars_stand_below_their_limit() {
        let mut page = String::new();
        bars(&mut page, "Memory", 2.0, &[10.0, 30.0], Some(("budget", 40.0)), number);
        for part in [
            "<rect x=\"200.0\" y=\"125.0\" width=\"324.0\" height=\"35.0\" fill=\"#0072b2\"><title>0 s: 10</title>",
            "<rect x=\"560.0\" y=\"55.0\" width=\"324.0\" height=\"105.0\" fill=\"#0072b2\"><title>2 s: 30</title>",
            "<path d=\"M200 20.0h720\"",
            ">budget: 40</text>",
            ">4 s</text>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        bars(&mut page, "Nothing", 1.0, &[], None, number);
        assert!(page.ends_with("<p>None.</p>\n"));
    }
}
