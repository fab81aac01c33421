//! Reads a file that may be compressed as a plain stream, and text in any encoding as UTF-8, whose
//! bytes offsets count.
//!
//! For files that are read whole on one thread, such as judgements, runs, queries and lists of
//! words. Collections go through the operators of the dataflow instead, which read and decompress
//! side by side.

use super::decoder::{Decoder, Output};
use super::encoded::{TextDecoder, TextEncoding, Transcoder, is_unmarked};
use crate::index::inputs::InputEntry;
use crate::input::Compression;
use crate::input::hash::{InputHash, NAME};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK_BYTES: usize = 256 << 10;
/// Windows of Zstandard up to 2 to this power are read, as in collections.
const WINDOW_LOG: u32 = 27;

/// A file's bytes, decompressed as its first bytes say. Each read gives what is there: nothing
/// waits for bytes that a pipe does not have yet, except the rest of a mark that has begun.
pub struct Unpacked {
    file: Box<dyn Read + Send>,
    /// `None` before the first bytes were read.
    decoder: Option<TextDecoder>,
    /// Of text, the encoding that was asked for.
    asked: Option<Option<TextEncoding>>,
    /// What was read and not yet decoded: `block[at..filled]`.
    block: Vec<u8>,
    at: usize,
    filled: usize,
    /// What was decoded and not yet given out: `out[given..made]`.
    out: Vec<u8>,
    given: usize,
    made: usize,
    ended: bool,
}

impl Unpacked {
    /// `-` is standard input; a folder is an error.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == crate::input::splits::STDIN {
            return Self::new(Box::new(io::stdin()));
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder"));
        }
        Self::new(Box::new(file))
    }

    /// As [`open`](Self::open), as text in UTF-8 from the encoding that it tells, else from that
    /// which was asked for.
    pub(crate) fn text(path: &Path, asked: Option<TextEncoding>) -> io::Result<Self> {
        Ok(Self { asked: Some(asked), ..Self::open(path)? })
    }

    /// The first bytes of the stream will tell how it is compressed.
    pub fn new(file: Box<dyn Read + Send>) -> io::Result<Self> {
        let block = vec![0; BLOCK_BYTES];
        let out = vec![0; BLOCK_BYTES];
        let (decoder, asked, at, filled, given, made, ended) = Default::default();
        Ok(Self { file, decoder, asked, block, at, filled, out, given, made, ended })
    }

    /// `pass` is told the bytes of the file, compressed or not, as they are read.
    pub(crate) fn counted(mut self, pass: impl Fn(u64) + Send + 'static) -> Self {
        self.file = Box::new(Counted(self.file, pass));
        self
    }

    /// Reads once, behind what was not yet decoded.
    fn read_more(&mut self) -> io::Result<()> {
        let bytes = loop {
            match self.file.read(&mut self.block[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.filled += bytes;
        self.ended = bytes == 0;
        Ok(())
    }

    /// Decodes until there is something to give out, or nothing is left.
    fn fill(&mut self) -> io::Result<()> {
        self.given = 0;
        self.made = 0;
        while self.decoder.is_none() {
            if !self.ended && Compression::may_begin(&self.block[..self.filled]) {
                self.read_more()?;
                continue;
            }
            let compression = Compression::by_content(&self.block[..self.filled]);
            let decoder = Decoder::new(compression, WINDOW_LOG)?;
            self.decoder = Some(TextDecoder::new(decoder, self.asked.map(Transcoder::new)));
        }
        while let Some(decoder) = &mut self.decoder {
            let mut out = Output::new(&mut self.out);
            let taken = decoder.decode(&self.block[self.at..self.filled], &mut out);
            self.made = out.made().len();
            self.at += taken?;
            if self.made > 0 {
                // Only the first bytes are looked at.
                let is_plain = self.asked.take_if(|asked| asked.is_none()).is_some();
                if is_plain && decoder.encoding().is_none() && is_unmarked(out.made()) {
                    let why = "this is UTF-16 or UTF-32 text without a byte order mark: \
                               its character set has to be named";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
                return Ok(());
            }
            if decoder.holds_more() || self.ended && decoder.ends() {
                continue;
            }
            if self.ended {
                return Ok(decoder.finish()?);
            }
            if self.at == self.filled {
                self.at = 0;
                self.filled = 0;
                self.read_more()?;
            }
        }
        Ok(())
    }
}

struct Counted<F>(Box<dyn Read + Send>, F);

impl<F: Fn(u64)> Read for Counted<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).inspect(|&bytes| self.1(bytes as u64))
    }
}

/// Opens a file to be read from any place, and tells what a manifest says of it. What is no plain
/// file, or compressed, is copied first, unpacked, to one without a name on the disk of `index`.
pub fn plain_file(path: &Path, format: &str, index: &Path) -> io::Result<(File, InputEntry)> {
    let folder = index.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let copied = |mut stream: Unpacked| {
        let mut copy = tempfile::tempfile_in(folder)?;
        io::copy(&mut stream, &mut copy)?;
        copy.rewind().map(|()| copy)
    };
    let is_stdin = path.as_os_str() == crate::input::splits::STDIN;
    let mut file = match !is_stdin && path.metadata()?.is_file() {
        true => File::open(path)?,
        false => copied(Unpacked::open(path)?)?,
    };
    let mut hash = InputHash::default();
    let mut block = vec![0; BLOCK_BYTES];
    let head = file.read_at(&mut block, 0)?;
    let compression = Compression::by_content(&block[..head]);
    while let read @ 1.. = file.read(&mut block)? {
        hash.update(&block[..read]);
    }
    file.rewind()?;
    let entry = InputEntry {
        path: path.to_path_buf(),
        bytes: file.metadata()?.len(),
        hash: format!("{NAME}:{:016x}", hash.digest()),
        format: format.to_string(),
        compression: compression.to_string(),
        ..InputEntry::default()
    };
    match compression {
        Compression::None => Ok((file, entry)),
        _ => Ok((copied(Unpacked::new(Box::new(file))?)?, entry)),
    }
}

