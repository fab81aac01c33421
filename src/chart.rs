//! How are numbers drawn? As bars and curves of SVG in a page of HTML that stands for itself, in
//! light and dark, and no wider than its window.

#![forbid(unsafe_code)]

use std::fmt::Write;

mod over_time;
pub(crate) mod report_page;

/// Width and height of a chart over time.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 140.0;

/// Width of the names in a chart with a row for each, and of a character of longer ones; the height
/// of a row; and the room for a number behind the longest bar.
const NAMES: f64 = 200.0;
const CHARACTER: f64 = 7.0;
const ROW: f64 = 20.0;
const NUMBERS: f64 = 90.0;

/// Colours that people with any kind of colour vision tell apart (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];

/// A part of each bar of a chart.
pub(crate) struct Series<'a> {
    pub name: &'a str,
    /// Its share of each bar.
    pub values: Vec<f64>,
}

pub(crate) fn begin(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\n<style>:root{{color-scheme:light dark}}body{{font:14px sans-serif;margin:2em;max-width:60em;overflow-wrap:anywhere}}table{{border-collapse:collapse;display:block;overflow-x:auto;margin-bottom:1em}}td,th{{padding:.2em .7em;text-align:right;border-bottom:1px solid #8884;overflow-wrap:break-word}}td.t,th.t{{text-align:left}}.failed{{color:#d33}}.chart{{overflow-x:auto}}svg{{max-width:100%;height:auto}}svg text{{fill:currentColor}}.legend>span{{display:inline-block;margin-right:1em}}@media(max-width:50em){{svg{{max-width:none;width:52em}}svg text{{font-size:14px}}}}</style></head><body>\n",
        escape(title)
    )
}

pub(crate) fn end(page: &mut String) {
    page.push_str("</body></html>\n");
}

/// Begins a chart of a size, which a narrow window shows a part of at a time.
fn begin_chart(page: &mut String, title: &str, wide: f64, tall: f64) {
    _ = writeln!(
        page,
        "<div class=\"chart\"><svg viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
}

fn end_chart(page: &mut String) {
    page.push_str("</svg></div>\n");
}

/// Appends a chart of up to `most_bars` upright bars, the parts of each on top of one another.
pub(crate) fn upright(page: &mut String, title: &str, most_bars: usize, series: &[Series<'_>]) {
    let bars = series.iter().map(|series| series.values.len()).max().unwrap_or(0);
    let height = |bar: usize| series.iter().map(|series| series.values[bar]).sum::<f64>();
    let most = (0..bars).map(height).fold(0.0, f64::max);
    _ = writeln!(page, "<h2>{title}</h2>");
    if most <= 0.0 {
        return page.push_str("<p>None.</p>\n");
    }
    let (wide, tall) = (WIDTH + 10.0, HEIGHT + 20.0);
    begin_chart(page, title, wide, tall);
    _ = writeln!(page, "<text x=\"0\" y=\"12\" font-size=\"12\">{}</text>", number(most));
    let step = WIDTH / most_bars as f64;
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
    end_chart(page);
    legend(page, series);
}

/// Appends which colour is which part.
fn legend(page: &mut String, series: &[Series<'_>]) {
    page.push_str("<p>");
    for (part, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        _ = write!(
            page,
            "<span style=\"color:{colour}\">&#9632;</span> {} &nbsp; ",
            escape(part.name)
        );
    }
    page.push_str("</p>\n");
}

/// Appends a chart with a row for each name: its bar, whose parts follow each other, and the sum of
/// them.
pub(crate) fn rows(page: &mut String, title: &str, names: &[&str], series: &[Series<'_>]) {
    let sum = |row: usize| series.iter().map(|part| part.values[row]).sum::<f64>();
    let most = (0..names.len()).map(sum).fold(0.0, f64::max);
    _ = writeln!(page, "<h2>{}</h2>", escape(title));
    if most <= 0.0 {
        return page.push_str("<p>None.</p>\n");
    }
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = NAMES.max(CHARACTER * longest as f64);
    let (wide, tall) = (left + WIDTH + NUMBERS, ROW * names.len() as f64);
    begin_chart(page, title, wide, tall);
    for (row, name) in names.iter().enumerate() {
        let (y, mut x) = (row as f64 * ROW, left);
        let text = y + 14.0;
        _ = writeln!(page, "<text x=\"0\" y=\"{text}\" font-size=\"12\">{}</text>", escape(name));
        for (part, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let value = part.values[row];
            let share = value / most * WIDTH;
            if value > 0.0 {
                _ = writeln!(
                    page,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{share:.1}\" height=\"{}\" fill=\"{colour}\"><title>{}: {}</title></rect>",
                    ROW * 0.8,
                    escape(part.name),
                    number(value),
                );
            }
            x += share;
        }
        let x = x + 5.0;
        _ = writeln!(
            page,
            "<text x=\"{x:.1}\" y=\"{text}\" font-size=\"12\">{}</text>",
            number(sum(row))
        );
    }
    end_chart(page);
    if series.len() > 1 {
        legend(page, series);
    }
}

/// A number as people read it.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_their_values() {
        let mut page = String::new();
        let series = [
            Series { name: "0", values: vec![1.0, 3.0] },
            Series { name: "1", values: vec![1.0, 1.0] },
        ];
        rows(&mut page, "a < b", &["Read", "<Parse>"], &series);
        for part in [
            "x=\"200.0\" y=\"0\" width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>0: 1</title>",
            "x=\"380.0\" y=\"0\" width=\"180.0\" height=\"16\" fill=\"#e69f00\"><title>1: 1</title>",
            "x=\"200.0\" y=\"20\" width=\"540.0\"",
            "x=\"740.0\" y=\"20\" width=\"180.0\"",
            ">4</text>",
            "&lt;Parse&gt;",
            "aria-label=\"a &lt; b\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        rows(&mut page, "Nothing", &[], &[]);
        assert!(page.ends_with("<p>None.</p>\n"));
    }
}
