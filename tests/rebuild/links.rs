//! The ranks that a rebuild computes are those of its documents and its links.

use super::Place;
use crate::support::*;
use millrace::Generation;
use millrace::inside::index::ranks_of;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names and ranks, and the first line.
fn ranks(place: &Place) -> (String, BTreeMap<String, f64>) {
    ranks_in(&place.index())
}

fn ranks_in(index: &Path) -> (String, BTreeMap<String, f64>) {
    let text = std::fs::read_to_string(index.join("rebuild/ranks.tsv")).unwrap();
    let mut lines = text.lines();
    let head = lines.next().unwrap().to_string();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 3, "{line}");
        (fields[0].to_string(), fields[1].parse().unwrap())
    };
    (head, lines.map(line).collect())
}

fn write(place: &Place, names: &str, links: &str) {
    let document = |name| format!("{{\"id\": \"{name}\", \"contents\": \"mill\"}}\n");
    place.scratch.write("docs/a.jsonl", names.chars().map(document).collect::<String>());
    let link = |link: &str| format!("{}\t{}\n", &link[..1], &link[1..]);
    place.scratch.write("links.tsv", links.split(' ').map(link).collect::<String>());
}

fn distance(a: &BTreeMap<String, f64>, b: &BTreeMap<String, f64>) -> f64 {
    assert!(a.keys().eq(b.keys()));
    a.iter().map(|(name, rank)| (rank - b[name]).abs()).sum()
}

/// The PageRanks that queries use, by names of documents.
fn static_ranks(place: &Place) -> BTreeMap<String, f64> {
    let generation = Generation::open(&place.index()).unwrap();
    let all = ranks_of(generation.path(), generation.manifest()).unwrap().expect("ranks");
    let name = |docid| String::from_utf8(generation.documents().name(docid).unwrap().to_vec());
    let deleted: BTreeSet<u32> = generation.deleted().collect();
    let docids = (0..all.len() as u32).filter(|docid| !deleted.contains(docid));
    docids.map(|docid| (name(docid).unwrap(), f64::from(all[docid as usize]))).collect()
}

/// The published example (see `dataflow::pagerank`), of eleven documents.
const NAMES: &str = "ABCDEF12345";
const LINKS: &str = "BC CB DA DB EB ED EF FB FE 1B 1E 2B 2E 3B 3E 4E 5E";

