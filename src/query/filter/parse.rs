//! Reads filters.
//!
//! ```text
//! either  = both ("or" both)*           both = part ("and" part)*
//! part    = "not" part | "(" either ")" | "exists" name | name test
//! test    = ("=" | "!=" | "<" | "<=" | ">" | ">=") value | ["not"] "in" "(" value ("," value)* ")"
//! ```
//!
//! Words of the language are in any case. A value is in single or double quotes, in which a
//! backslash stands before a quote or itself, or has none of `( ) , = < > !`, quotes and white
//! space; a name likewise, with backticks for quotes.

/// Parts that may lie in each other.
const MOST_DEEP: usize = 64;
/// Bytes of a filter, at most.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// A filter as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FilterSyntax {
    All(Vec<FilterSyntax>),
    Any(Vec<FilterSyntax>),
    Not(Box<FilterSyntax>),
    Exists(String),
    /// A column, and values with any of which it is compared.
    Compare(String, FilterTest, Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterTest {
    Equal,
    Other,
    Below { within: bool },
    Above { within: bool },
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Neither in quotes nor a sign.
    Bare(String),
    Quoted(String),
    Name(String),
    Sign(&'static str),
}

const SIGNS: [&str; 10] = ["<=", ">=", "!=", "==", "<", ">", "=", "(", ")", ","];

struct Reader {
    /// With the places where they begin, in bytes from 1.
    tokens: Vec<(usize, Token)>,
    at: usize,
    deep: usize,
}

/// Reads a filter.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn read(filter: &str) -> Result<FilterSyntax, String> {
    if filter.len() > MOST_BYTES {
        return Err(format!("has {} bytes; the most is {MOST_BYTES}", filter.len()));
    }
    let mut reader = Reader { tokens: tokens(filter)?, at: 0, deep: 0 };
    let read = reader.either()?;
    match reader.peek() {
        None => Ok(read),
        Some(_) => Err(reader.expected("`and`, `or` or the end")),
    }
}

fn tokens(filter: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens = Vec::new();
    let mut rest = filter;
    loop {
        rest = rest.trim_start();
        let start = filter.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let token = if let '"' | '\'' | '`' = first {
            let (text, behind) = quoted(&rest[1..], first)
                .ok_or_else(|| format!("has no {first} to end the one at byte {}", start + 1))?;
            rest = behind;
            if first == '`' { Token::Name(text) } else { Token::Quoted(text) }
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            rest = &rest[sign.len()..];
            Token::Sign(sign)
        } else {
            let ends = |c: char| c.is_whitespace() || "()=<>!,\"'`".contains(c);
            let end = rest.find(ends).unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("has a `{first}` at byte {}", start + 1));
            }
            let (word, behind) = rest.split_at(end);
            rest = behind;
            Token::Bare(word.to_string())
        };
        tokens.push((start + 1, token));
    }
}

/// What stands before the closing quote, and what behind it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next()?.1 {
                c if c == quote || c == '\\' => found.push(c),
                other => found.extend(['\\', other]),
            },
            c if c == quote => return Some((found, &text[at + c.len_utf8()..])),
            c => found.push(c),
        }
    }
    None
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Bare(bare)) if bare.eq_ignore_ascii_case(word));
        self.at += usize::from(is);
        is
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(is);
        is
    }

    fn expected(&self, what: &str) -> String {
        match self.tokens.get(self.at) {
            None => format!("ends where {what} is expected"),
            Some((at, token)) => {
                let found = match token {
                    Token::Bare(text) | Token::Quoted(text) | Token::Name(text) => text,
                    Token::Sign(sign) => *sign,
                };
                format!("has `{found}` at byte {at}, where {what} is expected")
            }
        }
    }

    fn either(&mut self) -> Result<FilterSyntax, String> {
        let mut parts = vec![self.both()?];
        while self.take_word("or") {
            parts.push(self.both()?);
        }
        Ok(if parts.len() > 1 { FilterSyntax::Any(parts) } else { parts.remove(0) })
    }

    fn both(&mut self) -> Result<FilterSyntax, String> {
        let mut parts = vec![self.part()?];
        while self.take_word("and") {
            parts.push(self.part()?);
        }
        Ok(if parts.len() > 1 { FilterSyntax::All(parts) } else { parts.remove(0) })
    }

    fn part(&mut self) -> Result<FilterSyntax, String> {
        self.deep += 1;
        if self.deep > MOST_DEEP {
            return Err(format!("has more than {MOST_DEEP} parts in each other"));
        }
        let part = if self.take_word("not") {
            FilterSyntax::Not(Box::new(self.part()?))
        } else if self.take_sign("(") {
            let inner = self.either()?;
            if !self.take_sign(")") {
                return Err(self.expected("`)`"));
            }
            inner
        } else if self.take_word("exists") {
            FilterSyntax::Exists(self.name()?)
        } else {
            let name = self.name()?;
            self.test(name)?
        };
        self.deep -= 1;
        Ok(part)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Bare(name) | Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected("the name of a column")),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Bare(value) | Token::Quoted(value)) => {
                let value = value.clone();
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn test(&mut self, name: String) -> Result<FilterSyntax, String> {
        let is_not = self.take_word("not");
        if self.take_word("in") {
            if !self.take_sign("(") {
                return Err(self.expected("`(`"));
            }
            let mut values = vec![self.value()?];
            while self.take_sign(",") {
                values.push(self.value()?);
            }
            if !self.take_sign(")") {
                return Err(self.expected("`,` or `)`"));
            }
            let comparison = if is_not { FilterTest::Other } else { FilterTest::Equal };
            return Ok(FilterSyntax::Compare(name, comparison, values));
        }
        let comparison = match self.peek() {
            Some(Token::Sign("=" | "==")) if !is_not => FilterTest::Equal,
            Some(Token::Sign("!=")) if !is_not => FilterTest::Other,
            Some(Token::Sign("<")) if !is_not => FilterTest::Below { within: false },
            Some(Token::Sign("<=")) if !is_not => FilterTest::Below { within: true },
            Some(Token::Sign(">")) if !is_not => FilterTest::Above { within: false },
            Some(Token::Sign(">=")) if !is_not => FilterTest::Above { within: true },
            _ => return Err(self.expected("=, !=, <, <=, >, >= or in")),
        };
        self.at += 1;
        Ok(FilterSyntax::Compare(name, comparison, vec![self.value()?]))
    }
}
