//! A device makes of a list of an index what the host makes of it: the kernel `query_unpack`,
//! emulated, writes the bytes of `ListMaker`.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator, Launch, Random};
use crate::inside_tests::gpu_queries::TUNING;
use millrace::gpu::query::list::{Layout, ListMaker, Windows};
use millrace::gpu::query::parcel::{Parcel, Tables};
use millrace::gpu::query::unpack::{Outline, RunList};
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
    let windows =
        Windows { documents: share.len() as u32, bits: TUNING.window_bits, layout: Layout::Bounds };
    let norms: Vec<f32> = (0..share.len())
        .map(|_| match random.below(9) {
            0 => f32::INFINITY,
            _ => random.below(4000) as f32 / 1000.0,
        })
        .collect();
    let mut lists = Vec::new();
    let mut first_docid = 0u32;
    let mut maker = ListMaker::default();
    maker.begin(1.0.into());
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
    let memory = Memory::new(emulator, &norms, expected.len());
    // What is no whole parcel is sent as two: a parcel begins again with the numbers of the
    // windows.
    let mut bytes = vec![0xa5; 1 << 20];
    let mut parcel = Parcel::default();
    let mut head = Vec::new();
    let mut end = Vec::new();
    outline.head(&mut head);
    outline.end(&mut end);
    parcel.put(&mut bytes, PLACE, &head);
    let end_at = PLACE + (head.len() + 4 * placed.postings as usize) as u64;
    parcel.put(&mut bytes, end_at, &end);
    let mut firsts = parcel.firsts(&mut bytes, &outline.firsts);
    for (number, portion) in outline.portions(*most).enumerate() {
        assert!(20 * portion.blocks() + portion.payload_bytes() <= *most || portion.blocks() == 1);
        if number == 1 {
            memory.send(&bytes, &parcel, windows);
            parcel.clear();
            firsts = parcel.firsts(&mut bytes, &outline.firsts);
        }
        let needed = parcel.bytes_with(portion.payload_bytes(), portion.blocks());
        parcel.portion(&mut bytes, &portion, PLACE, placed.postings, firsts);
        assert!(parcel.seal(&mut bytes).bytes <= needed);
    }
    memory.send(&bytes, &parcel, windows);
    assert_eq!(memory.fault.download().unwrap(), [0; 4]);
    let arena = memory.arena.download().unwrap();
    let (before, list) = arena.split_at(PLACE as usize);
    assert!(before.iter().all(|&byte| byte == POISON));
    assert_eq!(list, expected);
}

/// Where the list goes.
const PLACE: u64 = 256;

/// What memory has that nobody has written.
const POISON: u8 = 0xa5;

/// The memory of an emulated device.
struct Memory<'a> {
    emulator: &'a Emulator,
    norms: Buffer,
    arena: Buffer,
    fault: Buffer,
}

impl<'a> Memory<'a> {
    fn new(emulator: &'a Emulator, norms: &[f32], list_bytes: usize) -> Self {
        Self {
            emulator,
            norms: emulator.upload(bytemuck::cast_slice(norms)).unwrap(),
            arena: emulator.upload(&vec![POISON; PLACE as usize + list_bytes]).unwrap(),
            fault: emulator.upload(&[0; 4]).unwrap(),
        }
    }

    fn send(&self, bytes: &[u8], parcel: &Parcel, windows: Windows) {
        let mut bytes = bytes.to_vec();
        let tables = parcel.seal(&mut bytes);
        self.launch(&bytes, &tables, windows);
    }

    fn launch(&self, bytes: &[u8], tables: &Tables, windows: Windows) {
        let sent = self.emulator.upload(&bytes[..tables.bytes]).unwrap();
        let at = |place: usize| Arg::Resident(&sent, place as u64);
        let put =
            [at(tables.pieces.0), Arg::U32(tables.pieces.1), at(0), Arg::Resident(&self.arena, 0)];
        let unpack = [
            at(tables.lines.0),
            Arg::U32(tables.lines.1),
            at(tables.owners),
            at(tables.portions),
            at(0),
            Arg::U32(tables.words),
            Arg::U32(windows.len() as u32),
            Arg::U32(windows.documents),
            Arg::Resident(&self.norms, 0),
            Arg::Resident(&self.arena, 0),
            Arg::Resident(&self.fault, 0),
        ];
        for (kernel, arguments) in [("query_put", &put[..]), ("query_unpack", &unpack[..])] {
            let launch = Launch { kernel, blocks: 3, threads: 64, shared_bytes: 0, seed: 5 };
            self.emulator.launch(launch, &mut [], arguments).unwrap();
        }
    }
}

fn emulator() -> Option<Emulator> {
    let source = TUNING.source();
    Emulator::compile(source.text, &["query_put", "query_unpack"], &source.sizes)
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
        // A part of the documents: in the midst of a block, at a border of runs, with nothing in
        // it.
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
    let windows = Windows { documents: 2000, bits: TUNING.window_bits, layout: Layout::Bounds };
    let run = RunList { list, first_docid: 0, documents: 2000 };
    let outline = Outline::new(&[run], windows, &(0..2000)).unwrap();
    let portion = outline.portions(1 << 20).next().unwrap();
    let mut bytes = vec![0; 1 << 16];
    let mut parcel = Parcel::default();
    let mut head = Vec::new();
    outline.head(&mut head);
    parcel.put(&mut bytes, PLACE, &head);
    let firsts = parcel.firsts(&mut bytes, &outline.firsts);
    parcel.portion(&mut bytes, &portion, PLACE, outline.placed().postings, firsts);
    let tables = parcel.seal(&mut bytes);
    // A docid before the block that puts all postings elsewhere; a width; a place.
    for (at, value) in [(4, 99u32), (8, 128 << 16 | 33), (0, 1 << 30)] {
        let mut damaged = bytes.clone();
        damaged[tables.lines.0 + 16 + at..][..4].copy_from_slice(&value.to_le_bytes());
        let memory = Memory::new(emulator, &[1.0; 2000], outline.bytes() as usize);
        memory.launch(&damaged, &tables, windows);
        assert_eq!(memory.fault.download().unwrap(), [1, 0, 0, 0], "{at} {value}");
    }
}