#[test]
fn ranks_follow_documents_and_links() {
    let links = "[guard]\nmin_documents = 0\n[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\ntolerance = 1e-8\n";
    // The file has to be there when the job file is read.
    let place = Place::new(links);
    std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
    write(&place, NAMES, LINKS);
    let record = place.once();
    let counts = &record["ranks"];
    assert_eq!((&counts["documents"], &counts["links"]), (&11.into(), &17.into()));
    assert_eq!(counts["passed_over"], 0);
    let (_, found) = ranks(&place);
    assert!(distance(&static_ranks(&place), &found) <= 1e-6);
    for (name, percent) in
        [("A", 3.3), ("B", 38.4), ("C", 34.3), ("D", 3.9), ("E", 8.1), ("5", 1.6)]
    {
        assert!((found[name] * 100.0 - percent).abs() <= 0.05, "{name}: {}", found[name]);
    }
    // Nothing has changed; then only the links have; then a document goes that others link to.
    assert!(place.once()["ranks"].is_null());
    write(&place, NAMES, &format!("{LINKS} 5A"));
    let record = place.once();
    assert_eq!((&record["outcome"], &record["ranks"]["links"]), (&"published".into(), &18.into()));
    let (_, changed) = ranks(&place);
    assert!(changed["A"] > found["A"] && changed["E"] < found["E"]);
    assert!(distance(&static_ranks(&place), &changed) <= 1e-6);
    write(&place, "ABCDF12345", &format!("{LINKS} 5A"));
    let record = place.once();
    let counts = &record["ranks"];
    assert_eq!((&counts["documents"], &counts["links"]), (&10.into(), &9.into()));
    // Those with E at one end.
    assert_eq!(counts["passed_over"], 9);
    let (head, warm) = ranks(&place);
    assert!((warm.values().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(distance(&static_ranks(&place), &warm) <= 1e-6);
    let query =
        ["query", "--quiet", "--score", "wang", "--alpha", "1", "-k", "1", "--format", "tsv"];
    let best = millrace(query).arg("--index").arg(place.index()).stdin("mill\n").ok();
    assert!(best.text().contains("\tB\t"), "{best:?}");
    // What the file held before makes no difference but to the rounds.
    std::fs::write(place.index().join("rebuild/ranks.tsv"), "A\tx\t-1\nnonsense").unwrap();
    assert_eq!(place.once()["ranks"]["documents"], 10);
    let (other, cold) = ranks(&place);
    // All but the generation, which is published again with its ranks.
    let of = |head: &str| head.split_once(", ").unwrap().1.to_string();
    assert_eq!(of(&other), of(&head));
    assert!(distance(&cold, &warm) <= 2e-8, "{}", distance(&cold, &warm));
}

/// A response of a web archive.
fn record(url: &str, page: &str) -> String {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
    let length = http.len();
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {length}\r\n\r\n{http}\r\n\r\n"
    )
}

/// Anchors of pages, in files and in a web archive, are links: those of pages that have changed are
/// looked for again, and the ranks are those of a file with the same links.
#[test]
fn anchors_of_pages_are_links() {
    let keys = "[guard]\nmin_documents = 0\n[pagerank]\ntolerance = 1e-8\n[links]\n";
    let place = Place::new(&format!("{keys}from = \"html\"\n"));
    for name in ["a.jsonl", "b.jsonl"] {
        std::fs::remove_file(place.scratch.path(format!("docs/{name}"))).unwrap();
    }
    let [x, y] = ["http://site.org/x", "http://site.org/dir/y"];
    place.scratch.write(
        "docs/a.html",
        "<a href=b.html>b</a> <a href='b.html#more'>b</a> <a href=none>?</a>",
    );
    place
        .scratch
        .write("docs/b.html", "<title><a href=c.html></title><a href='http://SITE.org/./x'>x</a>");
    let archive = record(x, "<a href='dir/y'>")
        + &record(y, "<a href='../x?'> <a href='https://site.org:443/x#top'>");
    place.scratch.write("docs/site.warc", archive);
    // The ranks of documents by a file with the same links.
    let by_file = |links: &[(&str, &str)]| {
        let line = |(from, to): &(&str, &str)| format!("{from}\t{to}\n");
        let file = place.scratch.write("links.tsv", links.iter().map(line).collect::<String>());
        let text = std::fs::read_to_string(&place.job).unwrap();
        let other = text.replace("index = \"idx\"", "index = \"other\"");
        let other = other
            .replace("from = \"html\"", &format!("from = \"file\"\nfile = \"{}\"", file.display()));
        let job = place.scratch.write("other.toml", other);
        millrace(["rebuild", "--once", "--quiet"]).arg(job).ok();
        ranks_in(&place.scratch.path("other")).1
    };
    let record = place.once();
    assert_eq!(
        (&record["ranks"]["links"], &record["ranks"]["passed_over"]),
        (&4.into(), &1.into())
    );
    let expected = by_file(&[("a.html", "b.html"), ("b.html", x), (x, y), (y, x)]);
    assert_eq!(expected.len(), 4);
    assert!(distance(&ranks(&place).1, &expected) <= 2e-8);
    assert!(place.once()["ranks"].is_null());
    // One page changes, one comes; what is known of the others is damaged the second time.
    for round in 0..2 {
        let target = ["c.html", "a.html"][round];
        place
            .scratch
            .write("docs/c.html", format!("<base href='sub/'><a href='../{target}'>{round}</a>"));
        place.scratch.write("docs/a.html", format!("{round}<a href=c.html>c</a>"));
        if round == 1 {
            let path = place.index().join("rebuild/links");
            let mut bytes = std::fs::read(&path).unwrap();
            let last = bytes.len() - 20;
            bytes[last] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
        let links = [("a.html", "c.html"), ("c.html", target), ("b.html", x), (x, y), (y, x)];
        let record = place.once();
        // A page that leads to itself says nothing.
        assert_eq!(record["ranks"]["links"], [4, 5][round]);
        assert!(distance(&ranks(&place).1, &by_file(&links)) <= 2e-8, "{round}");
    }
}

/// Ranks that came with `merge --pagerank` stay with the names that have them, through deletions
/// and merges.
#[test]
fn given_ranks_survive_a_rebuild_and_its_merge() {
    let place = Place::new("[guard]\nmin_documents = 0\n[merge]\nruns = 2\n");
    std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
    write(&place, "ABC", "AB");
    place.once();
    let given = place.scratch.write("given.tsv", "A\t0.5\nB\t0.25\nC\t0.125\n");
    let merge = millrace(["merge", "--quiet", "--pagerank"]).arg(given);
    merge.arg("--index").arg(place.index()).ok();
    // B comes again with other words, C goes, and D has no rank.
    let document = |name, words| format!("{{\"id\": \"{name}\", \"contents\": \"{words}\"}}\n");
    for (round, more) in [("one", "D"), ("two", "E"), ("three", "F")] {
        let words = [("A", "mill"), ("B", round), (more, "race")];
        let text: String = words.map(|(name, words)| document(name, words)).concat();
        place.scratch.write("docs/a.jsonl", text);
        let said = millrace(["rebuild", "--once"]).arg(&place.job).ok().stderr;
        assert!(said.contains("1 new documents have PageRank 0"), "{said}");
        let expected = [("A", 0.5), ("B", 0.25), (more, 0.0)];
        let expected = BTreeMap::from(expected.map(|(name, rank)| (name.to_string(), rank)));
        assert_eq!(static_ranks(&place), expected, "{round}");
    }
    assert!(Generation::open(&place.index()).unwrap().runs().len() <= 2);
}

/// Links and stop words of a job file are read compressed, and links in UTF-16 too.
#[test]
fn lists_of_job_files_are_unpacked_and_decoded() {
    let keys = "stopwords = \"words.txt\"\n[guard]\nmin_documents = 0\n[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\n";
    let rebuilt = |links: &dyn Fn(&str) -> Vec<u8>, words: &[u8]| {
        let place = Place::new(keys);
        std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
        write(&place, NAMES, LINKS);
        let text = std::fs::read_to_string(place.scratch.path("links.tsv")).unwrap();
        place.scratch.write("links.tsv", links(&text));
        place.scratch.write("words.txt", words);
        let record = place.once();
        assert_eq!(
            (&record["ranks"]["links"], &record["ranks"]["passed_over"]),
            (&17.into(), &0.into())
        );
        let show = args!["show", "--index", place.index(), "--analyze", "mill weir"];
        assert_eq!(millrace(show).ok().text().matches("(stop word)").count(), 1);
        static_ranks(&place)
    };
    let plain = rebuilt(&|links| links.into(), b"weir\n");
    for (at, (name, words)) in packed("weir\n").into_iter().enumerate() {
        assert_eq!(rebuilt(&|links| packed(links)[at].1.clone(), &words), plain, "{name}");
    }
    let wide = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    assert_eq!(rebuilt(&wide, &wide("weir\n")), plain);
}
