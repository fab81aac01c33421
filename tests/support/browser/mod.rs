//! Looks at pages with a headless browser.

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Gives an object with what a person sees of the page.
pub(crate) const MEASURE: &str = include_str!("measure.js");

/// Carries out steps of `scripts/browser`. Without a browser the test is skipped and says so,
/// unless `MILLRACE_REQUIRE_BROWSER` is set.
pub(crate) fn browse(steps: &[Value]) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_tree = root.ancestors().map(|folder| folder.join("scripts/browser"));
    let script: PathBuf = of_tree.into_iter().find(|path| path.exists()).unwrap();
    let started = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let skip = |why: &str| {
        let required = std::env::var_os("MILLRACE_REQUIRE_BROWSER").is_some_and(|v| !v.is_empty());
        assert!(!required, "MILLRACE_REQUIRE_BROWSER is set, and {why}");
        eprintln!("skipped: {why}");
        None
    };
    let Ok(mut child) = started else { return skip("there is no python3") };
    // Without a browser it ends before it has read all.
    _ = child.stdin.take().unwrap().write_all(json!(steps).to_string().as_bytes());
    let done = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    if done.status.code() == Some(3) {
        return skip(&message);
    }
    assert!(done.status.success(), "{message}");
    Some(serde_json::from_slice(&done.stdout).expect("the script prints JSON"))
}

/// The report that a page holds.
pub(crate) fn held(page: &Path) -> Value {
    let text = std::fs::read_to_string(page).unwrap();
    let (_, rest) = text.split_once("id=\"report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The page in light and wide, in dark and narrow, and in dark and wide.
pub(crate) fn looks(page: &Path) -> [Value; 3] {
    [
        json!({"page": page, "evaluate": MEASURE, "height": 900}),
        json!({"width": 360, "height": 740, "dark": true, "evaluate": MEASURE}),
        json!({"dark": true, "evaluate": MEASURE}),
    ]
}

/// Checks what the steps of [`looks`] have found, and returns what is seen first.
pub(crate) fn check_looks<'a>(of: &str, found: &'a [Value]) -> &'a Value {
    for step in found {
        let told = format!("{of}: {step}");
        assert_eq!(step["errors"], json!([]), "{of}");
        // Nothing is fetched but the page.
        for request in step["requests"].as_array().unwrap() {
            assert!(request.as_str().unwrap().starts_with("file:"), "{of}: {request}");
        }
        let seen = &step["value"];
        let sentence = seen["sentence"].as_str().unwrap();
        assert!(sentence.len() > 20 && sentence.contains(' '), "{told}");
        assert!(!told.contains("undefined") && !told.contains("NaN"), "{told}");
        let numbers = seen["numbers"].as_array().unwrap();
        assert_eq!(numbers.len(), 4, "{told}");
        for number in numbers {
            assert!(
                number[1]
                    .as_str()
                    .unwrap()
                    .starts_with(|c: char| "+−-b".contains(c) || c.is_ascii_digit()),
                "{of}: {number}"
            );
        }
        let tall = if seen["inner"] == 360 { 740.0 } else { 900.0 };
        assert!(seen["firstScreen"].as_f64().unwrap() <= tall, "{told}");
        assert_eq!(seen["wide"], seen["inner"], "{of} is wider than the window");
        assert_eq!(seen["faint"], json!([]), "{of}: contrast");
        assert_eq!([&seen["foreign"], &seen["nameless"]], [0, 0], "{told}");
        for chart in seen["charts"].as_array().unwrap() {
            let number = |name: &str| chart[name].as_f64().unwrap();
            assert!(number("width") > 250.0 && number("height") > 150.0, "{of}: {chart}");
            assert!(number("right") <= seen["inner"].as_f64().unwrap(), "{of}: {chart}");
            assert!(number("painted") > 0.01, "{of}: {chart} is empty");
            assert!(chart["label"].as_str().unwrap().contains("table"), "{of}: {chart}");
            assert_eq!(chart["hasTable"], true, "{of}: {chart}");
        }
    }
    let [light, narrow, dark] = found else { panic!("{of}: three looks") };
    assert_eq!(light["value"]["ground"], "rgb(255, 255, 255)", "{of}");
    assert_eq!(narrow["value"]["inner"], 360, "{of}");
    assert_ne!(dark["value"]["ground"], "rgb(255, 255, 255)", "{of}");
    &light["value"]
}
