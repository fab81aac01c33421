//! Queries in CSV and TSV whose first line names columns, and files and objects of which nobody
//! can say what they are.

use super::{Asked, asked, pairs};
use crate::support::*;

fn two() -> Vec<(String, String)> {
    pairs(&[("q1", "dark matter"), ("q2", "family tree")])
}

#[test]
fn a_first_line_that_names_columns_is_no_query() {
    let of = Asked::new();
    for text in [
        "qid,query\nq1,dark matter\nq2,family tree\n",
        ",qid,query\n0,q1,dark matter\n1,q2,family tree",
        "\u{feff}\"query_id\";\"text\"\r\n\"q1\";\"dark matter\"\r\n\r\nq2;family tree\r\n",
        "_id\tquestion\nq1\tdark matter\nq2\tfamily tree\n",
        "\n Title , ID ,lang\ndark matter,q1,en\nfamily tree, q2 \n",
        "title,qid,query,id of it\nx,q1,dark matter,1\ny,q2,family tree,2\n",
        "qid,query\rq1,dark matter\rq2,family tree\r",
    ] {
        for outcome in
            [of.file(text, &[]), of.pipe(text, &[]), of.pipe(text, &["--query-format", "csv"])]
        {
            assert_eq!(asked(&outcome.expect_status(0)), two(), "{text}");
        }
        let told = of.pipe(text, &[]);
        assert_eq!(told.stderr.matches("names columns: names are those of `").count(), 1, "{text}");
        assert!(!of.pipe(text, &["--quiet"]).stderr.contains("names columns"));
    }
    for (name, bytes) in packed("qid,query\nq1,dark matter\nq2,family tree\n") {
        assert_eq!(asked(&of.file(bytes, &[]).expect_status(0)), two(), "{name}");
    }
    for alone in ["qid,query\n", "id\ttext", "query;qid\n\n"] {
        assert_eq!(asked(&of.file(alone, &[]).expect_status(0)), [], "{alone}");
        assert_eq!(asked(&of.pipe(alone, &[]).expect_status(0)), [], "{alone}");
    }
    // Without a name a query has its number.
    let numbers = of.pipe("query\ndark, matter\n", &["--query-format", "csv"]).expect_status(1);
    numbers.says("line 2 of the queries (byte 6): has 2 fields, where 1 columns are");
    let numbers = of.pipe("qid,query\n,dark\n,family\n", &[]).expect_status(0);
    assert_eq!(asked(&numbers), pairs(&[("1", "dark"), ("2", "family")]));
}

#[test]
fn quoted_fields_are_those_of_csv() {
    let of = Asked::new();
    let text = "qid,query\nq1,\"dark, \"\"cold\"\"\n\nmatter\"\nq2,5\" disk\nq3,\"\"\nq4,\"a\" b\n";
    let expected =
        pairs(&[("q1", "dark, \"cold\"\n\nmatter"), ("q2", "5\" disk"), ("q3", ""), ("q4", "a b")]);
    assert_eq!(asked(&of.file(text, &[]).expect_status(0)), expected);
    assert_eq!(asked(&of.file(text.replace('\n', "\r\n"), &[]).expect_status(0))[3], expected[3]);
    // No line of a pipe waits for the next.
    let pipe = of.pipe(text, &[]).expect_status(1);
    assert_eq!(asked(&pipe)[2..], expected[1..]);
    pipe.says("line 2 of the queries (byte 10): has a quoted field that does not end")
        .says("line 4 of the queries (byte 30): has too few fields");
    // A quote that is not closed takes no other line with it.
    let open = "qid,query\nq1,\"dark\nq2,family\nq3,\"x\nq4,\"b\"\nq5,a,b\nq6\nq7,end\n";
    let outcome = of.file(open, &[]).expect_status(1);
    let answered: Vec<_> =
        asked(&outcome).into_iter().filter(|query| !query.1.is_empty()).collect();
    assert_eq!(answered, pairs(&[("q2", "family"), ("q4", "b"), ("q7", "end")]));
    outcome
        .says("line 2 of the queries (byte 10): has a quoted field")
        .says("line 4 of the queries (byte 29): has a quoted field")
        .says("line 6 of the queries (byte 42): has 3 fields, where 2 columns are")
        .says("line 7 of the queries (byte 49): has too few fields");
}

