use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// The codes of terms and the registers that a meaning stands for.
fn read(meaning: FormMeaning, expansions: &[FormMeaning]) -> (Vec<u64>, Vec<u64>) {
    if meaning.code == NO_TERM {
        return (Vec::new(), Vec::new());
    }
    if meaning.code >= 1 << 33 {
        return (vec![meaning.code], vec![meaning.member]);
    }
    assert!(meaning.code & EXPANDED != 0);
    let at = (meaning.code & !EXPANDED) as usize / 2;
    let FormMeaning { code: parts, member: terms } = expansions[at];
    let parts = &expansions[at + 1..][..parts as usize];
    let codes: Vec<u64> = parts.iter().map(|p| p.code).filter(|&c| c != NO_TERM).collect();
    assert_eq!(codes.len() as u64, terms);
    (codes, parts.iter().map(|part| part.member).collect())
}

fn strings(terms: &Terms) -> Vec<(u16, Vec<u8>)> {
    let mut strings = Vec::new();
    terms.for_each(|_, collection, suffix| strings.push((collection, suffix.to_vec())));
    strings
}

/// Forms mean what the analysis makes of them, in one call or in many, with one thread or several.
fn compare(forms: &[Vec<u8>], calls: usize, threads: usize) {
    let analysis = Analysis { fold: threads == 3, ..Analysis::default() };
    let mut reader = FormReader::new(analysis.clone(), threads);
    let mut learned = Forms::new(threads);
    let mut meanings = Vec::new();
    let mut expansions = Vec::new();
    for forms in forms.chunks(forms.len().div_ceil(calls).max(1)) {
        let read = reader.read(forms.len(), |i| &forms[i]);
        let (more, words) = learned.learn(&read, expansions.len());
        reader.give_back([read, ReadForms::default()]);
        meanings.extend(more);
        expansions.extend(words);
    }
    assert_eq!(meanings.len(), forms.len());
    // As a device numbers them.
    let mut codes: Vec<u64> =
        meanings.iter().flat_map(|&meaning| read(meaning, &expansions).0).collect();
    codes.sort_unstable();
    codes.dedup();
    let strings = strings(&learned.take(Arc::new(codes.clone())));
    let terms: HashMap<u64, _> = codes.into_iter().zip(strings).collect();
    for (form, &meaning) in forms.iter().zip(&meanings) {
        let mut expected = Vec::new();
        let mut sketch = Sketch::default();
        let mut found = Sketch::default();
        analysis.for_each_token(form, |token| {
            if let Some(term) = analysis.analyze_token(token) {
                let collection = trie_collection(&term);
                let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
                expected.push((collection, suffix.to_vec()));
                for_each_member(token, |hash| sketch.add(hash));
            }
        });
        let (of, members) = read(meaning, &expansions);
        assert_eq!(of.iter().map(|code| terms[code].clone()).collect::<Vec<_>>(), expected);
        let mut registers = [0; Sketch::REGISTERS];
        for member in members {
            let register = &mut registers[member as usize >> 8];
            *register = (member as u8).max(*register);
        }
        found.unite(&Sketch::of_registers(registers), |_, _| ());
        assert_eq!(found, sketch, "{form:?}");
    }
}

#[test]
fn many_forms_are_learned_by_several_threads() {
    let form = |i: u32| match i % 5 {
        0 => format!("caf\u{e9}{}\u{2014}{}", i % 900, i % 70).into_bytes(),
        1 => vec![b'a' + (i % 26) as u8; (i % 250) as usize + 1],
        _ => format!("w{}s", i % 9000).into_bytes(),
    };
    let forms: Vec<Vec<u8>> = (0..20_000).map(form).collect();
    compare(&forms, 2, 4);
    compare(&forms[..3000], 3, 1);
}

proptest! {
    #[test]
    fn oracle_forms_mean_what_the_analysis_says(
        forms in prop::collection::vec("[a-c0-1thens\u{e9}\u{3a3}\u{2014}\u{5317}\u{bd}\u{fb01}]{1,40}", 0..60),
        calls in 1usize..4, threads in 2usize..4,
    ) {
        let forms = forms.into_iter().map(String::into_bytes).collect::<Vec<_>>();
        compare(&forms, calls, threads);
    }

    /// Lower case of ASCII, which a device makes, changes no token.
    #[test]
    fn law_ascii_may_be_lower_case_before(form in "[A-Za-z\u{130}\u{3a3}\u{3c3}\u{df}\u{e9}\u{212a}\u{1c5}\u{307}]{1,12}") {
        let tokens = |text: &str| {
            let mut tokens = Vec::new();
            Analysis::default().tokenizer.for_each_token(text.as_bytes(), |t| tokens.push(t.to_owned()));
            tokens
        };
        prop_assert_eq!(tokens(&form), tokens(&form.to_ascii_lowercase()));
    }
}
