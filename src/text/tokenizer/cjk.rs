//! Tokens of Chinese, Japanese and Korean texts, which have few spaces or none between words:
//! overlapping pairs of characters, *bigrams*, as by Lucene's `CJKAnalyzer`. This needs no
//! dictionary, and a query finds the documents that have its characters side by side.
//!
//! - A run of letters of Han, Hiragana, Katakana or Hangul becomes its bigrams: 北京大学 is 北京, 京大, 大学.
//!   A run of a single letter is a token by itself.
//! - What stands between such runs is a token: `2026年` is `2026` and 年.
//! - Widths are folded first: full-width Latin letters and digits become ASCII, half-width Katakana
//!   the usual ones, with their voice marks: `ＭＰ３` is `mp3`, ﾊﾟﾘ is パリ.
//!
//! A token without any such character is unchanged, so that other texts have the terms of
//! [`Words`](super::Tokenizer::Words).

use super::Class;
use std::borrow::Cow;

/// The first byte of U+1100, the first letter that is cut; earlier ones have smaller first bytes.
const FIRST_BYTE: u8 = 0xe1;

/// Half-width Katakana from U+FF65 on, without voice marks, in the usual width.
const KATAKANA: [char; 57] = [
    '・', 'ヲ', 'ァ', 'ィ', 'ゥ', 'ェ', 'ォ', 'ャ', 'ュ', 'ョ', 'ッ', 'ー', 'ア', 'イ', 'ウ', 'エ',
    'オ', 'カ', 'キ', 'ク', 'ケ', 'コ', 'サ', 'シ', 'ス', 'セ', 'ソ', 'タ', 'チ', 'ツ', 'テ', 'ト',
    'ナ', 'ニ', 'ヌ', 'ネ', 'ノ', 'ハ', 'ヒ', 'フ', 'ヘ', 'ホ', 'マ', 'ミ', 'ム', 'メ', 'モ', 'ヤ',
    'ユ', 'ヨ', 'ラ', 'リ', 'ル', 'レ', 'ロ', 'ワ', 'ン',
];

/// Calls `f` with the tokens of `token`, a lower-cased maximal run of letters and digits.
pub(super) fn for_each_part(token: &str, f: &mut impl FnMut(&str)) {
    if token.bytes().all(|byte| byte < FIRST_BYTE) {
        return f(token);
    }
    let text = fold_widths(token);
    // The start of the run of other letters that is not passed on yet.
    let mut word = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((start, letter)) = letters.next() {
        if !is_cut(letter) {
            continue;
        }
        if word < start {
            f(&text[word..start]);
        }
        let mut before = start;
        let mut end = start + letter.len_utf8();
        let mut alone = true;
        while let Some((_, letter)) = letters.next_if(|&(_, letter)| is_cut(letter)) {
            let next = end + letter.len_utf8();
            f(&text[before..next]);
            before = end;
            end = next;
            alone = false;
        }
        if alone {
            f(&text[start..end]);
        }
        word = end;
    }
    if word < text.len() {
        f(&text[word..]);
    }
}

