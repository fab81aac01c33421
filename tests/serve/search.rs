//! Answers are those of `millrace query --format jsonl`.

use super::{address, by_query, index_of, names, records, search, without_time};
use crate::support::http::Serving;
use crate::support::{Scratch, args, millrace};
use serde_json::{Value, json};

type Parameters = &'static [(&'static str, &'static str)];

#[test]
fn addresses_and_bodies_answer_as_the_command_line() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(1, 300));
    let server = Serving::new(&index, &["-w", "2"]);
    let cases: [(Parameters, &[&str]); 9] = [
        (&[], &[]),
        (&[("k", "3")], &["-k", "3"]),
        (&[("mode", "and"), ("count", "true")], &["--mode", "and", "--count"]),
        (&[("algorithm", "exhaustive")], &["--algorithm", "exhaustive"]),
        (
            &[("filter", "year >= 1990 and tags = \"c d\"")],
            &["--filter", "year >= 1990 and tags = \"c d\""],
        ),
        (&[("sort", "year:desc")], &["--sort", "year:desc"]),
        (&[("facets", "tags:2,year")], &["--facets", "tags:2,year"]),
        (&[("return", "year,tags")], &["--return", "year,tags"]),
        (&[("snippets", "1")], &["--snippets"]),
    ];
    for (parameters, options) in cases {
        for text in ["mill water", "rare stone tall", "nowhere"] {
            let expected = by_query(&index, text, options);
            let all = [parameters, &[("q", text)]].concat();
            let found = search(&server, &all).expect(200);
            assert_eq!(found.header("content-type"), Some("application/json"));
            assert_eq!(without_time(found.json()), expected, "{all:?}");
            let mut object = json!({"query": text});
            for (name, value) in parameters {
                object[name] = match *value {
                    "true" | "1" => true.into(),
                    number if *name == "k" => number.parse::<u64>().unwrap().into(),
                    text => text.into(),
                };
            }
            let found = server.post("/v1/search", object.to_string()).expect(200);
            assert_eq!(without_time(found.json()), expected, "{object}");
        }
    }
    let operators =
        search(&server, &[("q", "+mill -water \"old stone\""), ("syntax", "operators")]);
    let expected = by_query(&index, "+mill -water \"old stone\"", &["--syntax", "operators"]);
    assert_eq!(without_time(operators.expect(200).json()), expected);
    let all = search(&server, &[("q", "*"), ("sort", "year"), ("k", "400")]).expect(200).json();
    assert_eq!(names(&all).len(), 300);
}

#[test]
fn a_list_is_a_batch_and_pages_follow_each_other() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 200));
    let server = Serving::new(&index, &["-w", "2", "-k", "7"]);
    let list = json!([
        {"qid": "a", "query": "mill"},
        {"query": "water", "k": 2},
        {"query": "water", "k": -2},
        {"qid": "b", "query": {"all": ["mill", "stone"]}},
        {"query": "x", "score": "dph"},
    ]);
    let found = server.post("/v1/search", list.to_string()).expect(200).json();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 5);
    assert_eq!(found[0]["qid"], "a");
    assert_eq!((names(&found[0]).len(), names(&found[1]).len()), (7, 2));
    assert_eq!((&found[1]["qid"], &found[2]["qid"]), (&json!("2"), &json!("3")));
    assert_eq!(found[2]["parameter"], "k");
    assert_eq!(found[4]["parameter"], "score");
    assert!(names(&found[3]).len() > 2);
    // Pages, end to end, are the whole list.
    let whole = search(&server, &[("q", "mill"), ("k", "30")]).expect(200).json();
    let mut pages = Vec::new();
    for offset in ["0", "10", "20"] {
        let page = search(&server, &[("q", "mill"), ("k", "10"), ("offset", offset)]).expect(200);
        pages.extend(page.json()["hits"].as_array().unwrap().clone());
    }
    assert_eq!(Value::from(pages), whole["hits"]);
    // Compressed, if that is asked for.
    let path = address("/v1/search", &[("q", "mill"), ("k", "100")]);
    let small = server.ask("GET", &path, &["Accept-Encoding: gzip"], b"").expect(200);
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    let plain = server.get(&path).expect(200);
    assert!(2 * small.body.len() < plain.body.len());
}