pub fn text_of_file(file: File) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(Unpacked { asked: Some(None), ..Unpacked::new(Box::new(file))? }))
}

pub fn whole_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    text_of_file(File::open(path)?)?.read_to_end(&mut text)?;
    Ok(text)
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.given == self.made {
            self.fill()?;
        }
        let n = (&self.out[self.given..self.made]).read(into)?;
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        Unpacked::new(Box::new(io::Cursor::new(bytes)))?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn every_compression_gives_the_same_bytes() {
        for len in [0, 1, 7, 100, 700_000] {
            let bytes: Vec<u8> = (0..len).map(|i: u32| (i.wrapping_mul(i) >> 7) as u8).collect();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&bytes).unwrap();
            assert_eq!(read(bytes.clone()).unwrap(), bytes);
            assert_eq!(read(gzip.finish().unwrap()).unwrap(), bytes);
            assert_eq!(read(zstd::encode_all(&bytes[..], 1).unwrap()).unwrap(), bytes);
        }
    }

    fn text(bytes: &[u8], asked: Option<&str>) -> io::Result<String> {
        let asked = Some(asked.map(|name| name.parse().unwrap()));
        let mut text = String::new();
        let stream = Unpacked::new(Box::new(io::Cursor::new(bytes.to_vec())))?;
        Unpacked { asked, ..stream }.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn the_mark_comes_before_the_declaration_and_that_before_the_name() {
        let xml = b"<?xml version='1.0' encoding='latin1'?>\xe9";
        assert!(text(xml, Some("koi8-r")).unwrap().ends_with('\u{e9}'));
        assert_eq!(text(b"caf\xe9\n", Some("latin1")).unwrap(), "caf\u{e9}\n");
        assert_eq!(text(b"\xff\xfea\0\n\0", Some("latin1")).unwrap(), "a\n");
        assert_eq!(text("\u{feff}\u{e9}".as_bytes(), Some("latin1")).unwrap(), "\u{feff}\u{e9}");
        assert_eq!(text(b"", None).unwrap(), "");
        assert_eq!(text(b"\xff\xfe", None).unwrap(), "");
        let long = "x\u{e9}".repeat(100_000);
        let wide: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(&wide, Some("utf-16le")).unwrap(), long);
        let full: Vec<u8> = long.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
        assert_eq!(text(&full, Some("utf-32be")).unwrap(), long);
        for bare in [&wide[..1000], &full[..1001], &zstd::encode_all(&wide[..], 1).unwrap()] {
            let why = text(bare, None).unwrap_err().to_string();
            assert!(why.contains("UTF-16"), "{why}");
        }
        // What is UTF-8 because that was asked for, or by its mark, is not looked at.
        assert_eq!(text(b"a\0b\0c\0", Some("utf-8")).unwrap(), "a\0b\0c\0");
    }

    /// Gives one byte at a time, and panics if one is asked for that is not there yet.
    struct Slow(Vec<u8>, usize, std::sync::Arc<std::sync::atomic::AtomicUsize>);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            use std::sync::atomic::Ordering::Relaxed;
            assert!(self.1 < self.2.load(Relaxed), "it waits for byte {}", self.1);
            into[0] = self.0[self.1];
            self.1 += 1;
            Ok(1)
        }
    }

    #[test]
    fn characters_come_out_as_soon_as_they_are_there() {
        use std::sync::atomic::Ordering::Relaxed;
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let full: Vec<u8> = "dark\n".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for (name, bytes, each) in [
            (None, b"dark\n".to_vec(), 1),
            (Some("latin1"), b"dark\n".to_vec(), 1),
            (Some("utf-16le"), wide("dark\n"), 2),
            (Some("utf-32le"), full, 4),
        ] {
            let there = std::sync::Arc::new(0.into());
            let stream = Unpacked::new(Box::new(Slow(bytes, 0, std::sync::Arc::clone(&there))));
            let asked = Some(name.map(|name| name.parse().unwrap()));
            let mut stream = Unpacked { asked, ..stream.unwrap() };
            let mut text = Vec::new();
            for _ in 0..5 {
                there.fetch_add(each, Relaxed);
                let mut some = [0; 9];
                let made = stream.read(&mut some).unwrap();
                text.extend_from_slice(&some[..made]);
            }
            assert_eq!(text, b"dark\n", "{name:?}");
        }
    }

    #[test]
    fn a_stream_that_is_cut_short_is_an_error() {
        let whole = zstd::encode_all(&[b'x'; 1000][..], 1).unwrap();
        let error = read(whole[..whole.len() - 2].to_vec()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
