#!/usr/bin/env python3
"""Makes the tiny collection from the sentences in articles.txt, the same bytes every time.

    datasets/tiny/make.py            writes a.jsonl, b.jsonl.gz and collection.toml
    datasets/tiny/make.py --check    tells whether the files are what it would write

Only the standard library of Python 3 is used, and of it nothing whose output differs between
versions: numbers come from SplitMix64, and gzip is written here, since zlib's compressed bytes
depend on the zlib.
"""

import hashlib
import json
import pathlib
import re
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SEED = 1742
TOWNS = """Aldermoor Bramwick Carrowby Dunsel Ebberton Fenhythe Garvenstadt Hollinbrück Ister
Kessel Lörbach Marrowdale Nethercote Orlamond Pennick Quarrendon Sainte-Aurèle Tarnwick Ulmsted
Vörden Wexcombe Yarrowford""".split()
RIVERS = "Aske Breen Corve Dallow Elme Farl Grüne Hesk Ivel Lauter Mourne Nadder Orre Sill Tamble".split()
FIRST = "Agnes Barnaby Clara Dorothea Edmund Franziska Gideon Hanna Ivo Jonas Käthe Lorenz".split()
LAST = "Achterberg Birdwhistle Cawdrey Dörfler Eastlake Ferrand Gossage Hüttner Ironside Jolliffe".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
LEAST_WORDS = 60
# Numbers that look right before `th`, too.
NUMBERS = [*range(4, 21), *range(24, 31)]


class Random:
    """SplitMix64 (Steele, Lea, Flood 2014)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (z ^ (z >> 31)) % n

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def topics():
    """The topics of articles.txt: id, articles as (title, opening), shared sentences."""
    found = []
    for line in (HERE / "articles.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append((line.split()[1], [], []))
        elif line.startswith("= "):
            title, opening = line[2:].split(" | ")
            found[-1][1].append((title, opening))
        elif line.startswith("+ "):
            found[-1][2].append(line[2:])
    return found


def documents():
    """All documents in the order of the collection."""
    random = Random(SEED)
    made = []
    for topic, articles, shared in topics():
        deck = []
        for number, (title, opening) in enumerate(articles, 1):
            # Shared sentences are dealt like cards, so that all are used alike.
            hand, most = [], 4 + random.below(2)
            while len(hand) < most or len(" ".join([opening, *hand]).split()) < LEAST_WORDS:
                if not deck:
                    deck = list(shared)
                    random.shuffle(deck)
                card = deck.pop()
                if card not in hand:
                    hand.append(card)
            place = {
                "town": random.choice(TOWNS),
                "river": random.choice(RIVERS),
                "person": random.choice(FIRST) + " " + random.choice(LAST),
            }

            def fill(match):
                word = match.group(1)
                if word in place:
                    return place[word]
                if word == "year":
                    return str(1780 + random.below(119))
                return str(random.choice({"n": NUMBERS, "month": MONTHS, "season": SEASONS}[word]))

            story = re.sub(r"\{(\w+)\}", fill, " ".join(hand))
            made.append({"id": f"{topic}-{number:02}", "title": title, "contents": f"{opening}\n{story}"})
    random.shuffle(made)
    return made


def lines(documents):
    text = "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents)
    return text.encode()


class Bits:
    """Bits in the order of deflate, the lowest first."""

    def __init__(self):
        self.out, self.held, self.count = bytearray(), 0, 0

    def put(self, value, bits):
        self.held |= value << self.count
        self.count += bits
        while self.count >= 8:
            self.out.append(self.held & 255)
            self.held >>= 8
            self.count -= 8

    def code(self, value, bits):
        self.put(int(f"{value:0{bits}b}"[::-1], 2), bits)

    def symbol(self, s):
        """A literal or length, in the fixed code (RFC 1951, 3.2.6)."""
        if s < 144:
            self.code(0x30 + s, 8)
        elif s < 256:
            self.code(0x190 + s - 144, 9)
        elif s < 280:
            self.code(s - 256, 7)
        else:
            self.code(0xC0 + s - 280, 8)

    def ranged(self, value, classes, symbol):
        """The class of a length or distance, then its extra bits."""
        number = max(i for i, (base, _) in enumerate(classes) if base <= value)
        base, extra = classes[number]
        symbol(number)
        self.put(value - base, extra)


def classes(first, step, count):
    """Bases and extra bits: `step` classes of a size, then the size doubles."""
    found, base = [], first
    for i in range(count):
        extra = max(0, i // step - 1)
        found.append((base, extra))
        base += 1 << extra
    return found


LENGTHS = classes(3, 4, 28) + [(258, 0)]
DISTANCES = classes(1, 2, 30)


def gzip_member(data):
    """One gzip member without a time: a deflate block in the fixed code, matches found greedily."""
    bits = Bits()
    bits.put(1, 1)
    bits.put(1, 2)
    seen, at = {}, 0
    while at < len(data):
        best, distance = 0, 0
        for old in reversed(seen.get(data[at : at + 3], [])[-32:]):
            if at - old > 32768:
                break
            length = 0
            while length < 258 and at + length < len(data) and data[old + length] == data[at + length]:
                length += 1
            if length > best:
                best, distance = length, at - old
        if best < 3:
            best = 1
            bits.symbol(data[at])
        else:
            bits.ranged(best, LENGTHS, lambda n: bits.symbol(257 + n))
            bits.ranged(distance, DISTANCES, lambda n: bits.code(n, 5))
        for _ in range(best):
            seen.setdefault(data[at : at + 3], []).append(at)
            at += 1
    bits.symbol(256)
    bits.put(0, -bits.count % 8)
    head = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
    tail = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return head + bytes(bits.out) + tail


DESCRIPTOR = """\
# The tiny collection: for the demo, for tests, and for a first look. Written by make.py.