/// Behind its first line TSV is what it is without one.
#[test]
fn quotes_of_tsv_stay_where_they_are_none_of_csv() {
    let of = Asked::new();
    let rows = "a\t\"dark\nb\t\"dark\" matter\nc\tx\ty\nd\t5\" disk \"\ne\t\nf\t\"z\"\"\ng\th \"\n";
    let plain = asked(&of.file(rows, &[]).expect_status(0));
    assert_eq!(plain.len(), 7);
    let headed = format!("qid\tquery\n{rows}");
    assert_eq!(asked(&of.file(&headed, &[]).expect_status(0)), plain);
    assert_eq!(asked(&of.pipe(&headed, &[]).expect_status(0)), plain);
    let quoted = of.file("qid\tquery\na\t\"dark\n\"\"cold\"\" matter\"\n", &[]).expect_status(0);
    assert_eq!(asked(&quoted), pairs(&[("a", "dark\n\"cold\" matter")]));
}

#[test]
fn csv_may_be_asked_for_without_a_first_line() {
    let of = Asked::new();
    let csv = ["--query-format", "csv"];
    for text in ["q1,dark matter\nq2,\"family tree\"\n", "q1\tdark matter\n\nq2\tfamily tree\n"] {
        assert_eq!(asked(&of.file(text, &csv).expect_status(0)), two(), "{text}");
        assert_eq!(asked(&of.pipe(text, &csv).expect_status(0)), two(), "{text}");
    }
    // A column of names that is not known, and a query that is the name of a column.
    for text in ["topic,query\nq1,dark matter\nq2,family tree\n", "id,qid,query\nx,q1,a\n"] {
        assert_eq!(asked(&of.pipe(text, &csv).expect_status(0))[0].0, "q1", "{text}");
    }
    let text = of.pipe("q1,query\nq2,dark\n", &csv).expect_status(0);
    assert_eq!(asked(&text), pairs(&[("q1", "query"), ("q2", "dark")]));
    of.pipe("q1,dark\nq2,a,b\n", &csv).expect_status(1).says("has 3 fields, where 2 columns are");
}

#[test]
fn what_may_be_csv_or_words_is_refused() {
    let of = Asked::new();
    for text in [
        "q1,dark matter\nq2,family tree\n",
        "1;dark\r\n\r\n2;family, tree\r\n3;\n",
        "\"1\",\"dark\"\n\"2\",\"family\"\n",
        "2026-11-02T10:00,dark\n2026-11-02T10:01,family\n",
    ] {
        let outcome = of.file(text, &[]).expect_status(1);
        assert_eq!(asked(&outcome), []);
        outcome.says("every line begins with another name").says("--query-format csv|words");
        let words = of.file(text, &["--query-format", "words"]).expect_status(0);
        assert_eq!(asked(&words)[0], ("1".into(), text.lines().next().unwrap().into()), "{text}");
        // A pipe has no other lines to look at.
        assert_eq!(asked(&of.pipe(text, &[]).expect_status(0)), asked(&words));
    }
    for text in [
        "Paris, France\nBerlin, Germany\n",
        "10,000 steps\n20,000 leagues\n",
        "2,4-D herbicide\n1,3-butadiene\n",
        "q1,dark matter\n",
        "q1,dark\nq1,family\n",
        "q1,dark\nfamily, tree\n",
        "windows 10,drivers\nwindows 11,drivers\n",
        "id,qid,query\n1,q1,dark\n",
        "qid, and query\nx\n",
        "name,value\na,b\n",
    ] {
        let expected: Vec<_> =
            text.lines().zip(1..).map(|(line, n)| (n.to_string(), line.to_string())).collect();
        for outcome in [of.file(text, &[]), of.pipe(text, &[])] {
            assert_eq!(asked(&outcome.expect_status(0)), expected, "{text}");
        }
    }
    assert_eq!(asked(&of.job(&["--query", "qid,query"]).ok()), pairs(&[("1", "qid,query")]));
}

