use super::*;

fn memo(most_bytes: usize) -> Memo<()> {
    Memo::new(Analysis::default(), most_bytes)
}

#[test]
fn forms_of_one_stem_are_one_term() {
    let mut m = memo(1 << 20);
    let run = m.term_of_token("running");
    assert_ne!(run, NO_TERM);
    assert_eq!(m.term_of_token("runs"), run);
    assert_eq!(m.term_of_token("running"), run);
    assert_eq!(m.term_of_token("the"), NO_TERM);
    let long = m.term_of_token("internationalisationally");
    assert_eq!(m.term_of_token("internationalisationally"), long);
    assert_ne!(m.term_of_token("na\u{ef}ve"), long);
    let term = *m.term(run);
    assert_eq!(m.suffix(&term), b"un", "`run` has three letters: only `r` is implied");
}

#[test]
fn each_piece_has_the_sketch_of_its_forms() {
    let mut m = memo(usize::MAX);
    let words = |from: u32, to: u32| (from..to).map(|i| format!("word{i}"));
    let forms = ["running", "runs", "the", "na\u{ef}ve", &"x".repeat(100)];
    let mut sketches = Vec::new();
    for round in 0..3 {
        for form in forms.iter().chain(if round == 1 { &forms[..] } else { &[] }) {
            m.term_of_token(form);
        }
        sketches.push(m.end_piece());
    }
    assert_eq!(sketches[0], sketches[1], "a form counts once in a piece");
    assert_eq!(sketches[0], sketches[2], "and in each piece that has it");
    // Four forms that are no stop words, and four units more of the long one.
    assert!((7..=8).contains(&sketches[0].estimate()), "{}", sketches[0].estimate());
    words(0, 30_000).for_each(|word| _ = m.term_of_token(&word));
    let estimate = m.end_piece().estimate();
    assert!((28_500..31_500).contains(&estimate), "{estimate}");
    words(5000, 6000).for_each(|word| _ = m.term_of_token(&word));
    let known = m.end_piece();
    let mut fresh = memo(0);
    words(5000, 6000).for_each(|word| _ = fresh.term_of_token(&word));
    assert_eq!(known, fresh.end_piece(), "what a memo knows makes no difference");
    assert_eq!(m.end_piece(), Sketch::default());
}

#[test]
fn grows_and_forgets() {
    let mut m = memo(1 << 20);
    let numbers: Vec<u32> = (0..20_000).map(|i| m.term_of_token(&format!("w{i}"))).collect();
    for (i, &n) in numbers.iter().enumerate() {
        assert_eq!(m.term_of_token(&format!("w{i}")), n);
    }
    assert!(!m.forget_if_full(), "the piece is not at its end");
    m.end_piece();
    let last = *m.term(numbers[19_999]);
    assert_eq!(m.suffix(&last), b"19999", "terms are known until they are laid out");
    assert!(m.forget_if_full());
    assert!(m.is_empty());
    assert!(!m.forget_if_full());
    assert_eq!(m.term_of_token("w7"), 1);
}

/// Forms change places when a piece has one that is not in its first slot, and all are found as
/// before.
#[test]
fn forms_are_found_wherever_they_stand() {
    let mut m = memo(1_650_000);
    let numbers: Vec<u32> = (0..9500).map(|i| m.term_of_token(&format!("w{i}"))).collect();
    assert_eq!(m.slots.len(), 1 << 14);
    for step in [1, 7, 3001, 9499, 1] {
        m.end_piece();
        assert!(!m.forget_if_full());
        for at in (0..numbers.len()).map(|i| i * step % numbers.len()) {
            assert_eq!(m.term_of_token(&format!("w{at}")), numbers[at]);
        }
        assert_eq!(m.used, numbers.len());
    }
}

/// A table that would be too large with twice the slots is filled instead, and kept when it is
/// emptied.
#[test]
fn slots_are_filled_where_there_is_no_room_for_more() {
    // 16,384 slots take 512 KiB, a term 64 bytes and more.
    let mut m = memo(1_650_000);
    for _ in 0..2 {
        let mut forms = 0;
        loop {
            (forms..forms + 500).for_each(|i| _ = m.term_of_token(&format!("w{i}")));
            forms += 500;
            assert_eq!(m.term_of_token("w7"), 8);
            m.end_piece();
            if m.forget_if_full() {
                break;
            }
        }
        assert!((10_000..=13_000).contains(&forms), "{forms} forms");
        assert_eq!(m.slots.len(), 1 << 14);
    }
}
