//! The character set of a page.
//!
//! The order is the HTML standard's (section 13.2.3): a byte order mark, then the protocol's label,
//! then the first `meta` tag that names a set within [`PRESCAN_BYTES`]; without any, UTF-8 is
//! likeliest. An unknown label counts as none.

use super::markup::attributes;
use super::tags::is_space;
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::{memchr, memmem};

const PRESCAN_BYTES: usize = 1024;

/// The character set that a page names, and the length of its byte order mark.
pub(super) fn of_page(page: &[u8], outside: Option<&[u8]>) -> Option<(&'static Encoding, usize)> {
    from_outside(page, outside)
        .or_else(|| Some((from_meta(&page[..page.len().min(PRESCAN_BYTES)])?, 0)))
}

/// From the byte order mark, else from the label.
pub(super) fn from_outside(
    page: &[u8],
    label: Option<&[u8]>,
) -> Option<(&'static Encoding, usize)> {
    Encoding::for_bom(page).or_else(|| Some((for_label(label?)?, 0)))
}

/// Sets that the standard refuses to decode count as unknown: unchanged bytes keep at least ASCII.
fn for_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != REPLACEMENT)
}

/// From the first `meta` tag that names a set.
fn from_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    loop {
        at += memchr(b'<', &head[at..])? + 1;
        let rest = &head[at..];
        if rest.starts_with(b"!--") {
            // From the second dash on, since `<!-->` is a whole comment.
            at += 1 + memmem::find(&rest[1..], b"-->")?;
            continue;
        }
        let Some((name, after)) = rest.split_at_checked(4) else { continue };
        let separated = after.first().is_some_and(|byte| is_space(*byte) || *byte == b'/');
        if !name.eq_ignore_ascii_case(b"meta") || !separated {
            continue;
        }
        let encoding = match label_of_meta(head, at + 4).and_then(for_label) {
            None => continue,
            // As these are ASCII bytes, they cannot be in UTF-16.
            Some(encoding) if encoding == UTF_16BE || encoding == UTF_16LE => UTF_8,
            Some(encoding) if encoding == X_USER_DEFINED => WINDOWS_1252,
            Some(encoding) => encoding,
        };
        return Some(encoding);
    }
}

/// The label in a `meta` tag whose attributes begin at `at`: `charset`, or that in `content` if
/// `http-equiv` is a content type.
fn label_of_meta(head: &[u8], at: usize) -> Option<&[u8]> {
    let mut charset = None;
    let mut content = None;
    let mut is_type = false;
    attributes(head, at, |name, value| {
        if name.eq_ignore_ascii_case(b"charset") {
            charset = charset.or(Some(value));
        } else if name.eq_ignore_ascii_case(b"content") {
            content = content.or_else(|| charset_parameter(value));
        } else if name.eq_ignore_ascii_case(b"http-equiv") {
            is_type = value.eq_ignore_ascii_case(b"content-type");
        }
    });
    charset.or(content.filter(|_| is_type))
}

pub(crate) fn charset_parameter(content_type: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"charset";
    let mut rest = content_type;
    loop {
        let key = rest.windows(KEY.len()).position(|w| w.eq_ignore_ascii_case(KEY))?;
        rest = rest[key + KEY.len()..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            let value = value.trim_ascii_start();
            let end = |byte: &u8| matches!(byte, b'"' | b'\'' | b';' | b',') || is_space(*byte);
            let value = match value.first() {
                Some(b'"' | b'\'') => &value[1..],
                _ => value,
            };
            let length = value.iter().position(end).unwrap_or(value.len());
            return Some(&value[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(page: &[u8], outside: Option<&str>) -> &'static str {
        let found = of_page(page, outside.map(str::as_bytes));
        found.map_or(UTF_8, |(encoding, _)| encoding).name()
    }

    #[test]
    fn the_mark_comes_before_the_header_and_that_before_the_page() {
        let meta = b"<meta charset=koi8-r>";
        assert_eq!(name(meta, None), "KOI8-R");
        assert_eq!(name(meta, Some("Shift_JIS")), "Shift_JIS");
        assert_eq!(name(meta, Some("no such set")), "KOI8-R");
        assert_eq!(name(&[b"\xef\xbb\xbf", &meta[..]].concat(), Some("big5")), "UTF-8");
        assert_eq!(name(b"\xff\xfea\0", Some("big5")), "UTF-16LE");
        assert_eq!(name(b"<p>", None), "UTF-8");
        assert_eq!(name(b"<p>", Some("hz-gb-2312")), "UTF-8");
    }

    #[test]
    fn meta_tags_name_the_set_in_several_ways() {
        for (page, expected) in [
            ("<META CharSet = \"ISO-8859-1\" />", "windows-1252"),
            ("<meta/charset='gb2312'>", "GBK"),
            (
                "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
                "windows-1251",
            ),
            (
                "<meta content='text/html;charset= \"euc-kr\"' http-equiv=\"content-type\">",
                "EUC-KR",
            ),
            ("<meta content='text/html;charset=euc-kr'>", "UTF-8"),
            ("<meta http-equiv=refresh content='text/html;charset=euc-kr'>", "UTF-8"),
            ("<metal charset=big5>", "UTF-8"),
            ("<!-- <meta charset=big5> --><meta charset=euc-jp>", "EUC-JP"),
            ("<!--><meta charset=big5>", "Big5"),
            ("<!-- <meta charset=big5>", "UTF-8"),
            ("<meta charset=bogus><meta charset=big5>", "Big5"),
            ("<meta charset=utf-16>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<meta charset=", "UTF-8"),
            ("<meta", "UTF-8"),
        ] {
            assert_eq!(name(page.as_bytes(), None), expected, "{page}");
        }
    }

    #[test]
    fn a_set_named_too_late_is_not_seen() {
        let page = |before: usize| [" ".repeat(before).as_str(), "<meta charset=big5>"].concat();
        assert_eq!(name(page(PRESCAN_BYTES - 19).as_bytes(), None), "Big5");
        assert_eq!(name(page(PRESCAN_BYTES).as_bytes(), None), "UTF-8");
    }

    #[test]
    fn content_types_have_parameters() {
        for (content_type, expected) in [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;CHARSET = \"Latin1\" ; x=y", Some("Latin1")),
            ("text/html; charset charset=a,b", Some("a")),
            ("text/html; charset=", Some("")),
            ("text/html; charset", None),
            ("text/html", None),
        ] {
            let found = charset_parameter(content_type.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{content_type}");
        }
    }
}
