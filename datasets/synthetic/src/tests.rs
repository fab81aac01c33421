//! Laws of whole collections.

use super::collection::{Amount, Compression, Layout, WriteError, Written, write};
use super::documents::WriteRecords;
use super::queries::Queries;
use super::*;
use millrace::inside::input::JsonlParser;
use millrace::inside::input::{Between, LinesParser};
use millrace::inside::input::{Document, DocumentSink, Name, PieceView, Skip};
use millrace::inside::text::for_each_token;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn model(recipe: Recipe) -> Model {
    Model::new(recipe).unwrap()
}

fn layout(folder: &Path, amount: Amount, files: u32, format: Format) -> Layout {
    let files = NonZeroU32::new(files).unwrap();
    let folder = folder.join("documents");
    Layout { folder, stream: None, amount, files, format, compression: Compression::None }
}

/// Writes a collection and returns its files, without compression.
fn written(model: &Model, mut layout: Layout, threads: usize) -> (Written, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    layout.folder = folder.path().join("documents");
    let written = write(model, &layout, threads, &|_| false).unwrap();
    let files: Vec<_> =
        (0..layout.files.get()).map(|file| std::fs::read(layout.path(file)).unwrap()).collect();
    assert_eq!(written.file_bytes, files.iter().map(|f| f.len() as u64).sum::<u64>());
    (written, files.iter().map(|file| decompressed(file, layout.compression)).collect())
}

fn decompressed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    match compression {
        Compression::None => out.extend_from_slice(bytes),
        Compression::Gzip(_) => {
            flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).map(drop).unwrap();
        }
        Compression::Zstd(_) => out = zstd::decode_all(bytes).unwrap(),
    }
    out
}

/// Keeps what a parser finds.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    texts: Vec<Vec<u8>>,
}

impl DocumentSink for Found {
    fn document(&mut self, document: Document<'_>) {
        let Name::Given(name) = document.name else { panic!("a document without a name") };
        self.names.push(name.to_owned());
        self.texts.push(document.content.bytes().to_vec());
    }

    fn skipped(&mut self, offset: usize, line: u64, _bytes: usize, skip: Skip) {
        panic!("line {line} at {offset}: {skip}");
    }
}

fn parsed(format: Format, files: &[Vec<u8>]) -> Found {
    let mut found = Found::default();
    for file in files {
        match format {
            Format::Jsonl => _ = JsonlParser::new().parse(PieceView::whole(file), &mut found),
            Format::Tsv => {
                _ = LinesParser::new(Between::Tab).parse(PieceView::whole(file), &mut found)
            }
            Format::Warc => unreachable!("pages are not parsed here"),
        }
    }
    found
}