name = "tiny"
title = "Four hundred short articles on mills, rivers, crafts, animals and weather"
source = "written for millrace; towns, rivers and people are invented"
note = "made to be searched, not to be relied on: sentences of a topic are dealt out at random"
licence = "MIT OR Apache-2.0"
language = "en"
documents = {documents}
raw_bytes = {raw_bytes}
queries = {queries}
made_by = "datasets/tiny/make.py from datasets/tiny/articles.txt and queries.tsv"
"""


# What each query is about: an article has its topic in its name, and is relevant if that is the one.
TOPICS = {1: "mill", 2: "field", 3: "bridge", 4: "food", 5: "sea", 6: "music", 7: "farm", 8: "engine", 9: "cloth"}


def qrels(made):
    """The judgements, as trec_eval reads them."""
    names = sorted(document["id"] for document in made)
    rows = [(qid, name) for qid, topic in TOPICS.items() for name in names if name.startswith(topic)]
    return "".join(f"{qid} 0 {name} 1\n" for qid, name in rows).encode()


def files():
    """Names and bytes of the files that are made."""
    made = documents()
    half, quarter = len(made) // 2, len(made) // 4
    a, b, c = made[:half], made[half : half + quarter], made[half + quarter :]
    queries = (HERE / "queries.tsv").read_bytes()
    found = {
        "a.jsonl": lines(a),
        "b.jsonl.gz": gzip_member(lines(b)) + gzip_member(lines(c)),
        "qrels.txt": qrels(made),
    }
    descriptor = DESCRIPTOR.format(
        documents=len(made), raw_bytes=len(lines(made)), queries=queries.count(b"\n")
    )
    counts = {"a.jsonl": len(a), "b.jsonl.gz": len(b) + len(c)}
    for name, data in [*found.items(), ("queries.tsv", queries)]:
        descriptor += f'\n[[files]]\npath = "{name}"\nbytes = {len(data)}\n'
        if name in counts:
            descriptor += f"documents = {counts[name]}\n"
        descriptor += f'sha256 = "{hashlib.sha256(data).hexdigest()}"\n'
    found["collection.toml"] = descriptor.encode()
    return found


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    for name, data in files().items():
        path = HERE / name
        if not check:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            sys.exit(f"{name}: not what make.py writes")


main()
