//! A device makes the terms of plain forms as the host does, and says which are foreign.

use super::machine::{Emulated, compiled};
use super::{get, put, words};
use crate::inside_tests::emulation::Random;
use millrace::dictionary::device::forms::{EXPANDED, NO_TERM};
use millrace::dictionary::strings::codes::{code_of, code_of_number};
use millrace::gpu::invert::machine::InvertMachine;
use millrace::gpu::invert::steps::terms::{
    ArrayTerms, Plain, code_forms, fill_table, number_terms,
};
use millrace::gpu::invert::steps::{self, InvertArray};
use millrace::gpu::invert::twin;
use millrace::text::analysis::Analysis;
use millrace::text::stemmer::Stemmer;
use millrace::text::stop_words::StopWords;
use millrace::text::tokenizer::Tokenizer;

/// Forms that end in what a stemmer looks at, exceptions, stop words, and foreign ones.
fn forms(random: &mut Random, count: usize) -> Vec<String> {
    const WHOLE: &str = "howe dying lying tying andes atlas bias cosmos news skies skis early gently idly only singly sky ugly exceed proceed succeed proceeds exceeded \
        canning earring herring inning outing generous generally arsenal arsenic communion communism the a an their y yy yes sayyid youth fly flies cry cries tie ties ied ies \
        gas this was bus boss hopped hoping hop agreed feed bleed need bleedly interest possibly sensationalism fulfill roll controlling ing inged s ss sses internationalize \
        characteristic characteristics conditionally unconditionally 1984 3d x86 9s 80s 1990s eed eedly ly li ful ness";
    const PARTS: &str = "a e i o u y b c d g l m n r s t w x z 0 9 ed ing ingly edly eed eedly ational tional alism ization ation izer ator fulness iveness ousness anci enci logi abli bli lessli \
        entli fulli ousli alli li aliti biliti iviti alize ative icate iciti ical ful ness able ance ence ible ate ive ize iti al ism sion tion er ous ement ment ant ent e ll \
        at bl iz s us ss ies ied sses gener arsen commun ay ey oy th sk pp tt ur";
    let mut forms: Vec<String> = WHOLE.split_whitespace().map(str::to_owned).collect();
    let parts: Vec<&str> = PARTS.split_whitespace().collect();
    while forms.len() < count {
        let mut form = String::new();
        for _ in 0..1 + random.below(6) {
            form += parts[random.below(parts.len() as u32) as usize];
        }
        match random.below(9) {
            0 => form.push_str("ing\u{e9}s"),
            1 => {
                form = (0..1 + random.below(20))
                    .map(|_| char::from(b"abeilnsty07"[random.below(11) as usize]))
                    .collect()
            }
            _ => {}
        }
        forms.push(form);
    }
    forms
}

fn long_words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Codes get one number each, in a table that grows, too; what is no code stays as it is.
#[test]
fn twin_emulated_codes_are_numbered() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(31);
    let others = [NO_TERM, EXPANDED | 14, 3, 1 << 32, 1 << 32 | 1];
    for seed in 0..3 {
        let mut machine = Emulated::new(emulator.clone(), seed);
        let count = 1200;
        let slots = 2048;
        let code = |random: &mut Random| match random.below(9) {
            0 => others[random.below(5) as usize],
            1 => code_of_number(random.below(200)),
            _ => code_of(random.below(700).to_string().as_bytes()).unwrap(),
        };
        let codes = Vec::from_iter((0..2 * count).map(|_| code(&mut random)));
        let coded = Vec::from_iter((0u64..).zip(&codes).flat_map(|(member, &code)| [code, member]));
        put(&mut machine, InvertArray::Told, &long_words(&coded));
        let foreign = [[7, 8], [9, 10]];
        put(&mut machine, InvertArray::ForeignMeanings, &words(foreign.as_flattened()));
        put(&mut machine, InvertArray::Terms, &[0; 4]);
        put(&mut machine, InvertArray::TermCodes, &vec![0; 8 * slots as usize]);
        put(&mut machine, InvertArray::Meanings, &vec![0; 16 * count as usize]);
        let empty = |machine: &mut Emulated, slots: u32| {
            put(machine, InvertArray::TermSlots, &vec![0; 8 * slots as usize]);
            put(machine, InvertArray::SlotTerms, &vec![0; 4 * slots as usize]);
        };
        empty(&mut machine, slots);
        let number = |first: u32, slots| {
            let at = u64::from(first);
            let from = InvertArray::Told;
            let to = InvertArray::Meanings;
            number_terms(&ArrayTerms { from, first: at, count, to, place: at }, slots)
        };
        machine.run(&number(0, slots)).unwrap();
        empty(&mut machine, 2 * slots);
        machine.run(&[fill_table(count, 2 * slots)]).unwrap();
        machine.run(&number(count, 2 * slots)).unwrap();
        let mut distinct = Vec::from_iter(codes.iter().filter(|&code| code >> 33 != 0));
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(get(&mut machine, InvertArray::Terms, 1), [distinct.len() as u32]);
        let by_number = get(&mut machine, InvertArray::TermCodes, 2 * distinct.len());
        let told = get(&mut machine, InvertArray::Meanings, 4 * count as usize);
        for ((member, &code), told) in (0u32..).zip(&codes).zip(told.chunks(2)) {
            match code {
                code if code >> 33 != 0 => {
                    let at = 2 * told[0] as usize;
                    let found = u64::from(by_number[at + 1]) << 32 | u64::from(by_number[at]);
                    assert_eq!((found, told[1]), (code, member));
                }
                code if code >> 32 != 0 => assert_eq!(told, foreign[code as u32 as usize]),
                _ => assert_eq!(told, [code as u32, member]),
            }
        }
    }
}

