//! What is no input: files of other programs, folders that are mostly such files, addresses.

use super::misread::{build_of, is_silent, names};
use crate::support::*;

const LINE: &str = "{\"id\":\"a\",\"text\":\"mill race\"}\n";
const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\n";

/// An archive of zip that nobody has to unpack.
fn zip(names: &[&str]) -> Vec<u8> {
    let head = [&b"PK\x03\x04"[..], &[0; 26]].concat();
    names.iter().flat_map(|name| [&head, name.as_bytes(), b"content"].concat()).collect()
}

#[test]
fn a_folder_of_which_most_is_passed_over_says_so() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let folder = scratch.path("in");
    let build =
        |more: &[&str]| millrace(args!["build", "--index", index, &folder]).args(more).run();
    scratch.write("in/a.jsonl", LINE);
    scratch.write("in/b.log", "x");
    is_silent(&build(&[]).expect_status(0), "passed over");
    // One more than is read.
    scratch.write("in/sub/c.LOG.gz", "x");
    let told = build(&[]).expect_status(0).says("2 files were passed over and 1 read: 2 .log;");
    assert_eq!(told.says("--format NAME").stderr.matches("passed over").count(), 1);
    for name in ["d.pdf", "e.pdf", "f.pdf", "README", "g.dat", "h.tar.gz", ".hidden", ".git/x"] {
        scratch.write(format!("in/{name}"), PDF);
    }
    let told = build(&[]).expect_status(0);
    let told = told.says("8 files were passed over and 1 read: 3 .pdf (`pdftotext FILE` makes");
    told.says(", 2 .log, 1 without an ending;").says("7 files of no known format ignored");
    assert_eq!(names(&index), "a");
    // With a named format all that is text is read.
    let told = build(&["--format", "text"]).expect_status(0);
    is_silent(&told, "passed over and");
    let told = told.says("e.pdf: file of another program: this is a PDF file");
    told.says("4 records were skipped in all");
    assert_eq!(info(&index)["documents"], 5);
    build(&["--format", "text", "--strict"]).expect_status(1).says("this is a PDF file");
    // Where nothing is read, what is there is told.
    let pdfs = scratch.write("pdfs/d.pdf", PDF);
    let job = |path| millrace(args!["build", "--index", index, path]);
    let told = job(pdfs.parent().unwrap().to_path_buf()).fails(1);
    told.says("no file here has an ending").says("but 1 .pdf (`pdftotext FILE` makes text of it)");
    std::fs::remove_file(pdfs).unwrap();
    scratch.write("pdfs/.keep", "");
    job(scratch.path("pdfs")).fails(1).says("this folder has no files, or hidden ones alone");
}

#[test]
fn files_of_other_programs_are_named_whatever_they_are_called() {
    let scratch = Scratch::new();
    let parquet = [&b"PAR1\x15\x04\x15\0\0"[..], &[9; 100], b"PAR1"].concat();
    let docx = zip(&["[Content_Types].xml", "_rels/.rels", "word/document.xml"]);
    for (bytes, what) in [
        (PDF.to_vec(), "this is a PDF file, which is not read as it is; `pdftotext FILE` makes"),
        (parquet, "this is a Parquet file"),
        (docx, "this is a DOCX file"),
        (zip(&["xl/workbook.xml"]), "this is an XLSX file"),
        (zip(&["a/b.txt"]), "this is an archive of zip"),
    ] {
        let packed = gzip(&bytes, 1);
        for name in ["a.pdf", "a.txt", "a.jsonl", "a.bin", "a"] {
            for more in [&[][..], &["--format", "text"]] {
                build_of(&scratch, name, &bytes, more).expect_status(1).says(what);
            }
        }
        build_of(&scratch, "a.txt.gz", &packed, &[]).expect_status(1).says(what);
        let piped = millrace(args!["build", "--index", scratch.path("index"), "-"]);
        piped.stdin(bytes).fails(1).says(what);
    }
    for text in ["PAR1 is a gene\n", "word/document.xml\n", "see %PDF-1.4\n"] {
        build_of(&scratch, "a.txt", text, &[]).expect_status(0);
    }
}

#[test]
fn an_address_is_refused_with_a_pipe() {
    let scratch = Scratch::new();
    let job = |address: &str| millrace(args!["build", "--index", scratch.path("index"), address]);
    let says = |address: &str, command: &str| {
        job(address).fails(1).says(format!("`{command} | millrace build ... -` reads it"));
    };
    says("https://x.example/a.jsonl.gz?b&c", "curl -sfL 'https://x.example/a.jsonl.gz?b&c'");
    says("http://x.example/", "curl -sfL 'http://x.example/'");
    says("s3://bucket/a.tsv", "aws s3 cp 's3://bucket/a.tsv' -");
    let missing = job("missing.jsonl").fails(1);
    is_silent(&missing, "address");
}