fn is_cut(letter: char) -> bool {
    matches!(letter,
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' // Hangul
        | '\u{3131}'..='\u{318e}' | '\u{ffa0}'..='\u{ffdc}'
        | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' // Hiragana
        | '\u{30a1}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' // Katakana
        | '\u{1aff0}'..='\u{1b16f}' // Kana of old
        // Han and marks of repetition
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{303c}'
        | '\u{2e80}'..='\u{2fd5}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The class of a letter or digit. Widths are folded and letters lower-cased before they are cut: a
/// paired letter is one that neither changes, alone or with its neighbours. So marks are not
/// paired, nor is Katakana that may take a voice mark.
pub(super) fn class(letter: char) -> Class {
    let is_plain = matches!(letter,
        '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    let is_voiced = || ['\u{ff9e}', '\u{ff9f}'].iter().any(|&mark| voiced(letter, mark).is_some());
    match letter {
        _ if is_plain && !is_voiced() => Class::Paired,
        '\u{ff65}'..='\u{ff9f}' => Class::Joined,
        _ if is_cut(letter) => Class::Joined,
        _ => Class::Word,
    }
}

fn fold_widths(token: &str) -> Cow<'_, str> {
    if !token.chars().any(|letter| matches!(letter, '\u{ff01}'..='\u{ff9f}')) {
        return Cow::Borrowed(token);
    }
    let mut folded = String::with_capacity(token.len());
    for letter in token.chars() {
        let number = letter as u32;
        match letter {
            '\u{ff01}'..='\u{ff5e}' => folded.push((number - 0xfee0) as u8 as char),
            '\u{ff65}'..='\u{ff9d}' => folded.push(KATAKANA[number as usize - 0xff65]),
            '\u{ff9e}' | '\u{ff9f}' => {
                let voiced = folded.chars().next_back().and_then(|before| voiced(before, letter));
                if voiced.is_some() {
                    folded.pop();
                }
                folded.push(voiced.unwrap_or(letter));
            }
            _ => folded.push(letter),
        }
    }
    Cow::Owned(folded)
}

/// The Katakana with a half-width voice mark, if there is one: カ and ﾞ are ガ, ハ and ﾟ are パ.
fn voiced(letter: char, mark: char) -> Option<char> {
    let further = |letters: &str, by| letters.contains(letter).then_some(by);
    let by = match mark {
        '\u{ff9e}' => further("カキクケコサシスセソタチツテトハヒフヘホ", 1)
            .or(further("ウ", 'ヴ' as u32 - 'ウ' as u32)),
        _ => further("ハヒフヘホ", 2),
    };
    char::from_u32(letter as u32 + by?)
}

#[cfg(test)]
mod tests {
    use crate::text::tokenizer::Tokenizer;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        Tokenizer::CjkBigram
            .for_each_token(text.as_bytes(), |token| tokens.push(token.to_string()));
        tokens
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(tokens(text).join(" "), expected, "{text}");
    }

    /// The results of Lucene's analyzer.
    #[test]
    fn runs_become_bigrams() {
        check("一二三四五六七八九十", "一二 二三 三四 四五 五六 六七 七八 八九 九十");
        check("一 二三四 五六七八九 十", "一 二三 三四 五六 六七 七八 八九 十");
        check("あいうえおabcかきくけこ", "あい いう うえ えお abc かき きく くけ けこ");
        check("あいうえおabんcかきくけ こ", "あい いう うえ えお ab ん c かき きく くけ こ");
        check("一 روبرت موير", "一 روبرت موير");
        check(
            "多くの学生が試験に落ちた。",
            "多く くの の学 学生 生が が試 試験 験に に落 落ち ちた",
        );
        check("훈민정음의 뜻", "훈민 민정 정음 음의 뜻");
        check("𩬅艱鍟䇹愯瀛", "𩬅艱 艱鍟 鍟䇹 䇹愯 愯瀛");
        check("ラーメン、佐々木", "ラー ーメ メン 佐々 々木");
    }

    #[test]
    fn other_letters_stay() {
        check("Café 2026年10月 ΟΔΟΣ北京", "café 2026 年 10 月 οδος 北京");
        check("The mill—naïve", "the mill naïve");
        check("", "");
    }

    #[test]
    fn widths_are_folded() {
        check("ＴｅｓｔＴＥＳＴ １２３４", "testtest 1234");
        check("ｶﾀｶﾅ", "カタ タカ カナ");
        check("ﾊﾟﾘ ｳﾞｨ ﾌﾞﾄﾞｳ ｱﾞ", "パリ ヴィ ブド ドウ アﾞ");
        check("ＭＰ３プレーヤー", "mp3 プレ レー ーヤ ヤー");
    }

    fn texts() -> impl Strategy<Value = String> {
        let letters =
            "aZ9éΣİ \u{307}北京々〇ひカーﾞﾟｶﾊＡ９훈ᄒ\u{20000}・。\u{ad}\u{3099}\u{11ab}\u{e0100}";
        let letter = prop::sample::select(letters.chars().collect::<Vec<_>>());
        let any = prop_oneof![9 => letter, 1 => any::<char>()];
        prop::collection::vec(any, 0..40).prop_map(|letters| letters.into_iter().collect())
    }

    /// The definition, letter by letter.
    fn naive(text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        let text = Tokenizer::CjkBigram.without_marks(text.as_bytes());
        Tokenizer::Words.for_each_token(&text, |word| {
            let letters: Vec<char> = super::fold_widths(word).chars().collect();
            for stretch in letters.chunk_by(|&a, &b| super::is_cut(a) == super::is_cut(b)) {
                match super::is_cut(stretch[0]) && stretch.len() > 1 {
                    true => tokens.extend(stretch.windows(2).map(String::from_iter)),
                    false => tokens.push(String::from_iter(stretch)),
                }
            }
        });
        tokens
    }

    proptest! {
        #[test]
        fn oracle_tokens_equal_the_naive_ones(text in texts()) {
            prop_assert_eq!(tokens(&text), naive(&text));
        }
    }
}
