//! The ends of elements whose content is no markup (`script`, `style`, `title`, ...): at the first
//! end tag of the same name, but in a script not within `<!-- <script> ... </script> -->` (the
//! escaped states of the HTML standard, sections 13.2.5.15 to 13.2.5.31).

use super::tags::is_space;
use memchr::{memchr, memchr2};

/// The start of the first end tag `</name` from `at` on, or the page's end.
pub(super) fn end_tag(page: &[u8], mut at: usize, name: &[u8]) -> usize {
    while let Some(n) = memchr(b'<', &page[at..]) {
        at += n;
        if is_end_tag(page, at, name) {
            return at;
        }
        at += 1;
    }
    page.len()
}

fn is_end_tag(page: &[u8], at: usize, name: &[u8]) -> bool {
    page.get(at + 1) == Some(&b'/') && is_name(page, at + 2, name)
}

fn is_name(page: &[u8], at: usize, name: &[u8]) -> bool {
    let Some((found, after)) = page[at..].split_at_checked(name.len()) else { return false };
    found.eq_ignore_ascii_case(name)
        && after.first().is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
}

#[derive(Clone, Copy, PartialEq)]
enum Script {
    Plain,
    Escaped,
    /// After `<script` after `<!--`.
    DoubleEscaped,
}

const SCRIPT: &[u8] = b"script";

/// The start of the end tag of a script whose content begins at `at`, or the page's end.
pub(super) fn script_end(page: &[u8], mut at: usize) -> usize {
    let mut state = Script::Plain;
    loop {
        let rest = &page[at..];
        let next = match state {
            Script::Plain => memchr(b'<', rest),
            _ => memchr2(b'<', b'-', rest),
        };
        let Some(next) = next else { return page.len() };
        at += next;
        if page[at] == b'-' {
            let dashes = page[at..].iter().take_while(|byte| **byte == b'-').count();
            at += dashes;
            if dashes >= 2 && page.get(at) == Some(&b'>') {
                state = Script::Plain;
            }
            continue;
        }
        let ends = is_end_tag(page, at, SCRIPT);
        match state {
            Script::Plain | Script::Escaped if ends => return at,
            // Its dashes may belong to a `-->` at once.
            Script::Plain if page[at..].starts_with(b"<!--") => {
                state = Script::Escaped;
                at += 2;
            }
            Script::Escaped if is_name(page, at + 1, SCRIPT) => {
                state = Script::DoubleEscaped;
                at += 1;
            }
            Script::DoubleEscaped if ends => {
                state = Script::Escaped;
                at += 1;
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_text_ends_with_its_own_end_tag() {
        for (page, expected) in [
            ("a</style>b", 1),
            ("a</STYLE\n>", 1),
            ("a</styles></style/", 10),
            ("a</style", 8),
            ("< </ </sty", 10),
            ("", 0),
        ] {
            assert_eq!(end_tag(page.as_bytes(), 0, b"style"), expected, "{page}");
        }
    }

    #[test]
    fn scripts_may_hold_scripts_in_comments() {
        for (script, rest) in [
            ("x</script>y", "</script>y"),
            ("a<b</ScripT >", "</ScripT >"),
            ("<!-- </script> -->", "</script> -->"),
            ("<!-- <script> </script> --> </script>", "</script>"),
            ("<!-- <script> </script> </script>", "</script>"),
            ("<!-- <script> --> </script> x", "</script> x"),
            ("<!-- <scripts> </script> x", "</script> x"),
            ("<!--> <script> </script> x", "</script> x"),
            ("<!---> <script> </script> x", "</script> x"),
            ("<!-- - -- <script> </script> x", ""),
            ("<script> </script> x", "</script> x"),
            ("", ""),
        ] {
            let end = script_end(script.as_bytes(), 0);
            assert_eq!(&script[end..], rest, "{script}");
        }
    }
}