#[test]
fn twin_emulated_forms_have_the_codes_of_their_terms() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(29);
    let stop_words = |words: &[&str]| StopWords::from_words(words, Tokenizer::Words).unwrap();
    let of = |stemmer, stop_words| Analysis { stemmer, stop_words, ..Analysis::default() };
    for (seed, analysis) in [
        Analysis::default(),
        of(Stemmer::NONE, StopWords::english()),
        of(Stemmer::ENGLISH, StopWords::none()),
        of(Stemmer::ENGLISH, stop_words(&["sky", "internationalize", "caf\u{e9}", "9s", "z"])),
        of(Stemmer::PORTER, StopWords::english()),
    ]
    .into_iter()
    .enumerate()
    {
        let mut machine = Emulated::new(emulator.clone(), seed as u64);
        let forms = forms(&mut random, 6000);
        let known = 2;
        let count = forms.len() as u32;
        let mut places = vec![0, 0, 5];
        forms.iter().for_each(|form| places.push(places.last().unwrap() + form.len() as u32));
        put(&mut machine, InvertArray::Arena, &[b"known", forms.concat().as_bytes()].concat());
        put(&mut machine, InvertArray::FormPlaces, &words(&places));
        put(&mut machine, InvertArray::Counters, &[0; 4 * steps::COUNTERS]);
        let (plain, codes) = Plain::of(&analysis);
        put(&mut machine, InvertArray::StopWords, &long_words(&codes));
        put(&mut machine, InvertArray::Coded, &vec![0; 16 * forms.len()]);
        put(&mut machine, InvertArray::ForeignPlaces, &vec![0; 8 * forms.len()]);
        let byte_words = forms.concat().len().div_ceil(4);
        put(&mut machine, InvertArray::ForeignBytes, &vec![0; 4 * byte_words]);
        machine.run(&[code_forms(known, count, plain)]).unwrap();
        let coded = get(&mut machine, InvertArray::Coded, 4 * forms.len());
        let counters = get(&mut machine, InvertArray::Counters, steps::COUNTERS);
        let foreign_forms = counters[steps::FOREIGN_FORMS] as usize;
        let foreign_places = get(&mut machine, InvertArray::ForeignPlaces, 2 * foreign_forms);
        let bytes = words(&get(&mut machine, InvertArray::ForeignBytes, byte_words));
        let mut foreign = 0;
        for (form, coded) in forms.iter().zip(coded.chunks(4)) {
            let code = u64::from(coded[1]) << 32 | u64::from(coded[0]);
            // One of a length of which some stop words have no code is foreign, too.
            let expected =
                twin::code_form(&analysis, form).filter(|_| form.len() <= plain.longest as usize);
            match expected {
                Some(meaning) => {
                    assert_eq!((code, coded[2]), (meaning.code, meaning.member as u32), "{form}")
                }
                None => {
                    assert_eq!(code >> 32, 1, "{form}");
                    let at = 2 * code as u32 as usize;
                    let place = foreign_places[at] as usize;
                    let len = foreign_places[at + 1] as usize;
                    assert_eq!(len, form.len());
                    assert_eq!(&bytes[place..place + len], form.as_bytes());
                    foreign += 1;
                }
            }
        }
        assert_eq!(foreign, foreign_forms);
        assert_eq!(plain.longest, [16, 16, 16, 12, 0][seed]);
    }
}
