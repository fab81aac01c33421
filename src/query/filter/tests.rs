use super::parse::{FilterSyntax, FilterTest, read};
use super::*;
use proptest::prelude::*;

fn columns() -> Vec<Column> {
    ["year:int", "tags:word[]", "when:date", "the score:float"].map(|of| of.parse().unwrap()).into()
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    let equal = |name: &str, value: &str| {
        FilterSyntax::Compare(name.into(), FilterTest::Equal, vec![value.into()])
    };
    let not = |part| FilterSyntax::Not(Box::new(part));
    let found = read("a = 1 OR not b = \"x \\\" y\" And c=d").unwrap();
    let expected = FilterSyntax::Any(vec![
        equal("a", "1"),
        FilterSyntax::All(vec![not(equal("b", "x \" y")), equal("c", "d")]),
    ]);
    assert_eq!(found, expected);
    let found = read("(a=1 or exists `b c`) and not (d not in (1, '2' ,3))").unwrap();
    let values = ["1", "2", "3"].map(String::from).into();
    let expected = FilterSyntax::All(vec![
        FilterSyntax::Any(vec![equal("a", "1"), FilterSyntax::Exists("b c".into())]),
        not(FilterSyntax::Compare("d".into(), FilterTest::Other, values)),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (filter, why) in [
        ("", "ends where the name of a column is expected"),
        ("year", "ends where =, !=, <, <=, >, >= or in is expected"),
        ("year = ", "ends where a value is expected"),
        ("year = 1 2", "has `2` at byte 10, where `and`, `or` or the end is expected"),
        ("(year = 1", "ends where `)` is expected"),
        ("year in (1", "ends where `,` or `)` is expected"),
        ("tags = 'x", "has no ' to end the one at byte 8"),
        ("tags ! x", "has a `!` at byte 6"),
        ("yaer = 1", "names `yaer`, which is no column of the index: there are year,"),
        ("year = soon", "compares year with `soon`, which is no int"),
        ("when > 2010-13", "compares when with `2010-13`, which is no date"),
        ("`the score` < x", "compares the score with `x`, which is no float"),
    ] {
        let found = check(filter, &columns()).unwrap_err();
        assert!(found.starts_with(why), "{filter}: {found}");
    }
    assert!(check("year = 1", &[]).unwrap_err().ends_with("built without columns"));
    let deep = |n: usize| format!("{}year = 1{}", "(".repeat(n), ")".repeat(n));
    assert!(check(&deep(60), &columns()).is_ok() && check(&deep(70), &columns()).is_err());
    assert!(check(&"x".repeat(70_000), &columns()).unwrap_err().starts_with("has 70000 bytes"));
}

proptest! {
    #[test]
    fn law_any_text_is_read_or_refused(parts in prop::collection::vec(prop_oneof![
        prop::sample::select(vec!["year", "=", "<", "!=", "(", ")", ",", "not", "in", "and", "or", "'",
            "exists", "tags", "1", "\\", "\"", "`", " ", "\u{e9}"]).prop_map(String::from),
        "\\PC{0,3}",
    ], 0..30)) {
        _ = check(&parts.concat(), &columns());
        _ = check(&parts.join(" "), &columns());
    }
}
