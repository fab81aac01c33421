//! A self-contained page of HTML that shows a value of JSON as tables, whatever its fields are.

use serde_json::{Map, Value};

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><style>\
    :root{color-scheme:light dark}body{font:14px sans-serif;margin:2em;overflow-wrap:anywhere}\
    table{border-collapse:collapse}th{text-align:left}\
    td,th{padding:.2em .7em;border:1px solid #8884;vertical-align:top}</style>";

/// An object has a row for each field, a list of objects a column for each.
pub fn page(title: &str, value: &Value) -> String {
    let title = escape(title);
    let shown = html(value);
    format!(
        "{HEAD}<title>{title}</title></head>\n<body><h1>{title}</h1>\n{shown}\n</body></html>\n"
    )
}

fn html(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        Value::Object(fields) => {
            let row = |(name, value): (&String, &Value)| {
                format!("<tr><th>{}</th><td>{}</td></tr>\n", escape(name), html(value))
            };
            format!("<table>\n{}</table>", fields.iter().map(row).collect::<String>())
        }
        Value::Array(items) => {
            let objects: Option<Vec<_>> = items.iter().map(Value::as_object).collect();
            match objects {
                Some(rows) if !rows.is_empty() => table(&rows),
                _ => {
                    let between = if items.iter().any(Value::is_string) { "<br>\n" } else { ", " };
                    items.iter().map(html).collect::<Vec<_>>().join(between)
                }
            }
        }
        _ => value.to_string(),
    }
}

fn table(rows: &[&Map<String, Value>]) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let head: String = names.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let row = |row: &&Map<String, Value>| {
        let cell =
            |name: &&String| format!("<td>{}</td>", row.get(*name).map(html).unwrap_or_default());
        format!("<tr>{}</tr>\n", names.iter().map(cell).collect::<String>())
    };
    format!("<table>\n<tr>{head}</tr>\n{}</table>", rows.iter().map(row).collect::<String>())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_tables() {
        let page = page(
            "a < b",
            &json!({
                "documents": 7, "failed": true, "none": null, "seconds": [0.5, 1.25],
                "skipped_examples": ["bad <JSON>", "more"],
                "files": [{"name": "small", "bytes": 10}, {"name": "large", "of": {"x": 1}}],
            }),
        );
        for part in [
            "<h1>a &lt; b</h1>",
            "<tr><th>documents</th><td>7</td></tr>",
            "<tr><th>failed</th><td>true</td></tr>",
            "<tr><th>none</th><td></td></tr>",
            "<td>0.5, 1.25</td>",
            "<td>bad &lt;JSON&gt;<br>\nmore</td>",
            "<tr><th>bytes</th><th>name</th><th>of</th></tr>\n<tr><td>10</td><td>small</td><td></td></tr>",
            "<td>large</td><td><table>\n<tr><th>x</th><td>1</td></tr>\n</table></td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    }

    #[test]
    fn no_text_becomes_markup() {
        let page = page("x", &json!({"<script>": "<script>alert(1)</script> & \"more\""}));
        assert!(!page.contains("<script") && page.contains("&amp; &quot;more&quot;"), "{page}");
    }
}
