//! A report as a page of HTML that needs no network: it holds the report as JSON, which a script in
//! it draws. All that is shown, words and pictures, is in the template.

use serde_json::Value;

const TEMPLATE: &str = include_str!("report_page/template.html");

/// uPlot 1.6.32 by Leon Sorokin, as it was released, with its licence (MIT).
const PARTS: [(&str, &str); 3] = [
    ("{{uPlot licence}}", include_str!("report_page/uplot/LICENSE")),
    ("{{uPlot css}}", include_str!("report_page/uplot/uPlot.min.css")),
    ("{{uPlot js}}", include_str!("report_page/uplot/uPlot.iife.min.js")),
];

pub fn page(report: &Value) -> String {
    let frame = PARTS
        .iter()
        .fold(TEMPLATE.to_string(), |page, (place, part)| page.replacen(place, part.trim_end(), 1));
    // No text of the report ends the element that holds it, or begins a comment.
    frame.replacen("{{report}}", &report.to_string().replace('<', "\\u003c"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn held(page: &str) -> Value {
        let start = "<script type=\"application/json\" id=\"report\">";
        let (_, rest) = page.split_once(start).unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn a_page_holds_the_report_and_no_text_becomes_markup() {
        let report = json!({
            "job": "build </script><script>alert(1)</script> <!-- {{report}}",
            "{{uPlot js}}": "{{uPlot css}} \u{2028} \\u003c",
        });
        let page = page(&report);
        assert_eq!(held(&page), report);
        assert!(!page.contains("alert(1)</script>"), "{page}");
    }

    #[test]
    fn a_page_is_whole_small_and_names_the_licence() {
        let page = page(&json!({}));
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(!page.contains("{{"), "a place is not filled");
        assert!(
            page.contains("Copyright (c) 2022 Leon Sorokin") && page.contains("uPlot=function")
        );
        assert!(page.len() < 300_000, "{}", page.len());
        // Nothing is fetched from anywhere.
        for tag in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!page.contains(tag), "{tag}");
        }
    }
}
