//! Knows files that are not read as they are, whatever their names say: archives, files of other
//! programs, and input for the bulk interface of Elasticsearch; and addresses, which are no files.

use super::Unknown;
use memchr::memmem::find_iter;
use std::io;

/// Endings of archives, behind which those of compressed files may stand.
pub(super) const ARCHIVES: [&str; 11] =
    [".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst", ".zip", ".arc", ".z", ".7z", ".rar"];

/// Why a file that packs others is passed over.
pub(super) const ARCHIVE: &str = "archive";

impl Unknown {
    /// Whether it is known well what this is, whatever its name says.
    pub(super) fn is_certain(self) -> bool {
        self.reason().is_some()
    }

    /// A few words for that.
    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            Self::Archive { .. } => Some(ARCHIVE),
            Self::Foreign { .. } => Some("file of another program"),
            Self::Bulk => Some("bulk actions"),
            Self::Utf16 => Some("UTF-16 text"),
            Self::Returns => Some("lines without line feeds"),
            _ => None,
        }
    }
}

/// The marks of what packs files, what that is, and what unpacks it.
const PACKERS: [(&[u8], &str, &str); 7] = [
    (b"PK\x03\x04", "an archive of zip", "unzip FILE"),
    (b"PK\x05\x06", "an archive of zip", "unzip FILE"),
    (b"PK\x07\x08", "an archive of zip", "unzip FILE"),
    (b"\x1f\x9d", "a file of `compress` (LZW)", "uncompress FILE"),
    (b"filedesc://", "a web archive in the format ARC", "warcio recompress FILE FILE.warc.gz"),
    (b"7z\xbc\xaf\x27\x1c", "an archive of 7-Zip", "7z x FILE"),
    (b"Rar!\x1a\x07", "an archive of RAR", "unrar x FILE"),
];

/// What other programs write: ending, mark, name, and the command that makes text of it. In a mark
/// of zip the begin of a name follows, which has 30 bytes of its entry before it.
type ForeignFile = (&'static str, &'static [u8], &'static str, &'static str);

const ZIP: &[u8] = b"PK\x03\x04";
const PARQUET: &[u8] = b"PAR1";
const OFFICE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

const FOREIGN: [ForeignFile; 8] = [
    ("pdf", b"%PDF-", "a PDF file", "pdftotext FILE"),
    ("parquet", PARQUET, "a Parquet file", "duckdb -c \"copy 'FILE' to 'FILE.json'\""),
    ("doc", OFFICE, "an office file (DOC, XLS)", "soffice --convert-to txt FILE"),
    ("rtf", b"{\\rtf", "an RTF file", "pandoc -t plain FILE"),
    ("docx", b"PK\x03\x04word/", "a DOCX file", "pandoc -t plain FILE"),
    ("xlsx", b"PK\x03\x04xl/", "an XLSX file", "in2csv FILE"),
    ("odt", b"PK\x03\x04mimetypeapplication/vnd", "an ODT file", "pandoc -t plain FILE"),
    ("epub", b"PK\x03\x04mimetypeapplication/epub", "an EPUB file", "pandoc -t plain FILE"),
];

/// The command that makes text of files with an ending, if they are another program's.
pub(super) fn way_to_text(ending: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|row| row.0 == ending).map(|row| row.3)
}

fn is_foreign(head: &[u8], mark: &[u8]) -> bool {
    let names = || find_iter(head, ZIP).filter_map(|at| head.get(at + 30..));
    match mark.strip_prefix(ZIP) {
        Some(name) => head.starts_with(ZIP) && names().any(|found| found.starts_with(name)),
        // A text may begin with that word.
        None if mark == PARQUET && !head.contains(&0) && !head.ends_with(mark) => false,
        None => head.starts_with(mark),
    }
}

/// Why an address cannot be read, with a pipe that can.
pub(super) fn of_address(address: &str) -> Option<io::Error> {
    let command = match address.split_once("://")?.0 {
        "s3" => format!("aws s3 cp '{address}' -"),
        _ => format!("curl -sfL '{address}'"),
    };
    let why = "this is an address, not a file";
    Some(io::Error::other(format!("{why}; `{command} | millrace build ... -` reads it")))
}

/// What packs files, or is another program's, by its first bytes.
pub(super) fn archive(head: &[u8]) -> Option<Unknown> {
    if let Some(&(_, _, what, command)) = FOREIGN.iter().find(|row| is_foreign(head, row.1)) {
        return Some(Unknown::Foreign { what, command });
    }
    let tar = is_tar(head).then_some((&b""[..], "an archive of tar", "tar -xf FILE"));
    let found = PACKERS.into_iter().find(|(mark, ..)| head.starts_with(mark)).or(tar);
    found.map(|(_, what, command)| Unknown::Archive { what, command })
}

