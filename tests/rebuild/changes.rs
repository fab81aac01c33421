//! The scores of an index that was rebuilt again and again are those of one that was built from
//! scratch.

use super::Place;
use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The sources as the test knows them: files, of documents by name.
#[derive(Default)]
struct Sources {
    files: BTreeMap<String, Vec<(String, String)>>,
    made: usize,
}

impl Sources {
    fn text(random: &mut Random) -> String {
        let words = ["mill", "race", "river", "wheel", "stone", "water", "flour"];
        let mut text = String::from("all");
        for _ in 0..random.below(30) {
            _ = write!(text, " {}", random.pick(&words));
        }
        text
    }

    /// Changes something, in one of the ways that sources change.
    fn change(&mut self, random: &mut Random) {
        let names: Vec<String> = self.files.keys().cloned().collect();
        let file = names[random.below(names.len())].clone();
        let documents = self.files.get_mut(&file).unwrap();
        let at = random.below(documents.len() + 1);
        match random.below(7) {
            // New documents, in the middle of a file or in one of their own.
            0 | 1 => {
                for n in 0..1 + random.below(6) {
                    self.made += 1;
                    documents.insert(at, (format!("d{}-{n}", self.made), Self::text(random)));
                }
            }
            2 => {
                self.made += 1;
                let name = format!("new{}", self.made);
                let document = |n| (format!("{name}-{n}"), Self::text(random));
                let documents = (0..5).map(document).collect();
                self.files.insert(format!("{name}.jsonl"), documents);
            }
            // All documents of one name, so that the name determines the text.
            3 if at < documents.len() => {
                let name = documents[at].0.clone();
                let text = Self::text(random);
                let all = self.files.values_mut().flatten();
                all.filter(|document| document.0 == name).for_each(|one| one.1 = text.clone());
            }
            4 if at < documents.len() => _ = documents.remove(at),
            // Another name, or the same document twice.
            5 if at < documents.len() => {
                self.made += 1;
                match random.below(2) {
                    0 => documents[at].0 = format!("renamed{}", self.made),
                    _ => documents.push(documents[at].clone()),
                }
            }
            // Another file, or none.
            _ if names.len() > 2 => {
                let moved = self.files.remove(&file).unwrap();
                if random.below(3) > 0 {
                    self.made += 1;
                    self.files.insert(format!("moved{}.jsonl", self.made), moved);
                }
            }
            _ => {}
        }
    }

    fn lines<'a>(documents: impl IntoIterator<Item = &'a (String, String)>) -> String {
        let line = |(name, text): &(String, String)| {
            format!("{{\"id\": \"{name}\", \"contents\": \"{text}\"}}\n")
        };
        documents.into_iter().map(line).collect()
    }

    fn write(&self, place: &Place) {
        let folder = place.scratch.path("docs");
        _ = std::fs::remove_dir_all(&folder);
        for (name, documents) in &self.files {
            place.scratch.write(format!("docs/{name}"), Self::lines(documents));
        }
    }

    /// All documents, sorted.
    fn all(&self) -> Vec<(String, String)> {
        let mut all: Vec<_> = self.files.values().flatten().cloned().collect();
        all.sort();
        all
    }
}

/// Docids and names, or names and scores.
type Pairs<T> = Vec<(T, String)>;

/// Names and scores of the answers to some queries, asked of several algorithms, and the names of
/// all documents in the order of their docids.
fn answers(index: &std::path::Path) -> (Pairs<String>, Pairs<u64>) {
    let texts = ["all", "mill", "river wheel stone", "mill race water flour", "none"];
    let ways =
        [("or", 5000, "exhaustive"), ("or", 7, "bmw"), ("or", 7, "maxscore"), ("and", 9, "auto")];
    let mut queries = String::new();
    for (mode, k, algorithm) in ways {
        for text in texts {
            let query = serde_json::json!({
                "qid": format!("{text} {mode} {k} {algorithm}"), "query": text, "k": k,
                "mode": mode, "algorithm": algorithm,
            });
            _ = writeln!(queries, "{query}");
        }
    }
    let mut scores = Vec::new();
    let mut docids = Vec::new();
    let asked = args!["query", "--index", index, "--format", "jsonl", "-w", "2"];
    for line in millrace(asked).stdin(&*queries).ok().json_lines() {
        for hit in line["hits"].as_array().unwrap() {
            let name = hit["name"].as_str().unwrap().to_string();
            scores.push((format!("{}: {name}", line["qid"]), hit["score"].to_string()));
            if line["qid"] == "all or 5000 exhaustive" {
                docids.push((hit["docid"].as_u64().unwrap(), name));
            }
        }
    }
    docids.sort();
    (scores, docids)
}