#[test]
fn objects_whose_names_may_be_fields_are_refused() {
    let of = Asked::new();
    let one = "{\"topic_id\": \"7\", \"utterance\": \"water mill\"}";
    let spread = one.replace(", ", ",\n").replace('{', "{\n");
    for text in [one, &format!("{one}\n \n"), &spread] {
        for outcome in [of.file(text, &[]), of.pipe(text, &[])] {
            let outcome = outcome.expect_status(1);
            assert!(outcome.json_lines().iter().all(|line| line["hits"].is_null()), "{text}");
            outcome
                .says("line 1 of the queries (byte 0): has the fields `topic_id`, `utterance`")
                .says("--query-format json");
        }
        let named = of.file(text, &["--query-format", "json"]).expect_status(0);
        assert_eq!(asked(&named), pairs(&[("topic_id", "7"), ("utterance", "water mill")]));
    }
    // What stands behind it in a pipe is read.
    let after = of.pipe(format!("{one}\n{{\"qid\": \"b\", \"query\": \"dark\"}}\n"), &[]);
    let (name, text) = asked(&after.expect_status(1)).pop().unwrap();
    assert_eq!((&*name, &*text), ("b", "dark"));
    let many: Vec<String> = ('a'..='i').map(|name| format!("\"{name}\": \"dark\"")).collect();
    for (map, queries) in [
        ("{\"q1\": \"dark\", \"x\": \"family\"}".to_string(), 2),
        ("{\"a\": {\"title\": \"dark\"}, \"b\": \"family\"}".to_string(), 2),
        (format!("{{{}}}", many.join(", ")), 9),
    ] {
        assert_eq!(asked(&of.file(&map, &[]).expect_status(0)).len(), queries, "{map}");
        assert_eq!(asked(&of.pipe(&map, &[]).expect_status(0)).len(), queries, "{map}");
    }
    of.file(format!("{{{}}}", many[..8].join(", ")), &[]).expect_status(1).says("`a`, `b`, `c`");
}

#[test]
fn all_jobs_read_columns() {
    let of = Asked::new();
    let csv = of.scratch.write("q.csv", "qid,query\nq1,dark matter\nq2,family tree\n");
    let unclear = of.scratch.write("u.csv", "q1,dark matter\nq2,family tree\n");
    let qrels = of.scratch.write("qrels", "q1 0 d0 1\nq2 0 d1 1\n");
    let run = of.scratch.write("run", "q1 Q0 d0 1 2 x\nq2 Q0 d1 1 1 x\n");
    let report = of.scratch.path("report.json");
    let index = of.index.as_os_str();
    let qrels = qrels.as_os_str();
    let jobs = [
        (args!["tune", "--index", index, "--qrels", qrels, "--folds", "2"].to_vec(), "2 queries"),
        (args!["bench", "queries", "--index", index, "--passes", "1"].to_vec(), ""),
        (args!["cache", "--index", index, "--memory", "1M"].to_vec(), "2 queries"),
        (args!["query", "--index", index, "--rm3", "2,2,0.5"].to_vec(), "2 queries"),
        (args!["evaluate", "--qrels", qrels, run, "--report", report, "--queries"].to_vec(), ""),
    ];
    for (job, says) in jobs {
        millrace(&job).arg(&csv).ok().says(says);
        if job[0] == "evaluate" {
            let report = std::fs::read_to_string(&report).unwrap();
            assert!(report.contains("\"q2\": \"family tree\""), "{report}");
        }
        let refused = millrace(&job).arg(&unclear).fails(1).says("every line begins with another");
        let evaluates = job[0] == "evaluate";
        assert_eq!(refused.stderr.contains("--query-format csv|words"), !evaluates, "{job:?}");
    }
}

/// The queries of Vaswani are answered as well from CSV as from TSV.
#[test]
fn the_queries_of_a_collection_may_be_csv() {
    let Some(folder) = shared("collections/vaswani") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![folder.join("corpus.jsonl")]);
    let tsv = std::fs::read_to_string(folder.join("queries.tsv")).unwrap();
    let rows = tsv.lines().zip(0..).map(|(line, n)| {
        let (qid, text) = line.split_once('\t').unwrap();
        (format!("{qid},\"{text}\"\n"), format!("{n};{qid};{text}\n"))
    });
    let (plain, indexed): (String, String) = rows.unzip();
    for csv in [format!("qid,query\n{plain}"), format!(";query_id;text\n{indexed}")] {
        let csv = scratch.write("q.csv", csv);
        let qrels = folder.join("qrels.txt");
        let query = args!["query", "--index", index, "-k", "1000", "--qrels", qrels, csv];
        millrace(query).ok().says("0.2869");
        let tune = args!["tune", "--index", index, "--qrels", qrels, "-m", "AP", "--k1", "1.2"];
        let tuned = millrace(tune).args(["--b", "0.75", "--json"]).arg(csv).ok().json_lines();
        let mean = tuned[0]["default"]["mean"].as_f64().unwrap();
        assert!((mean - 0.2869).abs() < 5e-5, "{mean}");
    }
}
