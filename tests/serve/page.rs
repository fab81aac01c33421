//! The page, in a browser: what it shows, asks, and how it is used by keys.

use super::{index_of, records};
use crate::support::Scratch;
use crate::support::browser::browse;
use crate::support::http::Serving;
use serde_json::{Value, json};

/// A name and a text that would be markup if they were put in as such.
const EVIL: &str = r#"{"id":"<img src=x onerror=alert(1)>","text":"okapi <script>document.title='bad'</script> <b>mill</b>","year":1999,"tags":["<i>x</i>"]}"#;

/// Types into the box, waits for the answer, and tells what is there.
fn typed(text: &str) -> String {
    let text = json!(text);
    format!(
        "(async () => {{
          const q = document.getElementById('q');
          q.value = {text};
          q.dispatchEvent(new Event('input'));
          return await settled();
        }})()"
    )
}

/// What a person sees, once the page has had time to answer.
const SETTLED: &str = "if (window.pending === undefined) {
  window.pending = 0;
  const own = window.fetch;
  window.fetch = (...of) => {
    window.pending++;
    return own(...of).finally(() => window.pending--);
  };
}
window.settled = async () => {
  // Until nothing is asked any more, and something was said.
  const said = () => ['about', 'problem', 'status'].some((id) => document.getElementById(id).textContent) || !document.getElementById('entry').hidden;
  for (let quiet = 0, rounds = 0; (quiet < 6 || !said()) && rounds < 200; rounds++) {
    await new Promise((then) => setTimeout(then, 50));
    quiet = window.pending ? 0 : quiet + 1;
  }
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map((n) => (n / 255 <= 0.04045 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    const own = getComputedStyle(one).backgroundColor;
    return own.startsWith('rgba(0, 0, 0, 0') ? ground(one.parentElement) : own;
  };
  const contrast = (one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((a, b) => b - a);
    return (a + 0.05) / (b + 0.05);
  };
  const has = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const seen = [...document.querySelectorAll('main *, footer, #status')].filter((one) => has(one) && one.getBoundingClientRect().height > 0);
  const nameless = [...document.querySelectorAll('input, select')].filter((one) => !one.labels?.length);
  return {
    title: document.title, status: document.getElementById('status').textContent,
    names: [...document.querySelectorAll('#hits h2')].map((one) => one.firstChild.textContent),
    marks: [...document.querySelectorAll('mark')].map((one) => one.textContent),
    facets: [...document.querySelectorAll('#facets button')].map((one) => one.firstChild.textContent),
    about: document.getElementById('about').textContent, problem: document.getElementById('problem').textContent,
    why: [...document.querySelectorAll('table.why tr')].map((one) => one.firstChild.textContent),
    text: document.querySelector('.text')?.textContent ?? '', focus: document.activeElement.tagName + ' ' + (document.activeElement.querySelector?.('h2')?.firstChild.textContent ?? document.activeElement.id),
    foreign: document.querySelectorAll('main img, main script, main b, main i').length, wide: document.documentElement.scrollWidth, inner: innerWidth,
    faint: seen.map((one) => [contrast(one), one.textContent.slice(0, 30)]).filter(([of]) => of < 4.5), nameless: nameless.length,
    place: document.getElementById('place').textContent, address: location.search,
  };
}; settled()";

fn clicked(of: &str) -> String {
    format!(
        "(async () => {{ document.querySelector({}).click(); return await settled(); }})()",
        json!(of)
    )
}

#[test]
fn the_page_answers_while_one_types() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &(records(1, 60) + EVIL + "\n"));
    let server = Serving::new(&index, &["-w", "1"]);
    let page = format!("http://{}/", server.address);
    let steps = [
        json!({"page": page, "evaluate": SETTLED}),
        json!({"evaluate": typed("whee")}),
        json!({"evaluate": clicked(".actions button:nth-child(2)"), "dark": true}),
        json!({"evaluate": clicked(".actions button:nth-child(1)"), "width": 360}),
        json!({"evaluate": "document.getElementById('q').focus(), settled()", "keys": []}),
        json!({"keys": ["ArrowDown"], "evaluate": "settled()"}),
        json!({"keys": ["ArrowDown"], "evaluate": "settled()"}),
        json!({"keys": ["/"], "evaluate": "settled()"}),
        json!({"evaluate": clicked("#facets button")}),
        json!({"evaluate": typed("okapi")}),
        json!({"page": format!("{page}?q=mill&filter=yaer>3"), "evaluate": SETTLED}),
        json!({"page": format!("{page}?q=mill&offset=10"), "evaluate": SETTLED}),
    ];
    let Some(found) = browse(&steps) else { return };
    for step in &found {
        let seen = &step["value"];
        assert_eq!((&seen["title"], &seen["foreign"]), (&"Search".into(), &0.into()), "{step}");
        assert_eq!((&seen["faint"], &seen["nameless"]), (&json!([]), &0.into()), "{step}");
        assert!(seen["wide"].as_f64() <= seen["inner"].as_f64(), "{step}");
        assert!(
            !seen.to_string().contains("undefined") && !seen.to_string().contains("NaN"),
            "{step}"
        );
        for request in step["requests"].as_array().unwrap() {
            assert!(request.as_str().unwrap().starts_with(&page), "{request}");
        }
    }
    // The browser says itself that one request was refused.
    let errors = |at: usize| found[at]["errors"].as_array().unwrap().len();
    assert_eq!(
        (0..12).map(errors).collect::<Vec<_>>(),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        "{found:?}"
    );
    let list = |at: usize, of: &str| -> Vec<String> {
        let list = found[at]["value"][of].as_array().unwrap();
        list.iter().map(|one| one.as_str().unwrap().to_string()).collect()
    };
    let text = |at: usize, of: &str| found[at]["value"][of].as_str().unwrap().to_string();
    // Without words all documents are there, with what they have.
    assert_eq!(list(0, "names").len(), 10);
    assert!(
        text(0, "about").starts_with("61 documents") && text(0, "about").contains("generation 1")
    );
    assert_eq!(list(1, "names").len(), 10, "{}", found[1]);
    assert!(list(1, "marks").iter().all(|mark| mark == "wheel") && !list(1, "marks").is_empty());
    assert!(text(1, "status").contains("documents, found in"), "{}", text(1, "status"));
    assert!(text(1, "address").contains("q=whee"));
    assert!(list(1, "facets").contains(&"a".to_string()));
    assert_eq!(list(2, "why"), ["wheel"]);
    assert!(text(3, "text").contains("wheel") && list(3, "why").is_empty());
    let names = list(5, "names");
    assert_eq!([text(5, "focus"), text(6, "focus")], [0, 1].map(|at| format!("LI {}", names[at])));
    assert_eq!(text(7, "focus"), "INPUT q");
    assert!(text(8, "address").contains("filter=tags"), "{}", found[8]);
    assert_eq!(list(9, "names"), Vec::<String>::new(), "the filter stays");
    assert!(text(10, "problem").contains("year"), "{}", found[10]);
    assert!(text(11, "place").starts_with("11 to 20 of"), "{}", found[11]);
    // What documents contain stays text.
    let evil: [Value; 2] = [
        json!({"page": format!("{page}?q=okapi"), "evaluate": SETTLED}),
        json!({"evaluate": clicked(".actions button")}),
    ];
    let found = browse(&evil).expect("there was a browser");
    for step in &found {
        assert_eq!(
            (&step["errors"], &step["value"]["title"]),
            (&json!([]), &"Search".into()),
            "{step}"
        );
        assert_eq!(step["value"]["foreign"], 0);
        assert_eq!(step["value"]["names"][0], "<img src=x onerror=alert(1)>");
    }
    assert!(found[1]["value"]["text"].as_str().unwrap().contains("<script>"));
}

#[test]
fn a_token_is_asked_for() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 20));
    let token = scratch.write("token", "a-token-of-a-test\n").display().to_string();
    let server = Serving::new(&index, &["-w", "1", "--read-token", &token]);
    let page = format!("http://{}/?q=mill", server.address);
    let enter = "(async () => {
      document.getElementById('token').value = 'a-token-of-a-test';
      document.querySelector('#entry button').click();
      return await settled();
    })()";
    let steps = [json!({"page": page, "evaluate": SETTLED}), json!({"evaluate": enter})];
    let Some(found) = browse(&steps) else { return };
    assert_eq!(found[0]["value"]["focus"], "INPUT token", "{found:?}");
    assert_eq!(found[0]["value"]["names"], json!([]));
    assert!(found[1]["value"]["names"].as_array().unwrap().len() > 2, "{found:?}");
}
