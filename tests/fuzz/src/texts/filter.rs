//! Any text is a filter, or is refused with a reason. This is a part of the target for lines of
//! queries.

use millrace::index::columns::Column;
use millrace::query::filter::check;

/// What is asked of an input.
pub(super) fn filter(data: &[u8]) {
    let columns = ["year:int", "tags:word[]", "a b:float", "day:date"];
    let columns: Vec<Column> = columns.map(|column| column.parse().expect("it is one")).into();
    let text = String::from_utf8_lossy(data);
    for columns in [&columns[..], &[]] {
        if let Err(why) = check(&text, columns) {
            assert!(!why.is_empty());
        }
    }
}
