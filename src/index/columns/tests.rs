use super::*;
use crate::index::documents::Location;
use crate::index::files::pages::seal;
use crate::index::files::storage::Stop;
use crate::index::format::{FileKind, before_sums};
use crate::index::generations::manifest::RunEntry;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

const NAMES: [&str; 8] =
    ["i:int", "f:float", "d:date", "w", "is:int[]", "fs:float[]", "ds:date[]", "ws:word[]"];

fn columns() -> Vec<Column> {
    NAMES.map(|name| name.parse().unwrap()).into()
}

fn run(documents: usize) -> RunEntry {
    let name = "000000".to_string();
    RunEntry { name, documents: documents as u32, ..RunEntry::default() }
}

/// Values by document and column, as they are written.
type Plain = Vec<Vec<Vec<String>>>;

fn value(kind: ColumnKind) -> BoxedStrategy<String> {
    match kind {
        ColumnKind::Int => prop_oneof![
            (0..5i64).prop_map(|n| n.to_string()),
            (i64::MIN + 1..=i64::MAX).prop_map(|n| n.to_string()),
            (0..70_000i64).prop_map(|n| n.to_string()),
        ]
        .boxed(),
        ColumnKind::Float => prop_oneof![
            (-9..9i32).prop_map(|n| (f64::from(n) / 4.0 + 0.0).to_string()),
            any::<f64>()
                .prop_filter("finite", |n| n.is_finite())
                .prop_map(|n| (n + 0.0).to_string()),
        ]
        .boxed(),
        ColumnKind::Date => (1970..2030u32, 1..13u32, 1..29u32)
            .prop_map(|(y, m, d)| format!("{y}-{m:02}-{d:02}"))
            .boxed(),
        ColumnKind::Word => "[ab\u{e9}]{1,3}".boxed(),
    }
}

fn plain(most: usize) -> impl Strategy<Value = Plain> {
    let of_column = |column: Column| {
        let most = if column.several { 3 } else { 1 };
        prop::collection::vec(value(column.kind), 0..=most)
    };
    let document: Vec<_> = columns().into_iter().map(of_column).collect();
    prop::collection::vec(document, 0..most)
}

fn write(folder: &Path, plain: &Plain, cut: usize) {
    fs::create_dir_all(folder.join("runs")).unwrap();
    let mut parts = ColumnParts::default();
    let cut = cut.min(plain.len());
    // Parts come in any order.
    for (first, documents) in [(cut, &plain[cut..]), (0, &plain[..cut])] {
        let mut part = PieceColumns::new(NAMES.len());
        for document in documents {
            for (number, (column, values)) in columns().iter().zip(document).enumerate() {
                values.iter().for_each(|one| part.push(number, column, &Location::default(), one));
            }
            part.end();
        }
        assert_eq!(part.misfits, 0);
        if !documents.is_empty() {
            parts.put(first as u32, part);
        }
    }
    let path = run(0).path(folder, FileKind::Columns);
    _ = fs::remove_file(path);
    ColumnsWriter::write_all(folder, 0, plain.len() as u32, &columns(), parts).unwrap();
}

fn read(folder: &Path, documents: usize) -> Plain {
    let opened = RunColumns::open(folder, &run(documents), &columns()).unwrap();
    opened.check().unwrap();
    let shown = |docid, column| {
        let values = opened.values(column, docid).unwrap();
        values.iter().map(ToString::to_string).collect()
    };
    let document = |docid| (0..NAMES.len()).map(|column| shown(docid, column)).collect();
    (0..documents as u32).map(document).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn law_what_is_written_is_read(plain in plain(150), cut in 0..150usize) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &plain, cut);
        prop_assert_eq!(&read(folder.path(), plain.len()), &plain);
        let bytes = fs::read(run(0).path(folder.path(), FileKind::Columns)).unwrap();
        write(folder.path(), &plain, 0);
        prop_assert!(bytes == fs::read(run(0).path(folder.path(), FileKind::Columns)).unwrap());
    }

    #[test]
    fn oracle_values_that_pass(plain in plain(150), asked in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &plain, 7);
        let opened = RunColumns::open(folder.path(), &run(plain.len()), &columns()).unwrap();
        for (number, column) in columns().iter().enumerate() {
            let all: Vec<&String> = plain.iter().flat_map(|document| &document[number]).collect();
            let bits = |set: &[u64]| -> Vec<bool> {
                (0..plain.len()).map(|at| set[at / 64] >> (at % 64) & 1 == 1).collect()
            };
            let has: Vec<bool> = plain.iter().map(|document| !document[number].is_empty()).collect();
            prop_assert_eq!(bits(&opened.exists(number).unwrap()), has);
            let Some(&one) = all.get(asked.index(all.len().max(1))) else { continue };
            let order = |value: &str| key_of(column.kind, value).ok_or_else(|| value.to_string());
            type Passes<'a> = Box<dyn Fn(&str) -> bool + 'a>;
            let (set, passes): (_, Passes<'_>) = match order(one) {
                Ok(key) => (
                    KeySet::Keys(vec![key..=u64::MAX]),
                    Box::new(move |value| order(value).unwrap() >= key),
                ),
                Err(word) => (
                    KeySet::Words(vec![[Some((word.clone(), false)), None]]),
                    Box::new(move |value| *value > *word),
                ),
            };
            let expected: Vec<bool> =
                plain.iter().map(|of| of[number].iter().any(|value| passes(value))).collect();
            prop_assert_eq!(bits(&opened.select(number, &set).unwrap()), expected);
            let equal = KeySet::of(column.kind, one).unwrap();
            let expected: Vec<bool> = plain.iter().map(|of| of[number].contains(one)).collect();
            prop_assert_eq!(bits(&opened.select(number, &equal).unwrap()), expected);
        }
    }

    /// In any order, and without some: as if they had been written so.
    #[test]
    fn oracle_carried_columns(plain in plain(60), order in any::<u64>(), gone in 0..4usize) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &plain, 20);
        let mut docids: Vec<u32> = (0..plain.len() as u32).collect();
        docids.retain(|docid| *docid as usize % 4 != gone);
        docids.sort_by_key(|&docid| (u64::from(docid) + 1).wrapping_mul(order | 1));
        let entry = run(plain.len());
        let of_run = || Box::new(docids.iter().copied()) as Box<dyn Iterator<Item = u32>>;
        let source =
            ColumnsSource { generation: folder.path(), run: &entry, docids: Box::new(of_run) };
        let to = tempfile::tempdir().unwrap();
        fs::create_dir(to.path().join("runs")).unwrap();
        let count = docids.len() as u32;
        carry(&[source], &columns(), (to.path(), 0), count, &Stop::default()).unwrap();
        let expected: Plain = docids.iter().map(|&docid| plain[docid as usize].clone()).collect();
        prop_assert_eq!(&read(to.path(), docids.len()), &expected);
        let carried = fs::read(run(0).path(to.path(), FileKind::Columns)).unwrap();
        write(to.path(), &expected, 0);
        prop_assert!(carried == fs::read(run(0).path(to.path(), FileKind::Columns)).unwrap());
    }
}

