//! How does one number depend on another? As curves, with a mark at each point.

use super::axis::{Axis, mark};
use super::{COLOURS, WIDTH, begin_chart, end_chart, escape, number};
use std::fmt::Write;

/// A curve.
pub(super) struct Line {
    /// What it is.
    pub(super) name: String,
    /// The number of its colour; curves that belong together have the same one.
    pub(super) colour: usize,
    /// Whether it is drawn in dashes.
    pub(super) dashed: bool,
    /// Its points, by rising x.
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    fn colour(&self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }

    /// Points of curves whose colour is there already are squares.
    fn has_squares(&self) -> bool {
        self.colour / COLOURS.len() % 2 == 1
    }
}

/// Height of the chart, and the room for the numbers at its left and below.
const TALL: f64 = 320.0;
const LEFT: f64 = 70.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 50.0;

/// Appends a chart of curves, with the name of each axis and whether it is logarithmic: x, then y. Points that have no place
/// on such an axis are left out.
pub(super) fn lines(
    page: &mut String,
    title: &str,
    [across, up]: [(&str, bool); 2],
    curves: &[Line],
) {
    let all = || curves.iter().flat_map(|line| &line.points);
    let x = Axis::of(all().map(|point| point.0), across.1);
    let y = Axis::of(all().map(|point| point.1), up.1);
    let (Some(x), Some(y)) = (x, y) else { return };
    let (wide, tall) = (LEFT + WIDTH + 30.0, ABOVE + TALL + BELOW);
    let at_x = |value: f64| LEFT + x.share(value) * WIDTH;
    let at_y = |value: f64| ABOVE + (1.0 - y.share(value)) * TALL;
    begin_chart(page, title, wide, tall);
    for &value in y.marks() {
        let at = at_y(value);
        _ = writeln!(
            page,
            "<path d=\"M{LEFT} {at:.1}h{WIDTH}\" stroke=\"#8885\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            mark(value)
        );
    }
    for &value in x.marks() {
        _ = writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">{}</text>",
            at_x(value),
            ABOVE + TALL + 20.0,
            mark(value)
        );
    }
    _ = writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\">{}</text><text x=\"0\" y=\"14\" font-size=\"12\">{}</text>",
        LEFT + WIDTH / 2.0,
        ABOVE + TALL + 42.0,
        escape(across.0),
        escape(up.0)
    );
    for line in curves {
        let there = |point: &&(f64, f64)| x.has(point.0) && y.has(point.1);
        let points: Vec<&(f64, f64)> = line.points.iter().filter(there).collect();
        let path: Vec<String> = points
            .iter()
            .map(|point| format!("{:.1},{:.1}", at_x(point.0), at_y(point.1)))
            .collect();
        let (colour, name) = (line.colour(), escape(&line.name));
        let dashes = if line.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        _ = writeln!(
            page,
            "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"{colour}\"{dashes} points=\"{}\"/>",
            path.join(" ")
        );
        for &&(a, b) in &points {
            let (cx, cy) = (at_x(a), at_y(b));
            let shape = match line.has_squares() {
                true => format!(
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{colour}\">",
                    cx - 4.0,
                    cy - 4.0
                ),
                false => {
                    format!("<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{colour}\">")
                }
            };
            let end = if line.has_squares() { "rect" } else { "circle" };
            _ = writeln!(
                page,
                "{shape}<title>{name}: {} at {}</title></{end}>",
                number(b),
                number(a)
            );
        }
    }
    end_chart(page);
    page.push_str("<p class=\"legend\">");
    for line in curves {
        let sign = match (line.dashed, line.has_squares()) {
            (true, _) => "- -",
            (false, true) => "&#9632;",
            (false, false) => "&#9679;",
        };
        _ = write!(
            page,
            "<span><span style=\"color:{}\">{sign}</span> {}</span> ",
            line.colour(),
            escape(&line.name)
        );
    }
    page.push_str("</p>\n");
}
