//! Operators of other engines in queries of words, where they have no meaning.

/// What comes nearest to an operator; the name of a setting stands behind `@`.
const ALL: &str = "`@mode and` finds only what has all words of a query";
const ANY: &str = "`@mode or` finds what has any word of a query";
const WEIGHTS: &str = "`@query-format weights` takes terms of the index with their weights";
const NOTHING: &str = "signs, brackets, fields, AND, OR and NOT are read with `@syntax operators`, and nothing else is";

/// What looks like an operator, and what to do instead; the first, unless another helps more: a
/// phrase in quotes, `+word`, `-word`, `!word`, `field:word`, `year>1900`, a weight behind `^`, a
/// distance behind `~` or `NEAR/`, a wildcard, `/pattern/`, `|`, `AND`, `OR`, `NEAR` and `NOT`
/// between words that are not all in capitals, `#name(`, or words around `TO` in brackets.
pub(super) fn operator(text: &str) -> Option<(&str, &'static str)> {
    // One thread reads all queries, most of which have small letters alone.
    let is_of_one = |byte: u8| match byte {
        b'A'..=b'Z' | b'"' | b'[' | b'|' | b'&' | b'#' | b'+' | b'-' | b'!' | b'^' => true,
        _ => matches!(byte, b'~' | b':' | b'*' | b'/' | b'<' | b'>'),
    };
    if !text.bytes().any(is_of_one) {
        return None;
    }
    let phrase = text.split_once('"').and_then(|(before, quoted)| {
        let end = quoted.find('"').filter(|end| *end > 0)?;
        text.get(before.len()..before.len() + end + 2)
    });
    let range = text.find('[').and_then(|from| {
        let range = &text[from..=from + text[from..].find(']')?];
        range.contains(" TO ").then_some(range)
    });
    let shouts = !text.contains(char::is_lowercase);
    let words: Vec<&str> = text.split_whitespace().collect();
    let of_word = |at: usize| {
        let ends = at + 1 == words.len();
        let between = at > 0 && !ends;
        let instead = match words[at] {
            "NOT" if !ends && !shouts => NOTHING,
            "AND" | "OR" | "NEAR" | "NOT" if !between || shouts => return None,
            "|" if !between => return None,
            "AND" | "&&" => ALL,
            "OR" | "|" | "||" => ANY,
            "NEAR" => NOTHING,
            word => instead_of(word)?,
        };
        Some((words[at], instead))
    };
    let whole = phrase.into_iter().chain(range).map(|found| (found, NOTHING));
    let helps = |found: &(_, &str)| [ALL, WEIGHTS, ANY].iter().position(|text| *text == found.1);
    whole.chain((0..words.len()).filter_map(of_word)).min_by_key(|found| helps(found).unwrap_or(9))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What to do instead of a word that looks like an operator.
fn instead_of(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches('(').trim_end_matches([')', ',', '.', ';']);
    let letter = |word: &str| word.starts_with(char::is_alphabetic);
    let number = |text: &str| text.parse::<f32>().is_ok_and(f32::is_finite);
    let signed = |signs: &[char]| word.strip_prefix(signs).is_some_and(letter);
    // A mark behind a word, and whether what stands behind it is such.
    let ends_in = |mark: char, is: &dyn Fn(&str) -> bool| {
        word.rsplit_once(mark).is_some_and(|(before, after)| {
            before.ends_with(char::is_alphanumeric) && letter(before) && is(after)
        })
    };
    let structured = word.strip_prefix('#').and_then(|word| word.split_once('(')).map(|(n, _)| n);
    let structure =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
    // An address is no field.
    let field = word
        .split_once(':')
        .is_some_and(|(name, value)| is_name(name) && value.starts_with(char::is_alphanumeric));
    let plain = |part: &str| part.chars().all(char::is_alphabetic);
    let wild = word.split_once('*').is_some_and(|(before, after)| {
        plain(before) && plain(after) && before.len() + after.len() > 1
    });
    let near = word.split_once('/').is_some_and(|(name, words)| {
        ["NEAR", "ADJ", "PRE", "W"].contains(&name) && words.parse::<u16>().is_ok()
    });
    let pattern = word.strip_prefix('/').and_then(|word| word.strip_suffix('/'));
    let pattern = pattern.is_some_and(|pattern| !pattern.is_empty() && !pattern.contains('/'));
    // `p<0.05` is text.
    let bound = word.split_once(['<', '>']).is_some_and(|(name, number)| {
        let number = number.trim_start_matches('=').starts_with(|c: char| c.is_ascii_digit());
        number && name.len() > 1 && is_name(name.trim_end_matches(':'))
    });
    Some(match structured {
        Some("and" | "band") => ALL,
        Some("or" | "combine") => ANY,
        Some("weight" | "wsum") => WEIGHTS,
        Some(name) if structure(name) => NOTHING,
        _ if signed(&['+']) => ALL,
        _ if ends_in('|', &letter) => ANY,
        _ if ends_in('^', &number) => WEIGHTS,
        _ if ends_in('~', &|after| after.is_empty() || number(after)) => NOTHING,
        _ if signed(&['-', '!']) || field || wild || near || pattern || bound => NOTHING,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_engines_read_is_found() {
        for (text, found) in [
            ("\"a phrase\" b", "\"a phrase\""),
            ("a -b", "-b"),
            ("+a b", "+a"),
            ("title:a", "title:a"),
            ("dark^3 x", "dark^3"),
            ("x (dark^0.5)", "(dark^0.5)"),
            ("obama~2", "obama~2"),
            ("obama~", "obama~"),
            ("mill*", "mill*"),
            ("m*ll", "m*ll"),
            ("dark AND matter", "AND"),
            ("dark AND NOT family", "AND"),
            ("NOT family", "NOT"),
            ("a || b", "||"),
            ("#combine(dark matter)", "#combine(dark"),
            ("#1(a b)", "#1(a"),
            ("x [dark TO matter]", "[dark TO matter]"),
            ("dark | matter", "|"),
            ("(dark|matter)", "(dark|matter)"),
            ("dark NEAR/3 matter", "NEAR/3"),
            ("dark NEAR matter", "NEAR"),
            ("/[dm]ark/ x", "/[dm]ark/"),
            ("films year>1900", "year>1900"),
            ("films (year:<=1900)", "(year:<=1900)"),
        ] {
            assert_eq!(operator(text).map(|found| found.0), Some(found), "{text}");
        }
    }

    #[test]
    fn what_there_is_instead_is_named() {
        for (text, found, instead) in [
            ("dark AND matter", "AND", ALL),
            ("\"dark matter\" && x", "&&", ALL),
            ("-x +dark", "+dark", ALL),
            ("#band(dark matter)", "#band(dark", ALL),
            ("dark OR matter", "OR", ANY),
            ("dark | matter", "|", ANY),
            ("title:dark|light", "title:dark|light", ANY),
            ("#combine(dark matter)", "#combine(dark", ANY),
            ("dark^2 matter", "dark^2", WEIGHTS),
            ("#weight(2 dark 1 matter)", "#weight(2", WEIGHTS),
            ("dark NOT matter", "NOT", NOTHING),
            ("mill* title:x", "mill*", NOTHING),
        ] {
            assert_eq!(operator(text), Some((found, instead)), "{text}");
        }
    }

    #[test]
    fn plain_words_are_no_operators() {
        for text in [
            "well-known a - b",
            "http://x.y/z 3:4",
            "WAR AND PEACE",
            "AND gates in logic",
            "portland OR",
            "5*3 c* f***",
            "x^y 2^10",
            "~ 5 ~approx",
            "queen 's dark / matter { x } ?",
            "| a b |",
            "a/b OS/2 and/or house w/3 rooms",
            "usr /usr/bin/ //",
            "p<0.05 vector<int> a -> b 3 > 2 <3",
            "NEAR the end NEAR",
            "who? #1 C# [x] a 5' 6\"",
            "",
        ] {
            assert_eq!(operator(text), None, "{text}");
        }
    }
}
