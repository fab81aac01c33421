//! Are the ranks that a rebuild computes those of its documents and its links?

use crate::rebuild::Place;
use std::collections::BTreeMap;

/// Names and ranks, and the first line.
fn ranks(place: &Place) -> (String, BTreeMap<String, f64>) {
    let text = std::fs::read_to_string(place.index().join("rebuild/ranks.tsv")).unwrap();
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
    for (name, percent) in
        [("A", 3.3), ("B", 38.4), ("C", 34.3), ("D", 3.9), ("E", 8.1), ("5", 1.6)]
    {
        assert!((found[name] * 100.0 - percent).abs() <= 0.05, "{name}: {}", found[name]);
    }
    // Nothing has changed; then only the links have; then a document goes that others link to.
    assert!(place.once()["ranks"].is_null());
    write(&place, NAMES, &format!("{LINKS} 5A"));
    let record = place.once();
    assert_eq!((&record["outcome"], &record["ranks"]["links"]), (&"unchanged".into(), &18.into()));
    let (_, changed) = ranks(&place);
    assert!(changed["A"] > found["A"] && changed["E"] < found["E"]);
    write(&place, "ABCDF12345", &format!("{LINKS} 5A"));
    let record = place.once();
    let counts = &record["ranks"];
    assert_eq!((&counts["documents"], &counts["links"]), (&10.into(), &9.into()));
    // Those with E at one end.
    assert_eq!(counts["passed_over"], 9);
    let (head, warm) = ranks(&place);
    assert!((warm.values().sum::<f64>() - 1.0).abs() < 1e-9);
    // What the file held before makes no difference but to the rounds; neither does the method.
    for change in ["", "method = \"differential\"\n"] {
        let job = std::fs::read_to_string(&place.job).unwrap();
        std::fs::write(&place.job, job + change).unwrap();
        std::fs::write(place.index().join("rebuild/ranks.tsv"), "A\tx\t-1\nnonsense").unwrap();
        assert_eq!(place.once()["ranks"]["documents"], 10);
        let (other, cold) = ranks(&place);
        assert_eq!(other == head, change.is_empty());
        assert!(distance(&cold, &warm) <= 2e-8, "{change}: {}", distance(&cold, &warm));
    }
}
