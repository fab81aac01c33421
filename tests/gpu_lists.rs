//! Does a device make of a list of an index what the host makes of it? The kernel `query_unpack`, emulated, against
//! `ListMaker`: the same bytes.

use crate::emulation::{Arg, Buffer, Emulator, Launch, Random};
use crate::gpu_queries::TUNING;
use millrace::gpu::query::list::{ListMaker, Windows};
use millrace::gpu::query::unpack::{Outline, Portion, RunList};
use millrace::index::list::{Form, ListCodec, ListEncoder, ListView};
use std::ops::Range;

/// Postings of the documents of a run, about one of `gap` documents.
fn postings(documents: u32, gap: u32, great: bool, random: &mut Random) -> Vec<(u32, u32)> {
    let mut docid = random.below(gap);
    let mut all = Vec::new();
    while docid < documents {
        let tf = match random.below(70) {
            0 if great => 254 + random.below(3),
            1 if great => 1_000_000_000 + random.below(1000),
            n => 1 + n / 12,
        };
        all.push((docid, tf));
        docid += 1 + random.below(2 * gap - 1);
    }
    all
}

/// The list that an index would have.
fn encoded(form: Form, postings: &[(u32, u32)]) -> Vec<u8> {
    let mut encoder = ListEncoder::of_form(form);
    for &(docid, tf) in postings {
        encoder.push(docid, tf, 7);
    }
    encoder.finish();
    let mut bytes = std::mem::take(encoder.payload());
    // Wide loads stay inside.
    bytes.resize(bytes.len() + 64, 0);
    bytes
}

/// A collection of runs, and the part of its documents that the device has.
struct Case {
    runs: Vec<u32>,
    gap: u32,
    form: Form,
    great: bool,
    share: Range<u32>,
    most: usize,
}

fn check(emulator: &Emulator, case: &Case, random: &mut Random) {
    let Case { runs, gap, form, great, share, most } = case;
    let windows = Windows { documents: share.len() as u32, bits: TUNING.window_bits };
    let norms: Vec<f32> = (0..share.len())
        .map(|_| match random.below(9) {
            0 => f32::INFINITY,
            _ => random.below(4000) as f32 / 1000.0,
        })
        .collect();
    let (mut lists, mut first_docid) = (Vec::new(), 0);
    let mut maker = ListMaker::default();
    maker.begin();
    for &documents in runs {
        let all = postings(documents, *gap, *great, random);
        if !all.is_empty() {
            let inside = all.iter().filter(|(docid, _)| share.contains(&(first_docid + docid)));
            let inside = inside.map(|&(docid, tf)| (first_docid + docid - share.start, tf));
            let (docids, tfs): (Vec<u32>, Vec<u32>) = inside.unzip();
            maker.push(windows, &docids, &tfs, &norms);
            lists.push((encoded(*form, &all), all.len() as u32, first_docid, documents));
        }
        first_docid += documents;
    }
    let mut expected = Vec::new();
    let placed = maker.finish(windows, &mut expected);
    let lists: Vec<RunList<'_>> = lists
        .iter()
        .map(|(bytes, df, first_docid, documents)| RunList {
            list: ListView::of_form(*form, *df, bytes.len() as u64 - 64, bytes).unwrap(),
            first_docid: *first_docid,
            documents: *documents,
        })
        .collect();
    let outline = Outline::new(&lists, windows, share).unwrap();
    assert_eq!(outline.placed(), placed);
    assert_eq!(outline.bytes(), expected.len() as u64);
    let mut list = Vec::new();
    outline.head(&mut list);
    let mut end = Vec::new();
    outline.end(&mut end);
    // Poison where the kernel has to write.
    list.resize(expected.len() - end.len(), 0xa5);
    list.extend_from_slice(&end);
    let list = emulator.upload(&list).unwrap();
    let firsts = emulator.upload(bytemuck::cast_slice(&outline.firsts)).unwrap();
    let norms = emulator.upload(bytemuck::cast_slice(&norms)).unwrap();
    let fault = emulator.upload(&[0; 4]).unwrap();
    for portion in outline.portions(*most) {
        assert!(portion.bytes() <= *most || portion.lines() == 1);
        let mut bytes = vec![0xa5; portion.bytes()];
        portion.write(&mut bytes);
        let arrays = [&firsts, &norms, &list, &fault];
        launch(emulator, (&portion, &bytes), windows, placed.postings, arrays);
    }
    assert_eq!(fault.download().unwrap(), [0; 4]);
    assert_eq!(list.download().unwrap(), expected);
}

