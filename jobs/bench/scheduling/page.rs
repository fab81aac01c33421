//! Rows of streams of queries as curves, with what the papers say beside them.

use millrace::chart::{Line, begin, end, lines, rows};
use serde_json::Value;
use std::fmt::Write as _;

/// The rows of a kind and a run.
fn of<'a>(all: &'a [Value], row: &str, run: &str) -> Vec<&'a Value> {
    all.iter().filter(|it| it["row"] == row && it["run"] == run).collect()
}

fn name(row: &Value) -> &str {
    row["schedule"].as_str().unwrap_or_default()
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or(f64::NAN)
}

/// Names in the order in which they come.
fn names<'a>(of: &[&'a Value]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for row in of {
        if !found.contains(&name(row)) {
            found.push(name(row));
        }
    }
    found
}

/// A page with all that the rows say.
pub(super) fn draw(all: &[Value]) -> String {
    let mut page = begin("Queries on CPU and GPU together");
    if let Some(model) = all.iter().find(|row| row["row"] == "model") {
        _ = writeln!(
            page,
            "<p>{} threads, {} GPUs, deadline {} ms. Mean cost: {:.1} us of a thread beside others, {:.1} us alone, {:.1} us of a GPU with many queries, {:.1} us of one with this query alone. \
             Mean |prediction - true| / true: CPU {:.2}, GPU {:.2} (ding09: 0.20 and 0.22).</p>",
            model["threads"],
            model["devices"],
            model["deadline_ms"],
            number(&model["mean_us"], "cpu"),
            number(&model["mean_us"], "cpu_alone"),
            number(&model["mean_us"], "device"),
            number(&model["mean_us"], "device_alone"),
            number(&model["cpu"], "mean_relative"),
            number(&model["device"], "mean_relative"),
        );
    }
    for (field, what) in [("mean_ms", "Mean latency"), ("p99_ms", "99th percentile of latencies")] {
        let mut curves = Vec::new();
        for (run, dashed) in [("real", false), ("simulated", true)] {
            let rows = of(all, "load", run);
            for (colour, schedule) in names(&rows).into_iter().enumerate() {
                let rows = rows.iter().filter(|row| name(row) == schedule);
                let points = rows.map(|row| (number(row, "queries_per_s"), number(row, field)));
                let points = points.collect();
                curves.push(Line { name: format!("{schedule}, {run}"), colour, dashed, points });
            }
        }
        let title = format!("{what} by rate (ding09, figure 7)");
        lines(&mut page, &title, ("queries a second", "ms"), &curves);
    }
    page.push_str(
        "<p>ding09, figure 7, on a GeForce 8800 GTS and one core of 2009, AND, a deadline of 500 ms: CPU alone less than 100 queries a second, \
         CPU and GPU by its schedule more than 300. Its curves are in a picture, of which we have no numbers.</p>\n",
    );
    for run in ["real", "simulated"] {
        let found = of(all, "highest", run);
        let title = format!("Highest rate without a missed deadline, {run}");
        bars(&mut page, &title, &found, "queries_per_s");
        let found = of(all, "together", run);
        let found: Vec<&Value> = found.into_iter().filter(|row| !name(row).contains(':')).collect();
        bars(
            &mut page,
            &format!("All queries at once, queries a second, {run}"),
            &found,
            "queries_per_s",
        );
    }
    let mut curves = Vec::new();
    let found = of(all, "light", "real");
    for (colour, schedule) in names(&found).into_iter().enumerate() {
        let rows = found.iter().filter(|row| name(row) == schedule);
        let most = |row: &Value| row["blocks"][1].as_f64().unwrap_or(f64::NAN);
        let points = rows.map(|row| (most(row), number(row, "mean_ms"))).collect();
        curves.push(Line { name: schedule.to_owned(), colour, dashed: false, points });
    }
    if !curves.is_empty() {
        let title = "Mean latency of queries that hardly meet, by their length, real";
        lines(&mut page, title, ("blocks of 64 postings", "ms"), &curves);
    }
    let mut curves = Vec::new();
    let found = of(all, "together", "simulated");
    for (colour, prefix) in ["lbd:", "lbd-reverse:"].into_iter().enumerate() {
        let point = |row: &&Value| {
            let threshold = name(row).strip_prefix(prefix)?.parse().ok()?;
            Some((threshold, number(row, "us_per_query") / 1e3))
        };
        let points: Vec<(f64, f64)> = found.iter().filter_map(point).collect();
        curves.push(Line {
            name: prefix.trim_end_matches(':').into(),
            colour,
            dashed: true,
            points,
        });
    }
    let sd =
        found.iter().find(|row| name(row) == "sd").map(|row| number(row, "us_per_query") / 1e3);
    let most = curves.iter().flat_map(|line| &line.points).map(|point| point.0).fold(1.0, f64::max);
    if let Some(sd) = sd {
        let points = vec![(0.0, sd), (most, sd)];
        curves.push(Line { name: "sd".into(), colour: 2, dashed: true, points });
    }
    lines(
        &mut page,
        "Time of a query by threshold (huang, figure 6), simulated",
        ("blocks of 64 postings", "ms"),
        &curves,
    );
    page.push_str(
        "<p>huang, table 2, best 10, 64 threads a query, ms a query by SD and LBD: AND 4.20 and 2.11, OR 17.54 and 8.76, WAND 4.85 and 2.69, BMW 3.82 and 1.44; \
         the best threshold was 30,000 blocks.</p>\n<p>wang, figure 10: CPU and GPU together are faster than either; against eight threads the GPU gains 3 to 24 %.</p>\n",
    );
    end(&mut page);
    page
}

fn bars(page: &mut String, title: &str, found: &[&Value], field: &str) {
    if found.is_empty() {
        return;
    }
    let values = found.iter().map(|row| number(row, field)).collect();
    let names: Vec<&str> = found.iter().map(|row| name(row)).collect();
    rows(page, title, &names, &[millrace::chart::Series { name: field, values }]);
}
