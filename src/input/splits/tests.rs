use super::*;

fn names(plan: &InputPlan) -> Vec<String> {
    plan.inputs.iter().map(|input| input.name).collect()
}

#[test]
fn records_in_files_named_as_text() {
    use Format::{Text, Trec, Warc};
    let dir = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("a.txt", "<DOC>\n<DOCNO> a </DOCNO>\n<TEXT>mill</TEXT>\n</DOC>\n", Trec),
        ("b.text", "WARC/1.0\r\nWARC-Type: warcinfo\r\n", Warc),
        ("c.txt", "{\"a note\"}", Text),
        ("d.txt", "A text about <DOC> and <DOCNO>", Text),
        ("e.txt", "", Text),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let plan = InputPlan::new(&[path], None).unwrap();
        assert_eq!(plan.inputs.format(0), expected, "{name}");
    }
    let plan = InputPlan::new(&[dir.path().to_path_buf()], None).unwrap();
    let formats: Vec<Format> = plan.inputs.iter().map(|input| input.format).collect();
    assert_eq!(formats, [Trec, Warc, Text, Text, Text]);
}

#[test]
fn arguments_in_order_folders_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("sub/deep")).unwrap();
    for name in ["b.jsonl", "a.md", "sub/deep/z.txt.gz", "sub/c.tsv", "x.bin", ".hidden.txt"] {
        std::fs::write(at(name), "{}").unwrap();
    }
    let plan = InputPlan::new(&[at("sub/c.tsv"), dir.path().into()], None).unwrap();
    assert_eq!(names(&plan), ["c.tsv", "a.md", "b.jsonl", "sub/c.tsv", "sub/deep/z.txt"]);
    assert_eq!(plan.ignored, 1);
    assert_eq!(plan.splits.len(), 5);
    let all = InputPlan::new(&[dir.path().into()], Some(Format::Text)).unwrap();
    assert_eq!(names(&all), ["a.md", "b.jsonl", "sub/c.tsv", "sub/deep/z.txt", "x.bin"]);
    assert_eq!(all.splits, [Split { inputs: 0..5, format: Format::Text, part: None }]);
}

#[test]
fn small_text_files_share_a_split() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a", 10), ("b", PIECE_BYTES - 10), ("c", 1), ("d", 2)] {
        std::fs::write(dir.path().join(format!("{name}.txt")), vec![b'x'; bytes]).unwrap();
    }
    let plan = InputPlan::new(&[dir.path().into()], None).unwrap();
    let inputs: Vec<_> = plan.splits.iter().map(|s| s.inputs.clone()).collect();
    assert_eq!(inputs, [0..2, 2..4]);
}

#[test]
fn shares_are_neighbours_and_cover_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [10, 3000, 0, 700, 700, 1, 90, 2000];
    for (number, bytes) in sizes.iter().enumerate() {
        std::fs::write(dir.path().join(format!("{number}.jsonl")), vec![b' '; *bytes]).unwrap();
    }
    let plan = || InputPlan::new(&[dir.path().into()], None).unwrap();
    for processes in [1, 2, 3, 20] {
        let shares: Vec<_> = (0..processes).map(|p| plan().share(p, processes).unwrap()).collect();
        let found: Vec<_> = shares.iter().flat_map(names).collect();
        assert_eq!(found, names(&plan()));
        for share in &shares {
            let inputs = share.splits.iter().flat_map(|split| split.inputs.clone());
            assert!(inputs.eq(0..share.inputs.len() as u32));
            let most = 6501 / processes as u64 + 3000;
            assert!(share.bytes() <= most, "{processes}: {}", share.bytes());
        }
    }
    assert_eq!(plan().share(0, 2).unwrap().bytes(), 3010);
    assert_eq!(plan().digest(), plan().digest());
    std::fs::write(dir.path().join("5.jsonl"), "  ").unwrap();
    assert_ne!(plan().digest(), plan().share(0, 2).unwrap().digest());
}

#[test]
fn large_files_are_cut_where_workers_could_read_them_together() {
    let dir = tempfile::tempdir().unwrap();
    let record = |n: usize| format!("{{\"contents\": \"{}\"}}\n", "x".repeat(40_000 + n % 7));
    let records: String = (0..300).map(record).collect();
    std::fs::write(dir.path().join("a.jsonl"), &records).unwrap();
    std::fs::write(dir.path().join("b.csv"), format!("id,text\n{records}")).unwrap();
    let plan = || InputPlan::new(&[dir.path().into()], None).unwrap();
    let shares = |n| (0..n).map(|p| plan().share(p, n).unwrap()).collect::<Vec<_>>();
    let parts = |n| {
        let of = |plan: &InputPlan| {
            let part = |split: &Split| (plan.first_input + split.inputs.start, split.part.clone());
            plan.splits.iter().map(part).collect::<Vec<_>>()
        };
        shares(n).iter().flat_map(of).collect::<Vec<_>>()
    };
    const MIB: u64 = 1 << 20;
    assert_eq!(parts(2), [(0, None), (1, None)]);
    let of_three = [(0, Some(0..8 * MIB)), (0, Some(8 * MIB..u64::MAX)), (1, None)];
    assert_eq!(parts(3), of_three);
    // With more processes than parts some have nothing.
    assert_eq!(parts(40).len(), 7);
    for n in [1, 2, 3, 4, 7, 40] {
        let shares = shares(n);
        let bytes: u64 = shares.iter().map(InputPlan::bytes).sum();
        assert_eq!(bytes, plan().bytes());
        let mut next = 0;
        for share in &shares {
            let Some(part) = share.splits.first().and_then(|split| split.part.clone()) else {
                assert!(!share.begins_within());
                continue;
            };
            assert_eq!(part.start, next);
            next = part.end;
            assert_eq!(share.begins_within(), part.start > 0);
            let lines = share.lines_before().unwrap();
            let before = &records.as_bytes()[..part.start.saturating_sub(1) as usize];
            let more = u64::from(part.start > 0);
            assert_eq!(lines, bytecount(before) + more, "{part:?}");
        }
    }
}

fn bytecount(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none.jsonl");
    let error = InputPlan::new(std::slice::from_ref(&missing), None).err().unwrap();
    assert!(error.to_string().contains("none.jsonl"), "{error}");
    let error = InputPlan::new(&[dir.path().into()], None).err().unwrap();
    assert!(matches!(error, InputError::EmptyFolder { .. }), "{error}");
    std::fs::write(dir.path().join("a.log"), "x").unwrap();
    let error = InputPlan::new(&[dir.path().into()], None).err().unwrap();
    assert!(matches!(&error, InputError::NothingInFolder { found, .. } if found == "1 .log"));
    let error = InputPlan::new(&[STDIN.into(), STDIN.into()], Some(Format::Tsv)).err().unwrap();
    assert!(matches!(error, InputError::StdinTwice), "{error}");
}

#[test]
fn a_file_that_grows_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    std::fs::write(&path, "one").unwrap();
    let plan = InputPlan::new(std::slice::from_ref(&path), None).unwrap();
    let mut opened = plan.open(0).unwrap().unwrap();
    let mut bytes = Vec::new();
    opened.read = opened.reader.read_to_end(&mut bytes).unwrap() as u64;
    assert_eq!(bytes, b"one");
    opened.check_unchanged().unwrap();
    std::fs::write(&path, "one and two").unwrap();
    assert!(opened.check_unchanged().is_err());
}