/// Has the kernel decode a portion, whose bytes may be damaged.
fn launch(
    emulator: &Emulator,
    (portion, bytes): (&Portion<'_>, &[u8]),
    windows: Windows,
    postings: u32,
    [firsts, norms, list, fault]: [&Buffer; 4],
) {
    let sent = emulator.upload(bytes).unwrap();
    let arguments = [
        Arg::Resident(&sent, 0),
        Arg::U32(portion.lines()),
        Arg::U32(portion.block_len),
        Arg::U32(portion.first),
        Arg::Resident(&sent, 16 * u64::from(portion.lines())),
        Arg::U32(portion.payload_words()),
        Arg::Resident(firsts, 0),
        Arg::U32(windows.len() as u32),
        Arg::U32(windows.documents),
        Arg::Resident(norms, 0),
        Arg::Resident(list, 0),
        Arg::U32(postings),
        Arg::Resident(fault, 0),
    ];
    let launch =
        Launch { kernel: "query_unpack", blocks: 3, threads: 64, shared_bytes: 0, seed: 5 };
    emulator.launch(launch, &mut [], &arguments).unwrap();
}

fn emulator() -> Option<Emulator> {
    let source = TUNING.source();
    Emulator::compile(source.text, &["query_unpack"], &source.sizes)
}

#[test]
fn twin_a_device_makes_the_list_that_the_host_makes() {
    let Some(emulator) = emulator() else { return };
    let mut random = Random(1);
    let form = |block| Form::new(ListCodec::Bp128, block).unwrap();
    for (runs, gap, block, great, share, most) in [
        (vec![5000], 1, 128, false, 0..5000, 1 << 20),
        (vec![5000], 2, 128, true, 0..5000, 900),
        (vec![3000, 1, 2500], 3, 64, true, 0..5501, 500),
        (vec![9000], 4, 512, true, 0..9000, 5000),
        (vec![9000], 200, 128, false, 0..9000, 5000),
        // A part of the documents: in the midst of a block, at a border of runs, with nothing in it.
        (vec![4000, 4000], 2, 128, true, 777..4321, 2000),
        (vec![4000, 4000], 2, 64, false, 4000..8000, 2000),
        (vec![4000, 4000], 2, 128, false, 0..4000, 2000),
        (vec![4000, 300], 1000, 128, false, 4100..4300, 2000),
        (vec![4000], 1, 128, false, 0..128, 1500),
    ] {
        let case = Case { runs, gap, form: form(block), great, share, most };
        check(&emulator, &case, &mut random);
    }
    for _ in 0..12 {
        let runs: Vec<u32> = (0..1 + random.below(3)).map(|_| 1 + random.below(4000)).collect();
        let all: u32 = runs.iter().sum();
        let from = random.below(all);
        let case = Case {
            gap: 1 + random.below(9),
            form: form([64, 128, 512][random.below(3) as usize]),
            great: random.below(2) == 0,
            share: from..from + 1 + random.below(all - from),
            most: 600 + random.below(9000) as usize,
            runs,
        };
        check(&emulator, &case, &mut random);
    }
    lines_that_do_not_fit_are_told(&emulator, &mut random);
}

/// What would lie beyond the list or the payload is not touched.
fn lines_that_do_not_fit_are_told(emulator: &Emulator, random: &mut Random) {
    let all = postings(2000, 2, false, random);
    let bytes = encoded(Form::BP128, &all);
    let list = ListView::new(all.len() as u32, bytes.len() as u64 - 64, &bytes).unwrap();
    let windows = Windows { documents: 2000, bits: TUNING.window_bits };
    let run = RunList { list, first_docid: 0, documents: 2000 };
    let outline = Outline::new(&[run], windows, &(0..2000)).unwrap();
    let portion = outline.portions(1 << 20).next().unwrap();
    let mut sent = vec![0; portion.bytes()];
    portion.write(&mut sent);
    let whole = sent.clone();
    // A docid before the block that puts all postings elsewhere; a width; a place.
    for (at, value) in [(4, 99u32), (8, 33), (0, 1 << 30)] {
        sent.copy_from_slice(&whole);
        sent[16 + at..][..4].copy_from_slice(&value.to_le_bytes());
        let mut list = Vec::new();
        outline.head(&mut list);
        list.resize(outline.bytes() as usize, 0xa5);
        let list = emulator.upload(&list).unwrap();
        let firsts = emulator.upload(bytemuck::cast_slice(&outline.firsts)).unwrap();
        let norms = emulator.upload(bytemuck::cast_slice(&[1.0f32; 2000])).unwrap();
        let fault = emulator.upload(&[0; 4]).unwrap();
        let arrays = [&firsts, &norms, &list, &fault];
        launch(emulator, (&portion, &sent), windows, outline.placed().postings, arrays);
        assert_eq!(fault.download().unwrap(), [1, 0, 0, 0], "{at} {value}");
    }
}
