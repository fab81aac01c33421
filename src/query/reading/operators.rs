//! Operators of other engines in queries, which have no meaning here.

/// The first of what looks like an operator: a phrase in quotes, `+word`, `-word`, `!word`,
/// `field:word`, a weight behind `^`, a distance behind `~`, a wildcard, `AND`, `OR` and `NOT`
/// between words that are not all in capitals, `#name(`, or words around `TO` in brackets.
pub(crate) fn operator(text: &str) -> Option<&str> {
    if let Some((_, quoted)) = text.split_once('"')
        && let Some(end) = quoted.find('"')
        && end > 0
    {
        let start = text.len() - quoted.len() - 1;
        return text.get(start..start + end + 2);
    }
    if let Some(from) = text.find('[')
        && let Some(end) = text[from..].find(']')
        && text[from..from + end].contains(" TO ")
    {
        return text.get(from..from + end + 1);
    }
    let shouts = !text.contains(char::is_lowercase);
    let words = || text.split_whitespace();
    let last = words().count().saturating_sub(1);
    let of_words = |(at, word): &(usize, &str)| match *word {
        "AND" | "OR" => *at > 0 && *at < last && !shouts,
        "NOT" => *at < last && !shouts,
        "&&" | "||" => true,
        word => is_operator(word),
    };
    words().enumerate().find(of_words).map(|(_, word)| word)
}

fn is_operator(word: &str) -> bool {
    let word = word.trim_start_matches('(').trim_end_matches([')', ',', '.', ';']);
    let letter = |word: &str| word.starts_with(char::is_alphabetic);
    let signed = word.strip_prefix(['+', '-', '!']).is_some_and(letter);
    let field = word.split_once(':').is_some_and(|(name, value)| {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // An address is no field.
        plain && value.starts_with(char::is_alphanumeric)
    });
    let number = |text: &str| text.parse::<f32>().is_ok_and(f32::is_finite);
    let ends_in = |mark: char, may_be_bare: bool| {
        word.rsplit_once(mark).is_some_and(|(before, after)| {
            let of_word = before.ends_with(char::is_alphanumeric) && letter(before);
            of_word && (number(after) || may_be_bare && after.is_empty())
        })
    };
    let wild = word.split_once('*').is_some_and(|(before, after)| {
        let plain = |part: &str| part.chars().all(char::is_alphabetic);
        plain(before) && plain(after) && before.len() + after.len() > 1
    });
    let structured =
        word.strip_prefix('#').and_then(|word| word.split_once('(')).is_some_and(|(name, _)| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
        });
    signed || field || ends_in('^', false) || ends_in('~', true) || wild || structured
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
        ] {
            assert_eq!(operator(text), Some(found), "{text}");
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
            "who? #1 C# [x] a 5' 6\"",
            "",
        ] {
            assert_eq!(operator(text), None, "{text}");
        }
    }
}