#[test]
fn law_scores_are_those_of_an_index_from_scratch() {
    compare(1..=2);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_scores_of_rebuilds() {
    compare(3..=40);
}

/// Changes sources at random, rebuilds, and compares with an index of the same documents, for each
/// seed.
fn compare(seeds: std::ops::RangeInclusive<u64>) {
    for seed in seeds {
        let more = "[guard]\nmin_documents = 0\nmin_tokens = \"0\"\nallow_empty = true\n[merge]\nruns = 3\ndeleted = \"40%\"\n";
        let place = Place::new(more);
        let mut random = Random::new(seed);
        let mut sources = Sources::default();
        for file in ["a.jsonl", "b.jsonl"] {
            let document = |n| (format!("{file}{n}"), Sources::text(&mut random));
            sources.files.insert(file.to_string(), (0..20).map(document).collect());
        }
        let mut parts = 0;
        for step in 0..7 {
            for _ in 0..random.below(4) * usize::from(step > 0) {
                sources.change(&mut random);
            }
            sources.write(&place);
            let record = place.once();
            parts += u64::from(record["incremental"] == true);
            let what = format!("seed {seed}, step {step}: {record}");
            let (scores, docids) = answers(&place.index());
            // The same documents, each of which has the word that all have.
            let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (name, text) in sources.all() {
                texts.entry(name).or_default().push(text);
            }
            let ordered: Vec<_> = docids
                .iter()
                .map(|(_, name)| (name.clone(), texts.get_mut(name).expect(&what).remove(0)))
                .collect();
            assert!(texts.values().all(Vec::is_empty), "{what}");
            let scratch = place.scratch.path("scratch.jsonl");
            std::fs::write(&scratch, Sources::lines(&ordered)).unwrap();
            let other = place.scratch.path("scratch");
            millrace(args!["build", "--index", &other, "--memory", "64M", "-w", "2", &scratch])
                .ok();
            assert_eq!(scores, answers(&other).0, "{what}");
            millrace(args!["check", "--index", place.index()]).ok();
            let shown = docids.len() / 2;
            let (docid, name) = &docids[shown];
            let shown =
                millrace(args!["show", "--index", place.index(), "--docid", docid.to_string()])
                    .ok();
            let text = &ordered[docids.len() / 2].1;
            assert!(
                shown.text().contains(name) && shown.text().contains(text),
                "{what}\n{shown:?}"
            );
        }
        assert!(parts > 0, "seed {seed}: everything was always built");
    }
}

#[test]
fn only_what_is_new_is_indexed() {
    let place = Place::new("");
    place.once();
    let runs = |place: &Place| -> Vec<Value> {
        let text =
            std::fs::read_to_string(generation(&place.index()).join("manifest.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["runs"].as_array().unwrap().clone()
    };
    // One document changes, one goes and one comes, in the middle of a file.
    let path = place.scratch.path("docs/a.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[3] = "{\"id\": \"d3\", \"contents\": \"another mill\"}";
    lines.remove(7);
    lines.insert(5, "{\"id\": \"x\", \"contents\": \"a new mill\"}");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let record = place.once();
    let documents = &record["documents"];
    assert_eq!(record["incremental"], true);
    assert_eq!((&documents["added"], &documents["changed"]), (&1.into(), &1.into()));
    assert_eq!((&documents["removed"], &documents["live"]), (&1.into(), &40.into()));
    let runs = runs(&place);
    let counts: Vec<_> = runs.iter().map(|run| run["documents"].as_u64().unwrap()).collect();
    assert_eq!(counts, [40, 2]);
    assert_eq!(runs[0]["deleted"]["documents"], 2);
    // A file that is written again with the same documents changes places alone.
    std::fs::write(&path, format!("\n{}\n", lines.join("\n\n"))).unwrap();
    let record = place.once();
    assert_eq!(
        (&record["outcome"], &record["documents"]["added"]),
        (&"published".into(), &0.into())
    );
    let shown = millrace(args!["show", "--index", place.index(), "--docid", "20"]).ok();
    assert!(shown.text().contains("mill 20 race 6"), "{shown:?}");
    assert_eq!(place.once()["outcome"], "unchanged");
    // The documents of the last file move to the first: no document of that run lies in the last
    // any more.
    let last = place.scratch.path("docs/b.jsonl");
    let moved = std::fs::read_to_string(&last).unwrap();
    std::fs::write(&path, format!("{}\n{moved}", lines.join("\n"))).unwrap();
    std::fs::write(&last, "{\"id\": \"y\", \"contents\": \"a mill by itself\"}\n").unwrap();
    let record = place.once();
    assert_eq!(
        (&record["documents"]["added"], &record["documents"]["live"]),
        (&1.into(), &41.into())
    );
    millrace(args!["check", "--index", place.index()]).ok();
}

#[test]
fn an_input_is_read_anew_if_its_fields_change() {
    let place = Place::new("");
    place.scratch.write(
        "docs/b.jsonl",
        "{\"id\":\"x1\",\"key\":\"k1\",\"text\":\"mill\",\"note\":\"weir\"}\n",
    );
    let keys = std::fs::read_to_string(&place.job).unwrap();
    let asked = keys.replace(
        "[\"docs/*\"]\n",
        "[\"docs/a*\"]\n[[input]]\npaths = [\"docs/b*\"]\ntext-field = [\"note\"]\nid-field = \"key\"\n",
    );
    let has = |name: &str| {
        millrace(args!["show", "--index", place.index(), name]).run().status == Some(0)
    };
    place.once();
    assert!(has("x1") && !has("k1"));
    for (job, name, text) in [(&asked, "k1", "weir"), (&keys, "x1", "mill")] {
        std::fs::write(&place.job, job).unwrap();
        let last = place.once();
        assert_eq!(
            (&last["outcome"], &last["inputs"]["changed"]),
            (&"published".into(), &1.into())
        );
        assert!(has(name) && has("x1") != has("k1"));
        let asked = place.scratch.write("q", text);
        let query =
            args!["query", "--index", place.index(), "--format", "jsonl", "-k", "50", asked];
        let hits = millrace(query).ok().json_lines()[0]["hits"].clone();
        assert!(hits.as_array().unwrap().iter().any(|hit| hit["name"] == name), "{hits}");
        assert_eq!(place.once()["outcome"], "unchanged");
    }
    std::fs::write(&place.job, keys.replace("[\"docs/*\"]\n", "[\"docs/*\"]\ntext-field = 7\n"))
        .unwrap();
    assert_eq!(place.run("--once").status, Some(2));
}

/// Its name is kept as bytes: nothing is read again while it is as it was, and its texts are found.
#[test]
fn a_source_whose_name_is_not_utf8_is_one_like_others() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("");
    // Patterns are text; a folder has any names.
    let job = std::fs::read_to_string(&place.job).unwrap();
    std::fs::write(&place.job, job.replace("docs/*", "docs")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.jsonl");
    let file = place.scratch.path("docs").join(name);
    std::fs::write(&file, "{\"id\": \"odd\", \"contents\": \"a lighthouse by the mill\"}\n")
        .unwrap();
    assert_eq!(place.once()["documents"]["live"], 41);
    assert_eq!(place.once()["outcome"], "unchanged");
    let asked = args!["query", "--index", place.index(), "--query", "lighthouse", "--snippets"];
    let hits = millrace(asked).args(["--format", "jsonl"]).ok().json_lines();
    assert_eq!(hits[0]["hits"][0]["snippet"], "a lighthouse by the mill");
    // Another one, whose name looks alike, is another source.
    let twin = std::ffi::OsStr::from_bytes(b"caf\xe8.jsonl");
    std::fs::copy(&file, place.scratch.path("docs").join(twin)).unwrap();
    let last = place.once();
    assert_eq!((&last["inputs"]["added"], &last["documents"]["live"]), (&1.into(), &42.into()));
    std::fs::write(&file, "{\"id\": \"odd\", \"contents\": \"a harbour\"}\n").unwrap();
    let last = place.once();
    assert_eq!((&last["inputs"]["changed"], &last["inputs"]["added"]), (&1.into(), &0.into()));
    assert_eq!(last["documents"]["changed"], 1);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(place.once()["documents"]["live"], 41);
    millrace(args!["check", "--quiet", "--index", place.index()]).ok();
}
