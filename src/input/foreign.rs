//! Knows files that are not read as they are, whatever their names say: archives, and input for
//! the bulk interface of Elasticsearch.

use super::Unknown;

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
            Self::Bulk => Some("bulk actions"),
            Self::Utf16 => Some("UTF-16 text"),
            Self::Returns => Some("lines without line feeds"),
            _ => None,
        }
    }
}

/// What packs files, by its first bytes.
pub(super) fn archive(head: &[u8]) -> Option<Unknown> {
    let is = |what, command| Some(Unknown::Archive { what, command });
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => {
            is("an archive of zip", "unzip FILE")
        }
        [0x1f, 0x9d, ..] => is("a file of `compress` (LZW)", "uncompress FILE"),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => is("an archive of 7-Zip", "7z x FILE"),
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => is("an archive of RAR", "unrar x FILE"),
        _ if head.starts_with(b"filedesc://") => {
            is("a web archive in the format ARC", "warcio recompress FILE FILE.warc.gz")
        }
        _ if is_tar(head) => is("an archive of tar", "tar -xf FILE"),
        _ => None,
    }
}

/// Whether this begins with the head of a file in a tar archive, old ones too: its sum is right.
fn is_tar(head: &[u8]) -> bool {
    let Some(head) = head.first_chunk::<512>() else { return false };
    let digits = head[148..156].trim_ascii().split(|byte| matches!(byte, 0 | b' ')).next();
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let Some(sum) = digits.and_then(|digits| u32::from_str_radix(digits, 8).ok()) else {
        return false;
    };
    let blank = |(at, &byte)| if (148..156).contains(&at) { 32 } else { u32::from(byte) };
    head.iter().enumerate().map(blank).sum::<u32>() == sum && head[0] != 0
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
        ] {
            assert!(says(head).unwrap_err().contains(what), "{:?}", says(head));
        }
        tar[0] = b'b';
        assert!(!says(&tar).unwrap_err().contains("tar"));
    }
}