/// Whether this begins with the head of a file in a tar archive, old ones too: its sum is right.
fn is_tar(head: &[u8]) -> bool {
    let Some(head) = head.first_chunk::<512>() else { return false };
    let digits = head[148..156].trim_ascii().split(|byte| matches!(byte, 0 | b' ')).next();
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let sum = digits.and_then(|digits| u32::from_str_radix(digits, 8).ok());
    let blank = |(at, &byte)| if (148..156).contains(&at) { 32 } else { u32::from(byte) };
    head[0] != 0 && sum == Some(head.iter().enumerate().map(blank).sum())
}

/// Whether the first line is an action of Elasticsearch's bulk interface: it names one, and where.
pub(super) fn is_bulk(head: &[u8]) -> bool {
    const ACTIONS: [&str; 4] = ["index", "create", "update", "delete"];
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(line) = serde_json::from_slice::<serde_json::Map<_, _>>(line) else { return false };
    let mut members = line.iter();
    let (Some((action, serde_json::Value::Object(place))), None) = (members.next(), members.next())
    else {
        return false;
    };
    let is_of_place = |key: &String| {
        key.starts_with('_') || ["routing", "pipeline", "require_alias"].contains(&key.as_str())
    };
    ACTIONS.contains(&action.as_str()) && place.keys().all(is_of_place)
}

#[cfg(test)]
mod tests {
    use super::super::Format;

    #[test]
    fn archives_are_known_by_their_first_bytes() {
        let mut tar = vec![0; 1024];
        tar[..5].copy_from_slice(b"a.txt");
        tar[100..108].copy_from_slice(b"0000644\0");
        let sum: u32 = tar[..512].iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
        tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let says = |head: &[u8]| Format::by_content(head).map_err(|unknown| unknown.to_string());
        for (head, what) in [
            (&tar[..], "an archive of tar, which is not read as it is; `tar -xf FILE` unpacks it"),
            (b"PK\x03\x04\x14", "`unzip FILE`"),
            (b"\x1f\x9d\x90x", "`uncompress FILE`"),
            (b"filedesc://x.arc 0.0.0.0 2001 text/plain 76\n1 0 y\n", "format ARC"),
            (b"7z\xbc\xaf\x27\x1c\0", "7-Zip"),
            (b"Rar!\x1a\x07\0", "RAR"),
            (
                b"%PDF-1.7\n%\xe2\xe3",
                "a PDF file, which is not read as it is; `pdftotext FILE` makes",
            ),
            (b"PAR1\x15\x04\0\0", "a Parquet file"),
            (b"PAR1 and so on PAR1", "a Parquet file"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "an office file"),
            (b"{\\rtf1\\ansi mill}", "an RTF file"),
            (&zip(&["[Content_Types].xml", "_rels/.rels", "word/document.xml"]), "a DOCX file"),
            (&zip(&["[Content_Types].xml", "xl/workbook.xml"]), "an XLSX file"),
            (&zip(&["mimetypeapplication/vnd.oasis.opendocument.text"]), "an ODT file"),
            (&zip(&["mimetypeapplication/epub+zip", "OEBPS/a.html"]), "an EPUB file"),
            (&zip(&["keyword/a.txt", "excel/b.txt"]), "an archive of zip"),
        ] {
            assert!(says(head).unwrap_err().contains(what), "{:?}", says(head));
        }
        tar[0] = b'b';
        assert!(!says(&tar).unwrap_err().contains("tar"));
        for text in [&b"PAR1 is a gene\n"[..], b"word/document.xml", b"a %PDF-1.4", b"{\"rtf\":1}"]
        {
            says(text).unwrap();
        }
    }

    /// The begin of an archive with files of these names.
    fn zip(names: &[&str]) -> Vec<u8> {
        let head = [&b"PK\x03\x04"[..], &[7; 26]].concat();
        names.iter().flat_map(|name| [&head, name.as_bytes(), b"content"].concat()).collect()
    }

    #[test]
    fn addresses_have_a_pipe() {
        let told = |address: &str| super::of_address(address).map(|why| why.to_string());
        let says = |address: &str, command: &str| {
            let told = told(address).unwrap();
            assert!(told.contains(&format!("`{command} | millrace build ... -`")), "{told}");
        };
        says("https://x.org/a?b&c", "curl -sfL 'https://x.org/a?b&c'");
        says("s3://bucket/key.gz", "aws s3 cp 's3://bucket/key.gz' -");
        assert_eq!(told("docs/a.jsonl"), None);
    }
}
