//! How are the rows of a measurement drawn? As figures: each says which rows it shows, and which of their fields as what.

use super::lines::{Line, lines};
use super::{Series, escape, number, rows};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// Rows of a table at most.
const MOST_ROWS: usize = 40;

/// What a figure shows of the rows of a report. It stands in the report itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// What it is.
    pub title: String,
    /// Values that its rows have in some fields. Of these rows it shows those that have what it draws.
    pub of: Vec<(String, String)>,
    /// Fields that its rows have.
    pub with: Vec<String>,
    /// Fields that its rows do not have, or that are null.
    pub without: Vec<String>,
    /// Fields that tell curves, or bars, apart.
    pub by: Vec<String>,
    /// The field of the x-axis, and its name. Without one there are bars, and y is what they are as long as.
    pub x: Option<(String, String)>,
    /// The fields that are drawn, each as a curve or a bar of its own. Elements of an array stand beside each other.
    pub y: Vec<String>,
    /// What these are, with their unit.
    pub unit: String,
    /// Whether the axes are logarithmic: x, then y.
    pub log: [bool; 2],
    /// Whether the fields of a bar are its parts, rather than bars of their own.
    pub stacked: bool,
    /// Curves whose rows have this value in this field are dashed, and have the colour of the one that they differ from by it.
    pub dashed: Option<(String, String)>,
    /// What the paper has.
    pub note: String,
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}

impl Figure {
    /// Curves of some fields, `y`, over another, `x`, each of which comes with its name.
    pub fn curves(title: &str, of: &[(&str, &str)], x: (&str, &str), y: (&[&str], &str)) -> Self {
        let x = Some((x.0.to_string(), x.1.to_string()));
        Self { x, ..Self::bars(title, of, y) }
    }

    /// A bar for each row and field, with what they are.
    pub fn bars(title: &str, of: &[(&str, &str)], (y, unit): (&[&str], &str)) -> Self {
        let of = of.iter().map(|(field, value)| (field.to_string(), value.to_string())).collect();
        let (title, y, unit) = (title.to_string(), owned(y), unit.to_string());
        Self { title, of, y, unit, ..Self::default() }
    }

    /// Tells curves or bars apart by some fields.
    #[must_use]
    pub fn by(self, fields: &[&str]) -> Self {
        Self { by: owned(fields), ..self }
    }

    /// Leaves rows out that lack some fields.
    #[must_use]
    pub fn with(self, fields: &[&str]) -> Self {
        Self { with: owned(fields), ..self }
    }

    /// Leaves rows out that have some fields.
    #[must_use]
    pub fn without(self, fields: &[&str]) -> Self {
        Self { without: owned(fields), ..self }
    }

    /// Makes axes logarithmic: x, then y.
    #[must_use]
    pub fn log(self, x: bool, y: bool) -> Self {
        Self { log: [x, y], ..self }
    }

    /// Makes the fields of a row the parts of one bar.
    #[must_use]
    pub fn stacked(self) -> Self {
        Self { stacked: true, ..self }
    }

    /// Dashes the curves of rows with a value.
    #[must_use]
    pub fn dashed(self, field: &str, value: &str) -> Self {
        Self { dashed: Some((field.to_string(), value.to_string())), ..self }
    }

    /// Adds what the paper has.
    #[must_use]
    pub fn note(self, note: &str) -> Self {
        Self { note: note.to_string(), ..self }
    }

    /// Whether a row is shown.
    fn shows(&self, row: &Value) -> bool {
        let has = |field: &String| find(row, field).is_some();
        let has_x = match &self.x {
            Some((x, _)) => {
                has(x) || self.y.iter().any(|y| find(row, y).is_some_and(Value::is_array))
            }
            None => true,
        };
        self.of.iter().all(|of| is(row, of))
            && self.with.iter().all(has)
            && !self.without.iter().any(has)
            && has_x
            && self.y.iter().any(has)
    }

    /// The name of the curve or bar of a row, and the same without what dashes tell.
    fn name(&self, row: &Value, without_dashes: bool) -> String {
        let is_dashes =
            |field: &&String| self.dashed.as_ref().is_some_and(|dashed| dashed.0 == **field);
        let fields = self.by.iter().filter(|field| !(without_dashes && is_dashes(field)));
        let parts = fields.filter_map(|field| {
            let value = find(row, field)?;
            Some(if value.is_string() {
                text(value)
            } else {
                format!("{} {}", words(field), text(value))
            })
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The name of what is drawn of a row's field.
    fn named(&self, row: &Value, field: &str, without_dashes: bool) -> String {
        let name = self.name(row, without_dashes);
        match self.y.len() {
            1 if !name.is_empty() => name,
            _ if name.is_empty() => drawn(field),
            _ => format!("{name}, {}", drawn(field)),
        }
    }
}

/// A field, in objects within the row by a path of `/`; none if it is null.
fn find<'a>(row: &'a Value, field: &str) -> Option<&'a Value> {
    row.pointer(&format!("/{field}")).filter(|value| !value.is_null())
}

/// Whether a row has a value in a field.
fn is(row: &Value, (field, value): &(String, String)) -> bool {
    find(row, field).is_some_and(|found| text(found) == *value)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(_) => value.as_f64().map_or_else(String::new, |value| match value.fract() {
            0.0 => format!("{value}"),
            _ => number(value).trim_end_matches('0').to_string(),
        }),
        other => other.to_string(),
    }
}

