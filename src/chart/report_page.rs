//! What does a report look like for people? A page of HTML, drawn from the numbers of the report
//! and nothing else.

use super::over_time::{bars, strips};
use super::{Series, begin, end, escape, number, rows};
use crate::shown;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Files that are drawn, the largest ones.
const FILES: usize = 40;

/// Makes the page of a report: an object as jobs write it with `--report`. Fields that it lacks are
/// left out of the page.
pub fn page(report: &Value) -> String {
    let nothing = Map::new();
    let fields = report.as_object().unwrap_or(&nothing);
    let job = fields.get("job").and_then(Value::as_str).unwrap_or("job");
    let mut page = begin(&format!("millrace {job}"));
    // Writing to a string never fails.
    _ = writeln!(page, "<h1>millrace {}</h1>", escape(job));
    if let Some(error) = fields.get("error").and_then(Value::as_str) {
        _ = writeln!(page, "<p class=\"failed\">{}</p>", escape(error));
    }
    measured(&mut page, fields);
    timeline(&mut page, fields);
    memory(&mut page, fields);
    for (field, title) in [
        ("operators", "Seconds by operator and worker"),
        ("phases", "Seconds by phase"),
        ("skipped", "Skipped records by reason"),
        ("skipped_examples", "The first skipped records"),
        ("files", "Bytes by file"),
        ("lists", "Bytes by length of list"),
        ("before", "Against the generation before"),
        ("measures", "Measures"),
        ("latency_us", "Microseconds of a query"),
    ] {
        match fields.get(field) {
            Some(Value::Array(list)) if field == "operators" && !list.is_empty() => {
                operators(&mut page, title, list)
            }
            Some(Value::Array(list)) if field == "files" => files(&mut page, title, list),
            Some(Value::Array(list)) if field == "lists" && !list.is_empty() => {
                lists(&mut page, title, list)
            }
            Some(Value::Array(list)) if field == "skipped_examples" && !list.is_empty() => {
                examples(&mut page, title, list)
            }
            Some(Value::Object(map)) if field == "before" => against(&mut page, title, map, fields),
            Some(Value::Object(map)) if field == "latency_us" => latency(&mut page, map),
            Some(Value::Object(map)) => numbers(&mut page, title, map),
            _ => {}
        }
    }
    if let Some(Value::Array(grid)) = fields.get("grid") {
        heat(&mut page, grid);
    }
    table(&mut page, fields);
    end(&mut page);
    page
}

/// The times in the rows of a measurement.
fn measured(page: &mut String, fields: &Map<String, Value>) {
    let rows = fields.get("rows").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for row in rows.iter().filter_map(Value::as_object) {
        let times = row.iter().filter(|(name, _)| name.ends_with("_us"));
        let times = times.map(|(name, time)| (name.clone(), time.clone())).collect();
        numbers(page, "Microseconds of a query", &times);
    }
}