#[test]
fn law_threads_do_not_matter() {
    let model = model(Recipe { mean_tokens: 60.0, ..Recipe::default() });
    let folder = Path::new("");
    for (format, files) in
        [(Format::Jsonl, 1), (Format::Jsonl, 4), (Format::Tsv, 2), (Format::Warc, 3)]
    {
        for compression in [Compression::None, Compression::Gzip(1), Compression::Zstd(1)] {
            // What is compressed is what is not.
            let plain = matches!(compression, Compression::None);
            let amounts = [Amount::Bytes(7_000_000), Amount::Documents(9001)];
            for amount in amounts.into_iter().take(if plain { 2 } else { 1 }) {
                let layout = Layout { compression, ..layout(folder, amount, files, format) };
                let one = written(&model, layout.clone(), 1);
                for &threads in if plain { &[2, 3, 7][..] } else { &[3] } {
                    assert!(
                        one == written(&model, layout.clone(), threads),
                        "{layout:?} {threads}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_text_is_that_of_other_machines() {
    // Checked once; a change of it changes every collection that was ever made.
    let model = model(Recipe::default());
    let hash = |format| {
        let layout = layout(Path::new(""), Amount::Documents(3000), 2, format);
        let files = written(&model, layout, 2).1;
        twox_hash::XxHash3_64::oneshot(&files.concat())
    };
    let found = [Format::Jsonl, Format::Tsv, Format::Warc].map(hash);
    assert_eq!(found, GOLDEN, "{found:#x?}");
}

#[test]
fn sizes_are_those_asked_for() {
    let model = model(Recipe::default());
    for (bytes, files) in [(0, 1), (1, 1), (300_000, 1), (300_001, 3), (3_000_000, 2)] {
        let layout = layout(Path::new(""), Amount::Bytes(bytes), files, Format::Jsonl);
        let (written, found) = written(&model, layout, 2);
        for (file, documents) in found.iter().zip(&written.documents) {
            let share = bytes / u64::from(files);
            let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(lines.len() as u64, *documents);
            let longest = lines.iter().map(|line| line.len()).max().unwrap() as u64;
            let off = share.abs_diff(file.len() as u64);
            // The one document that a file has at least may be longer than its share.
            assert!(lines.len() == 1 || off <= longest / 2 + 1, "{bytes} {files}: {off} {longest}");
        }
    }
    for (documents, files) in [(0, 2), (1, 1), (10_007, 3)] {
        let layout = layout(Path::new(""), Amount::Documents(documents), files, Format::Tsv);
        let (written, found) = written(&model, layout, 3);
        assert_eq!(written.documents.iter().sum::<u64>(), documents);
        let names = parsed(Format::Tsv, &found).names;
        assert_eq!(names.len() as u64, documents);
        assert_eq!(names.iter().collect::<HashSet<_>>().len() as u64, documents);
    }
}

#[test]
fn jsonl_and_tsv_parse_to_the_tokens_that_were_counted() {
    let model = model(Recipe { sigma: 1.5, ..Recipe::default() });
    for format in [Format::Jsonl, Format::Tsv] {
        let layout = layout(Path::new(""), Amount::Documents(5000), 2, format);
        let (written, files) = written(&model, layout, 2);
        let mut tokens = 0;
        for text in parsed(format, &files).texts {
            for_each_token(&text, |_| tokens += 1);
        }
        assert_eq!(tokens, written.tokens);
        let mean = tokens as f64 / 5000.0;
        assert!((mean / 200.0 - 1.0).abs() < 0.15, "{mean}");
    }
}

#[test]
fn warc_records_are_as_long_as_they_say() {
    let model = model(Recipe::default());
    let layout = layout(Path::new(""), Amount::Documents(500), 1, Format::Warc);
    let (written, files) = written(&model, layout, 2);
    let mut rest = &files[0][..];
    let mut responses = 0;
    let mut tokens = 0;
    while !rest.is_empty() {
        let head_end = memchr::memmem::find(rest, b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&rest[..head_end]).unwrap();
        assert!(head.starts_with("WARC/1.0\r\n"));
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let (body, behind) = rest[head_end..].split_at(length.parse().unwrap());
        rest = behind.strip_prefix(b"\r\n\r\n").unwrap();
        if head.contains("WARC-Type: response") {
            responses += 1;
            let page = &body[memchr::memmem::find(body, b"\r\n\r\n").unwrap() + 4..];
            tokens += visible_tokens(std::str::from_utf8(page).unwrap());
        }
    }
    assert_eq!(responses, 500);
    assert_eq!(tokens, written.tokens);
}

/// Counts the tokens of a page outside of tags, comments, style, scripts and entities.
fn visible_tokens(page: &str) -> u64 {
    let mut tokens = 0;
    let mut rest = page;
    while !rest.is_empty() {
        let ends = [
            ("<!--", "-->"),
            ("<style", "</style>"),
            ("<script", "</script>"),
            ("<", ">"),
            ("&", ";"),
        ];
        match ends.iter().find(|(begin, _)| rest.starts_with(begin)) {
            Some((_, end)) => rest = &rest[rest.find(end).unwrap() + end.len()..],
            None => {
                let end = rest.find(['<', '&']).unwrap_or(rest.len());
                for_each_token(&rest.as_bytes()[..end], |_| tokens += 1);
                rest = &rest[end..];
            }
        }
    }
    tokens
}

/// The ranks of the tokens of the first documents.
fn ranks(model: &Model, documents: u64) -> Vec<u32> {
    let mut writer = Documents::new(model, Format::Jsonl);
    (0..documents).flat_map(|number| writer.ranks_of(0, number)).collect()
}

/// The slope of the line through the points that has the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (a, b) = points
        .iter()
        .fold((0.0, 0.0), |(a, b), p| (a + (p.0 - x) * (p.1 - y), b + (p.0 - x) * (p.0 - x)));
    a / b
}

/// Points (ln rank, ln frequency), from sums over ranks from each power of two to the next.
fn frequencies(ranks: &[u32], powers: std::ops::Range<u32>) -> Vec<(f64, f64)> {
    let mut counts: HashMap<u32, f64> = HashMap::new();
    for rank in ranks {
        *counts.entry((rank + 1).ilog2()).or_default() += 1.0;
    }
    let point = |power| {
        let width = f64::from(1u32 << power);
        (width.ln(), (counts[&power] / width).ln())
    };
    powers.map(point).collect()
}

#[test]
fn law_terms_follow_zipf() {
    for (zipf, heaps) in [(1.0, 0.62), (0.8, 0.5), (1.3, 1.0)] {
        let model = model(Recipe { zipf, heaps, ..Recipe::default() });
        let ranks = ranks(&model, 10_000);
        let head = -slope(&frequencies(&ranks, 5..13));
        let tail = -slope(&frequencies(&ranks, 13..20));
        let expected = zipf.max(1.0 / heaps);
        assert!((head / zipf - 1.0).abs() < 0.04, "{zipf} {heaps}: {head}");
        assert!((tail / expected - 1.0).abs() < 0.06, "{zipf} {heaps}: {tail}");
    }
}

#[test]
fn law_the_vocabulary_grows_as_heaps_says() {
    // The law holds for large n, so it is asked where the knee is far behind.
    let model = model(Recipe { heaps: 0.5, zipf: 1.0, ..Recipe::default() });
    let ranks = ranks(&model, 40_000);
    let distinct = |tokens: usize| ranks[..tokens].iter().collect::<HashSet<_>>().len() as f64;
    let points: Vec<(f64, f64)> = [1_000_000, 2_000_000, 4_000_000, 7_500_000]
        .iter()
        .map(|&n| ((n as f64).ln(), distinct(n).ln()))
        .collect();
    let found = slope(&points);
    assert!((found - 0.5).abs() < 0.08, "{found}");
}

#[test]
fn stop_words_are_as_frequent_as_in_english() {
    let model = model(Recipe::default());
    let ranks = ranks(&model, 5000);
    let stop_words = ranks.iter().filter(|&&rank| rank < 33).count() as f64;
    let share = stop_words / ranks.len() as f64;
    assert!((0.34..0.40).contains(&share), "{share}");
}

#[test]
fn a_small_vocabulary_is_used_up_and_not_left() {
    let model = model(Recipe { vocabulary: 500, ..Recipe::default() });
    let layout = layout(Path::new(""), Amount::Documents(3000), 1, Format::Jsonl);
    let files = written(&model, layout, 1).1;
    let mut terms = HashSet::new();
    for text in parsed(Format::Jsonl, &files).texts {
        for_each_token(&text, |token| {
            terms.insert(token.to_owned());
        });
    }
    let expected: HashSet<String> = (0..500).map(|rank| model.term(rank)).collect();
    assert_eq!(terms, expected);
}

#[test]
fn terms_of_queries_occur() {
    let model = model(Recipe { mean_tokens: 20.0, ..Recipe::default() });
    for format in [Format::Jsonl, Format::Warc] {
        let layout = layout(Path::new(""), Amount::Documents(300), 3, format);
        let (written, files) = written(&model, layout, 2);
        let mut terms = HashSet::new();
        let texts = match format {
            Format::Warc => files,
            _ => parsed(format, &files).texts,
        };
        for_each_token(&texts.concat(), |token| {
            terms.insert(token.to_owned());
        });
        let mut queries = Queries::new(&model, format, &written.documents).unwrap();
        let mut lengths = HashSet::new();
        for number in 0..500 {
            let query = queries.query(number);
            let asked: Vec<&str> = query.split(' ').collect();
            assert!((2..=10).contains(&asked.len()), "{query}");
            assert!(asked.iter().all(|term| terms.contains(*term)), "{query}");
            lengths.insert(asked.len());
        }
        assert!(lengths.len() >= 6, "{lengths:?}");
    }
    assert!(Queries::new(&model, Format::Tsv, &[0, 0]).is_none());
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), Amount::Documents(10), 1, Format::Jsonl);
    let model = model(Recipe::default());
    write(&model, &layout, 1, &|_| false).unwrap();
    let before = std::fs::read(layout.path(0)).unwrap();
    let error = write(&model, &layout, 1, &|_| false).unwrap_err();
    assert!(matches!(error, WriteError::Occupied { .. }), "{error}");
    assert_eq!(std::fs::read(layout.path(0)).unwrap(), before);
}

#[test]
fn a_stop_or_a_failure_ends_all_threads_and_leaves_no_file() {
    let model = model(Recipe::default());
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), Amount::Bytes(1 << 40), 2, Format::Jsonl);
    let asked = AtomicUsize::new(0);
    let stopped = |_| asked.fetch_add(1, Ordering::Relaxed) > 20;
    let error = write(&model, &layout, 3, &stopped).unwrap_err();
    assert!(matches!(error, WriteError::Stopped), "{error}");
    assert_eq!(std::fs::read_dir(&layout.folder).unwrap().count(), 0);
    // A file where the folder should be.
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = write(&model, &Layout { folder: file, ..layout }, 3, &|_| false).unwrap_err();
    assert!(matches!(error, WriteError::Io { .. }), "{error}");
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = |recipe| Model::new(recipe).err().unwrap().to_string();
    let good = Recipe::default();
    assert_eq!(wrong(Recipe { zipf: 9.0, ..good }), "zipf is 9; it must be from 0.2 to 3");
    assert!(wrong(Recipe { vocabulary: 63, ..good }).starts_with("vocabulary is 63"));
    assert!(wrong(Recipe { heaps: f64::NAN, ..good }).starts_with("heaps is NaN"));
    assert!(wrong(Recipe { mean_tokens: 0.0, ..good }).starts_with("mean-tokens is 0"));
    assert!(wrong(Recipe { sigma: -0.1, ..good }).starts_with("sigma is -0.1"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn law_any_recipe_makes_valid_documents(
        seed: u64,
        vocabulary in prop_oneof![64u32..200, 30_000u32..40_000, Just(u32::MAX)],
        zipf in 0.2f64..3.0,
        heaps in 0.2f64..=1.0,
        mean_tokens in 1.0f64..400.0,
        sigma in 0.0f64..2.0,
        number: u64,
    ) {
        let clustering = 0.0;
        let cluster = NonZeroU32::MIN;
        let recipe =
            Recipe { seed, vocabulary, zipf, heaps, mean_tokens, sigma, clustering, cluster };
        let model = model(recipe);
        for format in [Format::Jsonl, Format::Tsv] {
            let mut writer = Documents::new(&model, format);
            let counts: Vec<u64> =
                (0..20).map(|n| writer.write(7, number.saturating_add(n)).into()).collect();
            let found = parsed(format, &[writer.written().to_vec()]);
            prop_assert_eq!(found.texts.len(), 20);
            for (text, count) in found.texts.iter().zip(counts) {
                let mut tokens = 0;
                for_each_token(text, |_| tokens += 1);
                prop_assert_eq!(tokens, count);
            }
        }
    }
}

/// Hashes of a collection in JSON lines, TSV and WARC.
const GOLDEN: [u64; 3] = [0xa889_97a6_f270_ba79, 0x583d_1a20_3add_d32f, 0xf4bc_5f06_38e4_cb41];

/// The mean of log2(gap) over all postings of content terms, and the share of tokens that are stop
/// words.
fn gaps(clustering: f64) -> (f64, f64) {
    let recipe = Recipe { clustering, mean_tokens: 100.0, ..Recipe::default() };
    let model = model(recipe);
    let mut documents = Documents::new(&model, Format::Tsv);
    let mut last: HashMap<u32, u64> = HashMap::new();
    let mut sum = 0.0;
    let mut postings = 0u64;
    let mut tokens = 0;
    let mut stop_words = 0;
    for number in 0..6000 {
        let mut ranks = documents.ranks_of(0, number);
        tokens += ranks.len();
        stop_words += ranks.iter().filter(|&&rank| rank < 33).count();
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks.into_iter().filter(|&rank| rank >= 33) {
            if let Some(before) = last.insert(rank, number) {
                sum += ((number - before) as f64).log2();
                postings += 1;
            }
        }
    }
    (sum / postings as f64, stop_words as f64 / tokens as f64)
}

#[test]
fn clustered_documents_have_short_gaps() {
    let found = [0.0, 0.25, 0.5].map(gaps);
    assert!(found.windows(2).all(|pair| pair[1].0 < pair[0].0 - 0.3), "{found:?}");
    // What a cluster is about takes nothing from the share of stop words.
    assert!(found.iter().all(|(_, share)| (share - found[0].1).abs() < 0.02), "{found:?}");
}

/// Of the queries of each number of terms: the hits of AND over what independent terms would have,
/// all together and in the median of those that would have a hit; and how frequent terms are, as
/// quantiles of their shares of the documents.
fn hits_over_chance(recipe: Recipe, documents: u64) -> ([[f64; 2]; 3], [f64; 3]) {
    let model = model(recipe);
    let mut writer = Documents::new(&model, Format::Tsv);
    let mut of_rank: HashMap<u32, Vec<u64>> = HashMap::new();
    for number in 0..documents {
        let mut ranks = writer.ranks_of(0, number);
        ranks.sort_unstable();
        ranks.dedup();
        ranks.into_iter().for_each(|rank| of_rank.entry(rank).or_default().push(number));
    }
    let lists: HashMap<String, Vec<u64>> =
        of_rank.into_iter().map(|(rank, list)| (model.term(rank), list)).collect();
    let n = documents as f64;
    let mut queries = Queries::new(&model, Format::Tsv, &[documents]).unwrap();
    let mut shares = Vec::new();
    let mut found: [Vec<(f64, f64)>; 3] = Default::default();
    for number in 0..6000 {
        let query = queries.query(number);
        let asked: Vec<&Vec<u64>> = query.split(' ').map(|term| &lists[term]).collect();
        shares.extend(asked.iter().map(|list| list.len() as f64 / n));
        let Some(of_length) = found.get_mut(asked.len() - 2) else { continue };
        let in_all = |d: &&u64| asked[1..].iter().all(|list| list.binary_search(d).is_ok());
        let hits = asked[0].iter().filter(in_all).count() as f64;
        of_length.push((hits, asked.iter().map(|list| list.len() as f64 / n).product::<f64>() * n));
    }
    shares.sort_by(f64::total_cmp);
    let ratios = found.map(|of_length| {
        let sum = |of: fn(&(f64, f64)) -> f64| of_length.iter().map(of).sum::<f64>();
        let mut medians: Vec<f64> =
            of_length.iter().filter(|pair| pair.1 >= 1.0).map(|pair| pair.0 / pair.1).collect();
        medians.sort_by(f64::total_cmp);
        [sum(|pair| pair.0) / sum(|pair| pair.1), medians[medians.len() / 2]]
    });
    (ratios, [0.5, 0.75, 0.9].map(|part| shares[(shares.len() as f64 * part) as usize]))
}

/// The English figures are those of `docs/inside/generate.md`.
#[test]
fn terms_of_queries_occur_together_as_in_english() {
    // No median for 4 terms: too few queries of so small a collection find something by chance.
    let english = [1.42, 1.56, 2.66, 2.56, 4.08];
    let shares = [0.0056, 0.0248, 0.0782];
    let recipe = Recipe { mean_tokens: 254.0, sigma: 0.52, clustering: 0.35, ..Recipe::default() };
    let found = hits_over_chance(recipe, 20_000);
    let pairs = found.0.iter().flatten().zip(&english);
    let mut pairs = pairs.chain(found.1.iter().zip(&shares));
    assert!(pairs.all(|(a, b)| (0.5..2.0).contains(&(a / b))), "{found:?}");
}
