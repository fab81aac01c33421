//! How is the record of a document read again, from where the index says that it lies?

#![forbid(unsafe_code)]

use super::Compression;
use super::unpacked::Unpacked;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Reads the `bytes` at `offset` of a file, both counted in what is in it uncompressed. Of a compressed file all
/// before them is inflated too.
///
/// # Errors
/// When the file cannot be read, or ends before: it has changed since it was indexed.
pub fn fetch(path: &Path, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head)?;
    let stream: &mut dyn Read = if Compression::by_content(&head) == Compression::None {
        file.seek(SeekFrom::Start(offset))?;
        &mut file
    } else {
        let mut stream = Unpacked::open(path)?;
        io::copy(&mut stream.by_ref().take(offset), &mut io::sink())?;
        &mut { stream }
    };
    let mut record = Vec::new();
    stream.take(u64::from(bytes)).read_to_end(&mut record)?;
    if record.len() != bytes as usize {
        let found = record.len();
        let why = format!(
            "byte {offset}: expected a record of {bytes} bytes, found {found}: the file has changed since"
        );
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn records_are_read_from_files_compressed_or_not() {
        let text = b"first\nsecond\nthird\n";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packed.write_all(text).unwrap();
        for bytes in [text.to_vec(), packed.finish().unwrap()] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            assert_eq!(fetch(file.path(), 6, 6).unwrap(), b"second");
            assert_eq!(fetch(file.path(), 0, 19).unwrap(), text);
            let error = fetch(file.path(), 13, 7).unwrap_err();
            assert!(error.to_string().contains("of 7 bytes, found 6"), "{error}");
            fetch(file.path(), 90, 1).unwrap_err();
        }
    }
}