fn text(of: &Value, field: &str) -> String {
    of[field].as_str().unwrap_or_default().to_string()
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// When each operator, and each worker, was busy.
fn timeline(page: &mut String, fields: &Map<String, Value>) {
    let Some(Value::Object(timeline)) = fields.get("timeline") else { return };
    let slice_s = timeline.get("slice_s").map_or(0.0, float);
    let rows =
        |field: &str| timeline.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let workers = rows("workers").len().max(1) as f64;
    for (field, title, most) in [
        ("operators", "Operators over time, as parts of all workers' time", workers),
        ("workers", "Workers over time", 1.0),
    ] {
        let row = |row: &Value| {
            let name = row["name"]
                .as_str()
                .map_or_else(|| format!("worker {}", row["name"]), str::to_string);
            let seconds = row["seconds"].as_array().map_or(&[][..], Vec::as_slice);
            (name, seconds.iter().map(|seconds| float(seconds) / slice_s / most).collect())
        };
        strips(page, title, slice_s, &rows(field).iter().map(row).collect::<Vec<_>>());
    }
}

/// The memory of the process over time, and what it was allowed.
fn memory(page: &mut String, fields: &Map<String, Value>) {
    let Some(Value::Object(memory)) = fields.get("memory") else { return };
    let values =
        memory.get("resident_bytes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let values: Vec<f64> = values.iter().map(float).collect();
    let slice_s = memory.get("slice_s").map_or(0.0, float);
    let limit = fields.get("memory_bytes").map(|limit| ("--memory", float(limit)));
    bars(page, "Resident memory over time", slice_s, &values, limit, |value| {
        shown::bytes(value as u64)
    });
}

/// A row for each class of lengths.
fn lists(page: &mut String, title: &str, list: &[Value]) {
    let name = |class: &Value| {
        let below = float(&class["below"]);
        let lists = class["lists"].as_u64().unwrap_or_default();
        match below {
            2.0 => format!("1 posting: {}", shown::number_of(lists, "list", "lists")),
            _ => format!(
                "{} to {}: {}",
                below / 2.0,
                below - 1.0,
                shown::number_of(lists, "list", "lists")
            ),
        }
    };
    let names: Vec<String> = list.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let values = list.iter().map(|class| float(&class["bytes"])).collect();
    rows(page, title, &names, &[Series { name: "bytes", values }]);
}

/// A line for each record.
fn examples(page: &mut String, title: &str, list: &[Value]) {
    _ = writeln!(page, "<h2>{title}</h2>\n<ul>");
    for example in list.iter().filter_map(Value::as_str) {
        _ = writeln!(page, "<li>{}</li>", escape(example));
    }
    page.push_str("</ul>\n");
}

/// The totals of two generations beside each other.
fn against(page: &mut String, title: &str, before: &Map<String, Value>, now: &Map<String, Value>) {
    _ = writeln!(
        page,
        "<h2>{title}</h2>\n<table><tr><th></th><th>before</th><th>now</th><th>difference</th></tr>"
    );
    for (name, before) in before {
        let Some(now) = now.get(name) else { continue };
        let (before, now) = (float(before), float(now));
        let difference = now - before;
        let change = match name.as_str() {
            "generation" => String::new(),
            _ if before > 0.0 => format!("{difference:+} ({:+.1} %)", difference / before * 100.0),
            _ => format!("{difference:+}"),
        };
        _ = writeln!(
            page,
            "<tr><td class=\"t\">{}</td><td>{}</td><td>{}</td><td>{change}</td></tr>",
            escape(name),
            number(before),
            number(now)
        );
    }
    page.push_str("</table>\n");
}

/// A row for each operator, a part for each worker.
fn operators(page: &mut String, title: &str, list: &[Value]) {
    let names: Vec<String> = list.iter().map(|row| text(row, "operator")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |row: &Value, worker: usize| float(&row["seconds_by_worker"][worker]);
    let count = |row: &Value| row["seconds_by_worker"].as_array().map_or(0, Vec::len);
    let workers: Vec<String> =
        (0..list.iter().map(count).max().unwrap_or(0)).map(|n| format!("worker {n}")).collect();
    let series = workers.iter().enumerate().map(|(worker, name)| Series {
        name,
        values: list.iter().map(|row| of(row, worker)).collect(),
    });
    rows(page, title, &names, &series.collect::<Vec<_>>());
}

/// A row for each file, the largest first.
fn files(page: &mut String, title: &str, list: &[Value]) {
    let mut list: Vec<(String, f64)> =
        list.iter().map(|file| (text(file, "name"), float(&file["bytes"]))).collect();
    list.sort_by(|a, b| b.1.total_cmp(&a.1));
    list.truncate(FILES);
    let names: Vec<&str> = list.iter().map(|(name, _)| name.as_str()).collect();
    rows(
        page,
        title,
        &names,
        &[Series { name: "bytes", values: list.iter().map(|file| file.1).collect() }],
    );
}

/// A row for each number of an object.
fn numbers(page: &mut String, title: &str, map: &Map<String, Value>) {
    let names: Vec<&str> = map.keys().map(String::as_str).collect();
    rows(page, title, &names, &[Series { name: title, values: map.values().map(float).collect() }]);
}

/// A row for each percentile, and one for each class of queries by how long they took.
fn latency(page: &mut String, map: &Map<String, Value>) {
    let mut times = map.clone();
    let classes = times.remove("distribution");
    numbers(page, "Microseconds of a query", &times);
    let classes = classes.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<String> = classes
        .iter()
        .map(|class| format!("below {} us", number(float(&class["below"]))))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let values = classes.iter().map(|class| float(&class["queries"])).collect();
    rows(page, "Queries by time", &names, &[Series { name: "queries", values }]);
}

/// The means of a grid of `tune`, the better the darker: b, or the only parameter, across, k1 down,
/// and a table for each value of a third.
fn heat(page: &mut String, grid: &[Value]) {
    let values = |field: &str| {
        let mut values: Vec<f64> = grid.iter().map(|setting| float(&setting[field])).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let means = values("mean");
    let (Some(least), Some(most)) = (means.first(), means.last()) else { return };
    let Some(Value::Object(first)) = grid.first() else { return };
    let mut names: Vec<&str> = first.keys().map(String::as_str).filter(|n| *n != "mean").collect();
    // Others come first, b last.
    names.sort_by_key(|name| {
        ["k1", "b"].iter().position(|known| known == name).map_or(0, |n| n + 1)
    });
    let mut axes: Vec<(&str, Vec<f64>)> =
        names.into_iter().map(|name| (name, values(name))).collect();
    let across = axes.pop().unwrap_or_default();
    let [down, table] = [axes.pop(), axes.pop()].map(|axis| axis.unwrap_or(("", vec![f64::NAN])));
    let is_at = |setting: &Value, (name, _): &(&str, Vec<f64>), value: f64| {
        name.is_empty() || float(&setting[*name]) == value
    };
    for &in_table in &table.1 {
        let which =
            if table.0.is_empty() { String::new() } else { format!(", {} {in_table}", table.0) };
        let corner = [down.0, across.0].join(if down.0.is_empty() { "" } else { " \\ " });
        let of = if down.0.is_empty() {
            across.0.to_string()
        } else {
            format!("{} and {}", down.0, across.0)
        };
        _ = write!(page, "<h2>Means by {of}{which}</h2>\n<table><tr><th>{corner}</th>");
        across.1.iter().for_each(|value| _ = write!(page, "<th>{value}</th>"));
        for &row in &down.1 {
            let head = if row.is_nan() { "mean".to_string() } else { row.to_string() };
            _ = write!(page, "</tr>\n<tr><th>{head}</th>");
            for &column in &across.1 {
                let is_here = |setting: &&Value| {
                    is_at(setting, &table, in_table)
                        && is_at(setting, &down, row)
                        && is_at(setting, &across, column)
                };
                _ = match grid.iter().find(is_here).map(|setting| float(&setting["mean"])) {
                    None => write!(page, "<td></td>"),
                    Some(mean) => {
                        let share =
                            if most > least { (mean - least) / (most - least) } else { 0.0 };
                        let shade = 0.75 * share;
                        write!(
                            page,
                            "<td style=\"background:rgba(0,114,178,{shade:.2})\">{mean:.4}</td>"
                        )
                    }
                };
            }
        }
        page.push_str("</tr></table>\n");
    }
}

/// All that is a single value.
fn table(page: &mut String, fields: &Map<String, Value>) {
    page.push_str("<h2>Totals</h2>\n<table>\n");
    for (name, value) in fields {
        let value = match value {
            Value::Number(_) => number(float(value)),
            Value::String(text) => escape(text),
            Value::Bool(is) => is.to_string(),
            _ => continue,
        };
        _ = writeln!(
            page,
            "<tr><td class=\"t\">{}</td><td class=\"t\">{value}</td></tr>",
            escape(name)
        );
    }
    page.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn charts_are_drawn_from_the_report() {
        let page = page(&json!({
            "job": "build", "documents": 7, "index": "a<b",
            "operators": [{"operator": "Parse", "seconds_by_worker": [1.0, 3.0]},
                          {"operator": "Read", "seconds_by_worker": [2.0, 0.0]}],
            "files": [{"name": "small", "bytes": 10}, {"name": "large", "bytes": 40}],
            "skipped": {"no <title>": 3},
            "phases": {"prepare_s": 0.25},
        }));
        for part in [
            "<h1>millrace build</h1>",
            "width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>worker 0: 1</title>",
            "width=\"540.0\" height=\"16\" fill=\"#e69f00\"><title>worker 1: 3</title>",
            "width=\"360.0\" height=\"16\" fill=\"#0072b2\"><title>worker 0: 2</title>",
            "width=\"720.0\" height=\"16\" fill=\"#0072b2\"><title>bytes: 40</title>",
            "width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>bytes: 10</title>",
            "no &lt;title&gt;",
            "<td class=\"t\">documents</td><td class=\"t\">7</td>",
            "a&lt;b",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.find("large") < page.find("small"));
        assert_eq!(page.matches("<svg").count(), 4);
    }

    #[test]
    fn time_memory_lists_and_the_generation_before_are_drawn() {
        let page = page(&json!({
            "job": "build", "memory_bytes": 4 << 20, "generation": 3, "documents": 150, "terms": 0,
            "timeline": {"slice_s": 0.5,
                "operators": [{"name": "Parse", "seconds": [0.0, 0.5]}],
                "workers": [{"name": 0, "seconds": [0.25]}, {"name": 1, "seconds": [0.0, 0.5]}]},
            "memory": {"slice_s": 0.5, "resident_bytes": [1 << 20, 3 << 20]},
            "lists": [{"below": 2, "lists": 1, "postings": 1, "bytes": 5}, {"below": 8, "lists": 2000, "postings": 9000, "bytes": 20}],
            "skipped_examples": ["a.jsonl: byte 7, line 2: bad JSON: <"],
            "before": {"generation": 2, "documents": 100, "terms": 0},
        }));
        for part in [
            // Half of all workers' time, and all of a worker's.
            "fill-opacity=\"0.625\"><title>Parse, 0.500 s: 50.0 %</title>",
            "fill-opacity=\"0.625\"><title>worker 0, 0 s: 50.0 %</title>",
            "fill-opacity=\"1.000\"><title>worker 1, 0.500 s: 100.0 %</title>",
            "height=\"35.0\" fill=\"#0072b2\"><title>0 s: 1.00 MiB</title>",
            "height=\"105.0\" fill=\"#0072b2\"><title>0.500 s: 3.00 MiB</title>",
            "--memory: 4.00 MiB",
            "1 posting: 1 list<",
            "4 to 7: 2,000 lists<",
            "width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>bytes: 5</title>",
            "width=\"720.0\" height=\"16\" fill=\"#0072b2\"><title>bytes: 20</title>",
            "<li>a.jsonl: byte 7, line 2: bad JSON: &lt;</li>",
            "<td>2</td><td>3</td><td></td>",
            "<td>100</td><td>150</td><td>+50 (+50.0 %)</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn latencies_are_drawn() {
        let page =
            page(&json!({"job": "query", "latency_us": {"p50": 2.0, "p99": 8.0, "distribution":
            [{"below": 4.0, "queries": 30}, {"below": 8.0, "queries": 10}]}}));
        for part in [
            "width=\"180.0\" height=\"16\" fill=\"#0072b2\"><title>Microseconds of a query: 2</title>",
            "<title>Microseconds of a query: 8</title>",
            "width=\"720.0\" height=\"16\" fill=\"#0072b2\"><title>queries: 30</title>",
            "width=\"240.0\" height=\"16\" fill=\"#0072b2\"><title>queries: 10</title>",
            "below 8 us",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_grid_is_a_heat_map_and_an_error_stands_first() {
        let pair = |k1: f64, mean: f64| json!({"k1": k1, "b": 0.5, "mean": mean});
        let page = page(
            &json!({"job": "tune", "error": "too <late>", "grid": [pair(1.0, 0.2), pair(2.0, 0.4)]}),
        );
        assert!(
            page.contains("rgba(0,114,178,0.00)\">0.2000<")
                && page.contains("rgba(0,114,178,0.75)\">0.4000<")
        );
        assert!(page.contains("<p class=\"failed\">too &lt;late&gt;</p>"));
    }

    #[test]
    fn heat_maps_have_one_parameter_or_three() {
        let mus = json!([{"mu": 50.0, "mean": 0.1}, {"mu": 9.0, "mean": 0.3}]);
        let mus = page(&json!({"job": "tune", "grid": mus}));
        assert!(
            mus.contains("<h2>Means by mu</h2>\n<table><tr><th>mu</th><th>9</th><th>50</th></tr>"),
            "{mus}"
        );
        assert!(
            mus.contains("<tr><th>mean</th><td style=\"background:rgba(0,114,178,0.75)\">0.3000<"),
            "{mus}"
        );
        let setting = |delta: f64, b: f64, mean: f64| json!({"score-delta": delta, "k1": 1.2, "b": b, "mean": mean});
        let grid = [setting(0.0, 0.5, 0.1), setting(1.0, 0.5, 0.2), setting(1.0, 0.7, 0.5)];
        let page = page(&json!({"job": "tune", "grid": grid}));
        for part in [
            "<h2>Means by k1 and b, score-delta 0</h2>",
            "<h2>Means by k1 and b, score-delta 1</h2>\n<table><tr><th>k1 \\ b</th><th>0.5</th><th>0.7</th></tr>",
            "rgba(0,114,178,0.00)\">0.1000</td><td></td></tr></table>",
            "rgba(0,114,178,0.19)\">0.2000</td><td style=\"background:rgba(0,114,178,0.75)\">0.5000</td></tr></table>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
