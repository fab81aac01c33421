//! The collections that tests make up, all from seeds.

use std::fmt::Write;

/// Random numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number from 0 to below 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Distinct words of a vocabulary, drawn about as in Zipf's law: the n-th in proportion to 1 / n.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new(random: &mut Random, count: usize) -> Self {
        const SYLLABLES: [&str; 20] = [
            "ka", "ro", "mil", "ter", "an", "so", "que", "bi", "la", "no", "tra", "pe", "u", "sti",
            "gor", "wa", "ein", "zy", "he", "dom",
        ];
        const ENDINGS: [&str; 10] =
            ["", "", "", "s", "ing", "ed", "ation", "fulness", "ies", "ically"];
        const ODD: [&str; 8] =
            ["café", "Straße", "北京", "ΟΔΥΣΣΕΥΣ", "İzmir", "naïve", "Ünïcode", "данные"];
        let mut words: Vec<String> =
            ["the", "of", "and", "to", "in"].map(String::from).into_iter().collect();
        while words.len() < count {
            let mut word = String::new();
            match random.below(40) {
                0 => word += random.pick(&ODD),
                1 => write!(word, "{}", random.below(100_000)).unwrap(),
                _ => (0..1 + random.below(3)).for_each(|_| word += random.pick(&SYLLABLES)),
            }
            word += random.pick(&ENDINGS);
            if random.below(10) == 0 {
                word = word.to_uppercase();
            }
            words.push(word);
        }
        words.sort_unstable();
        words.dedup();
        // A fixed shuffle, so that frequent words are of all kinds.
        for i in (1..words.len()).rev() {
            words.swap(i, random.below(i + 1));
        }
        Self(words)
    }

    pub(crate) fn draw<'a>(&'a self, random: &mut Random) -> &'a str {
        let rank = (self.0.len() as f64 + 1.0).powf(random.share()) as usize - 1;
        &self.0[rank.min(self.0.len() - 1)]
    }

    /// Some words with spaces between them.
    pub(crate) fn phrase(&self, random: &mut Random, count: usize) -> String {
        (0..count).map(|_| self.draw(random)).collect::<Vec<_>>().join(" ")
    }
}

/// A document of a generated collection; without a name it is named for its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doc {
    pub(crate) name: Option<String>,
    pub(crate) text: String,
}

/// A collection made from a seed.
pub(crate) struct Collection {
    pub(crate) words: Words,
    pub(crate) docs: Vec<Doc>,
}

impl Collection {
    /// Makes `count` documents of `mean` words in the mean; some are empty, some of equal text, and
    /// all have names.
    pub(crate) fn new(seed: u64, count: usize, mean: usize) -> Self {
        let mut random = Random::new(seed);
        let words = Words::new(&mut random, 3000 + count / 2);
        let mut docs: Vec<Doc> = Vec::with_capacity(count);
        for number in 0..count {
            let mut text = String::new();
            if number > 0 && random.below(50) == 0 {
                text.clone_from(&docs[random.below(number)].text);
            } else if random.below(40) > 0 {
                for _ in 0..1 + random.below(mean * 2) {
                    text += words.draw(&mut random);
                    text +=
                        random.pick(&[" ", " ", " ", " ", ", ", ". ", "\n", "\t", " \"", " — "]);
                }
            }
            docs.push(Doc { name: Some(format!("doc-{seed}-{number}")), text });
        }
        Self { words, docs }
    }

    /// Takes the name of every `nth` document away.
    pub(crate) fn unname(mut self, nth: usize) -> Self {
        self.docs.iter_mut().step_by(nth).for_each(|doc| doc.name = None);
        self
    }

    pub(crate) fn jsonl(&self) -> Vec<u8> {
        jsonl(&self.docs)
    }

    /// Queries of all kinds, without line ends or tabs.
    pub(crate) fn queries(&self, seed: u64, count: usize) -> Vec<String> {
        let mut random = Random::new(seed);
        let words = &self.words;
        (0..count)
            .map(|number| {
                let count = 1 + random.below(5);
                let phrase = words.phrase(&mut random, count);
                match number % 12 {
                    0 => format!("{phrase} {phrase} {}", words.draw(&mut random)),
                    1 => "the of and".to_string(),
                    2 => format!("{phrase} zzzunheardof"),
                    3 => "zzzunheardof qqqunheardof".to_string(),
                    4 => format!("The, {}; of!", phrase.to_uppercase()),
                    5 => "?!".to_string(),
                    _ => phrase,
                }
            })
            .collect()
    }
}

/// Documents as JSON lines, strings escaped in all the ways that JSON knows.
pub(crate) fn jsonl(docs: &[Doc]) -> Vec<u8> {
    let mut random = Random::new(docs.len() as u64);
    let mut out = Vec::new();
    for doc in docs {
        let text = match random.below(3) {
            0 => escape_all(&doc.text),
            _ => serde_json::to_string(&doc.text).unwrap(),
        };
        let name = doc.name.as_ref().map(|name| serde_json::to_string(name).unwrap());
        let line = match (name, random.below(3)) {
            (None, _) => format!("{{\"contents\": {text}}}"),
            (Some(name), 0) => format!("{{\"contents\":{text},\"id\":{name}}}"),
            (Some(name), 1) => {
                format!("{{\"id\": {name}, \"n\": [1, {{\"a\": null}}], \"contents\": {text}}}")
            }
            (Some(name), _) => format!("{{\"id\": {name}, \"contents\": {text}}}"),
        };
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out
}

/// A JSON string in which everything but ASCII letters, digits and spaces is escaped.
fn escape_all(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == ' ' {
            out.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|u| write!(out, "\\u{u:04x}").unwrap());
        }
    }
    out + "\""
}

/// Documents as lines of name, tab, text, with white space in the text made spaces.
pub(crate) fn tsv(docs: &[Doc]) -> Vec<u8> {
    let mut out = String::new();
    for doc in docs {
        let text = doc.text.replace(['\n', '\r', '\t'], " ");
        writeln!(out, "{}\t{text}", doc.name.as_deref().unwrap_or("")).unwrap();
    }
    out.into_bytes()
}