/// By the checksums of blocks, and by the check where a faulty program has written right ones.
#[test]
fn every_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let document = |at: usize| {
        let mut values = vec![Vec::new(); NAMES.len()];
        let words = ["b", "ab", "c\u{e9}"];
        values[0] = vec![(at * 100).to_string()];
        values[1] = vec!["1.5".to_string(); usize::from(at != 2)];
        values[2] = vec![format!("201{at}-03-04")];
        values[3] = vec![words[at % 3].to_string()];
        values[4] = (0..at).map(|n| (n as i64 - 1).to_string()).collect();
        values[7] = words[..at.min(3)].iter().map(ToString::to_string).collect();
        values
    };
    let plain: Plain = (0..5).map(document).collect();
    write(folder.path(), &plain, 2);
    let path = run(0).path(folder.path(), FileKind::Columns);
    let good = fs::read(&path).unwrap();
    let check = || RunColumns::open(folder.path(), &run(5), &columns())?.check();
    check().unwrap();
    let is_same = |found: Result<(), _>| found.is_ok() && read(folder.path(), 5) == plain;
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if (bit / 8) as u64 >= before_sums(good.len() as u64) {
            continue;
        }
        fs::write(&path, &bytes).unwrap();
        let error = check().expect_err(&format!("bit {bit}")).to_string();
        assert!(error.contains("000000.columns"), "{error}");
        if (60..64).contains(&(bit / 8)) {
            continue;
        }
        seal(&path, &mut bytes);
        fs::write(&path, &bytes).unwrap();
        // Other values may be right ones.
        assert!(!is_same(check()), "bit {bit}");
    }
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        check().unwrap_err();
    }
}

#[test]
fn names_and_kinds_are_read() {
    let shown = |text: &str| text.parse::<Column>().map(|column| column.to_string());
    assert_eq!(shown("year:int").unwrap(), "year:int");
    assert_eq!(shown("a:b:word[]").unwrap(), "a:b:word[]");
    assert_eq!(shown("tag").unwrap(), "tag:word");
    assert!(shown("year:number").unwrap_err().contains("int, float, date, word"));
    assert!(shown(":int").is_err() && shown("").is_err());
    let both = ["a:int", "a:word"].map(|text| text.parse().unwrap());
    assert!(Column::accept(&both).is_err() && Column::accept(&both[..1]).is_ok());
}

#[test]
fn dates_are_in_utc_and_may_be_short() {
    let same = [
        ("2010", "2010-01-01"),
        ("2010-05", "2010-05-01"),
        ("2010-05-03T00:00:00Z", "2010-05-03"),
        ("2010-05-03T02:00:00+02:00", "2010-05-03T00:00"),
        ("2010-05-03 02:00:00+02:00", "2010-05-03T00:00:00"),
    ];
    for (a, b) in same {
        let [a, b] = [a, b].map(|text| key_of(ColumnKind::Date, text).unwrap());
        assert_eq!(a, b);
    }
    for text in ["", "10", "2010-13", "2010-02-30", "now", "20100", "2010/05/03"] {
        assert_eq!(key_of(ColumnKind::Date, text), None, "{text}");
    }
    let shown = |text| {
        ColumnValue::of(ColumnKind::Date, key_of(ColumnKind::Date, text).unwrap()).to_string()
    };
    assert_eq!(shown("1969-12-31T23:59:59.5Z"), "1969-12-31T23:59:59.5Z");
    assert_eq!(shown("0000"), "0000-01-01");
}
