use super::*;
use crate::text::tokenizer::for_each_token;
use proptest::prelude::*;

#[derive(Default)]
struct Collect(Vec<String>);

impl Stretches for Collect {
    fn keys(&mut self, keys: &[TokenKey], _: &[u32]) {
        for &key in keys {
            let (bytes, len) = key_bytes(key);
            self.0.push(std::str::from_utf8(&bytes[..len]).unwrap().to_string());
        }
    }
    fn long(&mut self, token: &[u8]) {
        assert!(token.len() > KEY_BYTES);
        self.0.push(std::str::from_utf8(token).unwrap().to_lowercase());
    }
    fn mixed(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_ascii());
        for_each_token(bytes, |t| self.0.push(t.to_string()));
    }
}

fn check(text: &[u8]) {
    let mut expected = Vec::new();
    for_each_token(text, |t| expected.push(t.to_string()));
    expected.sort();
    for level in [Level::Portable, level()] {
        let mut scanner = Scanner { level, ..Scanner::new() };
        let mut got = Collect::default();
        scanner.scan(b"an earlier text that leaves its places behind", &mut got);
        got.0.clear();
        scanner.scan(text, &mut got);
        got.0.sort();
        assert_eq!(got.0, expected, "{level:?}: {text:?}");
    }
}

#[test]
fn oracle_corner_cases() {
    check(b"");
    check(b" ");
    check(b"a");
    check(b"The quick-brown FOX, 42 times; x86_64.");
    check("ab\u{e9}cd \u{130}stanbul STRASSE\u{df} \u{3a3}\u{391}\u{3a3} na\u{ef}ve".as_bytes());
    check(b"abcdefghijklmnop abcdefghijklmnopq ABCDEFGHIJKLMNOP");
    check(b"cut \xe2\x82 short \xff\xfe a\xffb \xc3");
    for len in [63, 64, 65, 127, 128, 129, 300] {
        check(&vec![b'x'; len]);
        let mut text = vec![b'.'; len];
        text[len - 1] = b'Q';
        check(&text);
        text[62] = 0xc3;
        check(&text);
    }
    // A stretch over three words of bits, high only in the middle.
    let mut text = vec![b'w'; 200];
    text[100..102].copy_from_slice("\u{e9}".as_bytes());
    check(&text);
}

#[test]
fn keys_and_bytes_are_inverse() {
    for token in ["a", "ab", "12345678", "123456789", "abcdefghijklmnop"] {
        let (bytes, len) = key_bytes(key_of(token.as_bytes()).unwrap());
        assert_eq!(&bytes[..len], token.as_bytes());
    }
    assert_eq!(key_of(b"abcdefghijklmnopq"), None);
    assert_eq!(key_of("\u{e9}".as_bytes()), None);
    assert_eq!(key_of(b""), None);
}

proptest! {
    /// Includes bytes that no key has, and zeros, which fill keys up.
    #[test]
    fn oracle_keys_have_small_letters_and_digits(
        token in prop::collection::vec(prop::sample::select(b"\0az09mm55{`/:AZ\x80\xe1\xff\x1f".to_vec()), 0..20),
        plain in 0usize..20,
    ) {
        let mut token = token;
        token.iter_mut().skip(plain % 3).take(plain).for_each(|byte| *byte = b'a' + *byte % 26);
        let mut whole = [0; KEY_BYTES];
        whole.iter_mut().zip(&token).for_each(|(to, byte)| *to = *byte);
        let [low, high] = [0, 8].map(|at| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()));
        let fits = (1..=KEY_BYTES).contains(&token.len())
            && token.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        prop_assert_eq!(key_of(&token), fits.then_some([low, high]));
    }

    #[test]
    fn oracle_any_text(text in "[a-zA-Z0-9 .,\u{e9}\u{130}\u{3a3}\u{4e2d}]{0,300}") {
        check(text.as_bytes());
    }

    #[test]
    fn oracle_any_bytes(text in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&text);
    }
}