/// A field's name as people write it.
fn words(field: &str) -> String {
    field.rsplit('/').next().unwrap_or(field).replace('_', " ")
}

/// What a field that is drawn is called: its unit is that of the figure.
fn drawn(field: &str) -> String {
    let words = words(field);
    let units = [" mb per s", " m per s", " us", " ms", " s"];
    let name = units.into_iter().find_map(|unit| words.strip_suffix(unit));
    name.filter(|name| !name.ends_with(" per")).unwrap_or(&words).to_string()
}

/// Appends all figures that have rows, and then tables of the rows that are in none.
pub(super) fn draw(page: &mut String, figures: &[Figure], all: &[Value]) {
    for figure in figures {
        let shown: Vec<&Value> = all.iter().filter(|row| figure.shows(row)).collect();
        if shown.is_empty() {
            continue;
        }
        match &figure.x {
            Some((x, name)) => curves(page, figure, (x, name), &shown),
            None => bars(page, figure, &shown),
        }
        if !figure.note.is_empty() {
            _ = writeln!(page, "<p>{}</p>", escape(&figure.note));
        }
    }
    let is_left = |row: &&Value| !figures.iter().any(|figure| figure.shows(row));
    let left: Vec<Vec<(String, String)>> = all.iter().filter(is_left).map(flat).collect();
    let names =
        |row: &[(String, String)]| row.iter().map(|field| field.0.clone()).collect::<Vec<_>>();
    for (number, alike) in left.chunk_by(|a, b| names(a) == names(b)).enumerate() {
        if number == 0 {
            page.push_str("<h2>Other rows</h2>\n");
        }
        table(page, alike);
    }
}

/// The fields of a row by their names, those of objects within it too.
fn flat(row: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in row.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => found.extend(
                flat(value).into_iter().map(|(below, value)| (format!("{name} {below}"), value)),
            ),
            value => found.push((words(name), text(value))),
        }
    }
    found
}

/// Rows with the same fields: one below the other, or if there is one only, its fields so.
fn table(page: &mut String, rows: &[Vec<(String, String)>]) {
    page.push_str("<table>\n");
    if let [row] = rows {
        for (name, value) in row {
            _ = writeln!(
                page,
                "<tr><td class=\"t\">{}</td><td class=\"t\">{}</td></tr>",
                escape(name),
                escape(value)
            );
        }
        return page.push_str("</table>\n");
    }
    let line = |page: &mut String, cell: &str, of: &mut dyn Iterator<Item = &String>| {
        page.push_str("<tr>");
        of.for_each(|text| _ = write!(page, "<{cell}>{}</{cell}>", escape(text)));
        page.push_str("</tr>\n");
    };
    line(page, "th", &mut rows[0].iter().map(|field| &field.0));
    for row in rows.iter().take(MOST_ROWS) {
        line(page, "td", &mut row.iter().map(|field| &field.1));
    }
    page.push_str("</table>\n");
    if rows.len() > MOST_ROWS {
        let more = rows.len() - MOST_ROWS;
        _ = writeln!(page, "<p>And {more} more, which a report in JSON has.</p>");
    }
}

fn float(value: &Value) -> Option<f64> {
    value.as_f64().filter(|value| value.is_finite())
}