#[test]
fn documents_scores_and_settings_can_be_looked_at() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(3, 50));
    let server = Serving::new(&index, &["-w", "1"]);
    let shown = millrace(args!["show", "--index", &index, "--json", "d/7?"]).ok();
    let shown: Value = serde_json::from_str(shown.text()).unwrap();
    for path in ["/v1/documents/d%2F7%3F", "/v1/documents?name=d/7%3F", "/v1/documents?docid=7"] {
        let found = server.get(path).expect(200).json();
        assert_eq!((&found["name"], &found["tokens"]), (&"d/7?".into(), &shown["tokens"]));
        assert_eq!((&found["values"], &found["text"]), (&shown["values"], &shown["record"]));
    }
    assert!(server.get("/v1/documents/nobody").expect(404).json()["error"].is_string());
    let explained =
        server.get(&address("/v1/explain", &[("q", "mill"), ("name", "d/7?")])).expect(200);
    let expected = millrace(args!["explain", "--index", &index, "--json", "d/7?", "mill"]).ok();
    assert_eq!(explained.json(), serde_json::from_str::<Value>(expected.text()).unwrap());
    let info = server.get("/v1/info").expect(200).json();
    assert_eq!((&info["documents"], &info["generation"]), (&50.into(), &1.into()));
    // Nothing tells where files are.
    let text = info.to_string();
    assert!(!text.contains("records.jsonl"), "{text}");
    assert_eq!(server.get("/live").expect(200).body, b"alive\n");
    assert_eq!(server.get("/ready").expect(200).body, b"generation 1\n");
    let metrics = String::from_utf8(server.get("/metrics").expect(200).body).unwrap();
    for what in [
        "millrace_requests_total{method=\"GET\",path=\"/v1/explain\",status=\"200\"} 1",
        "millrace_generation 1",
        "millrace_documents 50",
        "millrace_request_time_seconds_bucket",
        "# EOF",
    ] {
        assert!(metrics.contains(what), "{what}: {metrics}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(4, 20));
    let server = Serving::new(&index, &["-w", "1"]);
    let cases: [(Parameters, &str, &str); 15] = [
        (&[], "q", "missing"),
        (&[("q", "a"), ("k", "-1")], "k", "whole number"),
        (&[("q", "a"), ("k", "0")], "k", "whole number"),
        (&[("q", "a"), ("k", "10001")], "k", "more than 10000 hits"),
        (&[("q", "a"), ("offset", "9999"), ("k", "2")], "offset", "more than 10000 hits"),
        (&[("q", "a"), ("mode", "xor")], "mode", "or, and, and-or"),
        (&[("q", "a"), ("filter", "yaer > 3")], "filter", "year"),
        (&[("q", "a"), ("filter", "year > ")], "filter", ""),
        (&[("q", "a"), ("sort", "tags")], "sort", "tags"),
        (&[("q", "a"), ("facets", "none")], "facets", "none"),
        (&[("q", "a"), ("return", "none")], "return", "none"),
        (&[("q", "a"), ("snippets", "perhaps")], "snippets", "neither true nor false"),
        (&[("q", "a"), ("score", "dph")], "score", "when the server is started"),
        (&[("q", "a"), ("top", "3")], "top", "not known"),
        (&[("q", "a"), ("q", "b")], "q", "twice"),
    ];
    for (parameters, parameter, says) in cases {
        let found = search(&server, parameters).expect(400).json();
        assert_eq!(found["parameter"], parameter, "{parameters:?}: {found}");
        assert!(found["error"].as_str().unwrap().contains(says), "{parameters:?}: {found}");
    }
    for (path, status) in [("/v1/none", 404), ("/v1/documents", 400), ("/v1/explain?q=a", 400)] {
        assert!(server.get(path).expect(status).json()["error"].is_string());
    }
    server.ask("PUT", "/v1/search", &[], b"").expect(405);
    for body in ["", "{", "[1]x", "3", "[", "\u{fffd}"] {
        let found = server.post("/v1/search", body).expect(400).json();
        assert!(found["error"].is_string(), "{body}");
    }
    server.post("/v1/search?k=3", "{\"query\":\"a\"}").expect(400);
    // Without texts there are no snippets.
    let bare = scratch.path("bare");
    millrace(args!["build", "--index", &bare, scratch.path("records.jsonl")]).ok();
    let bare = Serving::new(&bare, &["-w", "1"]);
    let found = search(&bare, &[("q", "mill"), ("snippets", "1")]).expect(400).json();
    assert!(found["error"].as_str().unwrap().contains("--store"), "{found}");
}

#[test]
fn the_word_that_is_typed_is_completed() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(5, 100));
    let server = Serving::new(&index, &["-w", "1"]);
    let of = |q: &str, prefix: &str| {
        let answer = search(&server, &[("q", q), ("prefix", prefix), ("k", "100")]).expect(200);
        let mut names = names(&answer.json());
        names.sort();
        names
    };
    assert!(of("whee", "0").is_empty());
    assert_eq!(of("whee", "1"), of("wheel", "0"));
    assert_eq!(of("mill riv", "1"), of("mill river", "0"));
    assert_eq!(of("wheel ", "1"), of("wheel", "0"));
    let count = |q: &str, mode: &str, prefix: &str| {
        let asked = [("q", q), ("mode", mode), ("prefix", prefix), ("k", "1"), ("count", "1")];
        search(&server, &asked).expect(200).json()["found"].as_u64().unwrap()
    };
    assert_eq!(count("mill riv", "and", "1"), count("mill river", "and", "0"));
    assert!(count("mill riv", "and", "1") < count("mill riv", "or", "1"));
    assert_eq!(count("nowhere riv", "and", "1"), 0);
    for more in [("syntax", "operators"), ("mode", "and-or")] {
        search(&server, &[("q", "a"), ("prefix", "1"), more]).expect(400);
    }
}