fn curves(page: &mut String, figure: &Figure, (x, x_name): (&str, &str), shown: &[&Value]) {
    let mut found: Vec<Line> = Vec::new();
    // What has a colour.
    let mut colours: Vec<String> = Vec::new();
    for row in shown {
        for field in &figure.y {
            let Some(value) = find(row, field) else { continue };
            let (name, of_colour) =
                (figure.named(row, field, false), figure.named(row, field, true));
            let line = found.iter().position(|line| line.name == name).unwrap_or_else(|| {
                let colour = colours.iter().position(|it| *it == of_colour).unwrap_or_else(|| {
                    colours.push(of_colour);
                    colours.len() - 1
                });
                let dashed = figure.dashed.as_ref().is_some_and(|dashed| is(row, dashed));
                found.push(Line { name, colour, dashed, points: Vec::new() });
                found.len() - 1
            });
            let points = &mut found[line].points;
            match value.as_array() {
                Some(values) => points.extend(
                    values
                        .iter()
                        .enumerate()
                        .filter_map(|(at, value)| Some((at as f64, float(value)?))),
                ),
                None => points.extend(find(row, x).and_then(float).zip(float(value))),
            }
        }
    }
    for line in &mut found {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    _ = writeln!(page, "<h2>{}</h2>", escape(&figure.title));
    let [log_x, log_y] = figure.log;
    lines(page, &figure.title, [(x_name, log_x), (&figure.unit, log_y)], &found);
}

fn bars(page: &mut String, figure: &Figure, shown: &[&Value]) {
    let title = format!("{}: {}", figure.title, figure.unit);
    let value = |row: &Value, field: &str| find(row, field).and_then(float);
    if figure.stacked {
        let names: Vec<String> = shown.iter().map(|row| figure.name(row, false)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let parts: Vec<String> = figure.y.iter().map(|field| drawn(field)).collect();
        let values =
            |field| shown.iter().map(|row| value(row, field).unwrap_or_default()).collect();
        let series = figure.y.iter().zip(&parts);
        let series: Vec<Series<'_>> =
            series.map(|(field, name)| Series { name, values: values(field) }).collect();
        return rows(page, &title, &names, &series);
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for row in shown {
        for field in &figure.y {
            let Some(value) = value(row, field) else { continue };
            names.push(figure.named(row, field, false));
            values.push(value);
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    rows(page, &title, &names, &[Series { name: &figure.unit, values }]);
}

#[cfg(test)]
mod tests {
    use crate::chart::report_page::page;
    use serde_json::{Value, json};

    use super::Figure;

    fn page_of(figure: Figure, rows: Value) -> String {
        page(&json!({"job": "bench", "rows": rows, "figures": [figure]}))
    }

    #[test]
    fn curves_have_a_mark_for_each_row() {
        let figure = Figure::curves("By <n>", &[("row", "a")], ("n", "number"), (&["us"], "time"));
        let page = page_of(
            figure.by(&["way", "k", "run"]).dashed("run", "simulated").note("2 < 3"),
            json!([
                {"row": "a", "way": "and", "k": 10, "run": "real", "n": 4, "us": 2.0},
                {"row": "a", "way": "and", "k": 10, "run": "real", "n": 2, "us": 1.0},
                {"row": "a", "way": "and", "k": 10, "run": "simulated", "n": 4, "us": 1.5},
                {"row": "a", "way": "or", "k": null, "n": 4, "us": null},
                {"row": "b", "n": 4, "us": 9.0, "of": {"cpu": 0.25}},
            ]),
        );
        for part in [
            "<h2>By &lt;n&gt;</h2>",
            "stroke=\"#0072b2\" points=\"430.0,190.0 790.0,30.0\"/>",
            "<circle cx=\"430.0\" cy=\"190.0\" r=\"4\" fill=\"#0072b2\"><title>and, k 10, real: 1 at 2</title>",
            "<title>and, k 10, real: 2 at 4</title>",
            "stroke=\"#0072b2\" stroke-dasharray=\"5 4\" points=\"790.0,110.0\"/>",
            "<title>and, k 10, simulated: 1.500 at 4</title>",
            "<p>2 &lt; 3</p>",
            "<td class=\"t\">of cpu</td><td class=\"t\">0.25</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("<circle").count(), 3);
        assert!(!page.contains("9 at 4"));
    }

    #[test]
    fn bars_are_apart_or_on_one_another_and_arrays_are_curves() {
        let rows = json!([{"name": "x", "parts": {"a": 1, "b": 3}, "visits": [4, 2]}, {"name": "y", "parts": {"a": 2}}]);
        let bars =
            || Figure::bars("Parts", &[], (&["parts/a", "parts/b"], "seconds")).by(&["name"]);
        let apart = page_of(bars(), rows.clone());
        for part in [
            ">x, a</text>",
            ">x, b</text>",
            ">y, a</text>",
            "width=\"720.0\" height=\"16\" fill=\"#0072b2\"><title>seconds: 3</title>",
        ] {
            assert!(apart.contains(part), "{part}: {apart}");
        }
        let stacked = page_of(bars().stacked(), rows.clone());
        for part in [
            "width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>a: 1</title>",
            "fill=\"#e69f00\"><title>b: 3</title>",
            ">4</text>",
        ] {
            assert!(stacked.contains(part), "{part}: {stacked}");
        }
        let visits = page_of(
            Figure::curves("Visits", &[], ("place", "place"), (&["visits"], "queries")),
            rows.clone(),
        );
        assert!(
            visits.contains("<title>visits: 4 at 0</title>")
                && visits.contains("<title>visits: 2 at 1</title>")
        );
        // Without a row there is no figure, and without figures all rows are told.
        assert!(!page_of(bars().without(&["name"]), rows.clone()).contains("<h2>Parts"));
        let told = page(&json!({"job": "bench", "rows": [{"a": 1, "b": "<"}, {"a": 2, "b": "c"}]}));
        assert!(
            told.contains(
                "<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>&lt;</td></tr>\n<tr><td>2</td>"
            ),
            "{told}"
        );
    }
}
