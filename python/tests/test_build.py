"""Builds of documents and files, what they refuse, and what ends them."""

import collections
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import millrace


def names(path):
    index = millrace.Index(path)
    return [index.document(docid=docid)["name"] for docid in range(len(index))]


def test_pairs_dictionaries_and_a_generator(tmp_path):
    report = millrace.build(tmp_path / "a", [("x", "a mill"), (17, "two mills")], workers=1)
    assert (report["documents"], report["generation"], report["workers"]) == (2, 1, 1)
    assert report["seconds"] > 0
    assert names(tmp_path / "a") == ["x", "17"]
    rows = ({"docno": f"n{i}", "title": "the mill", "text": "by the river", "other": None} for i in range(700))
    report = millrace.build(tmp_path / "a", rows)
    assert (report["documents"], report["generation"], report["tokens"]) == (700, 2, 1400)
    assert names(tmp_path / "a") == [f"n{i}" for i in range(700)]
    report = millrace.build(
        tmp_path / "b", [{"key": 1, "body": "mill", "more": "river", "text": "no"}], id_field="key",
        text_field=["body", "more"],
    )
    assert report["tokens"] == 2
    assert names(tmp_path / "b") == ["1"]


def test_named_tuples_are_read_by_their_fields(tmp_path):
    def built(*documents, **options):
        millrace.build(tmp_path / "index", documents, stemmer="none", **options)
        index = millrace.Index(tmp_path / "index")
        return [(index.document(docid=docid)["name"], index.document(docid=docid)["tokens"]) for docid in range(len(index))]

    def named(*fields):
        return collections.namedtuple("Document", fields)

    for fields, values in [
        (("docno", "text"), ("n", "mill race")),
        (("text", "docno"), ("mill race", "n")),
        (("contents", "pid"), ("mill race", "n")),
        (("text", "title", "doc_id"), ("race", "mill", "n")),
        (("doc_id", "title", "text", "lang"), ("n", "mill", "race", 7)),
        # No field says that this is no pair.
        (("key", "text"), ("n", "mill race")),
        (("id", "words"), ("n", "mill race")),
        (("key", "words"), ("n", "mill race")),
    ]:
        assert built(named(*fields)(*values)) == [("n", 2)], fields
    assert built(named("more", "key")("mill race", "n"), id_field="key", text_field="more") == [("n", 2)]
    assert built(("a", "mill"), named("body", "id")("mill race", "b"), {"id": "c", "text": ""}) == [("a", 1), ("b", 2), ("c", 0)]
    for fields, said in [
        (("text", "key"), "none of the fields id, .* as its name"),
        (("title", "text"), "none of the fields id, .* as its name"),
        (("docno", "uid"), "none of the fields title"),
        (("a", "b", "c"), "none of the fields title"),
    ]:
        with pytest.raises(ValueError, match=f"document 1: it has {said}"):
            built(named(*fields)(*"xyz"[: len(fields)]))


LONG = "words of a long text that nobody finds " * 9


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"id": "a", "text": "mill", "abstract": LONG}, "9. % of the bytes of strings .* not indexed: abstract"),
        ({"id": "a", "title": "mill", "fulltext": LONG, "x": 7}, "not indexed: fulltext"),
        ({"id": "a", "text": "mill", "meta": {"notes": [LONG, {"more": LONG}]}}, "not indexed: meta"),
        ({"id": "a", "text": "mill", "vector": {"mill": 1.5}}, "learned vectors, which were left out"),
        (collections.namedtuple("Document", "docno title summary")("a", "mill", LONG), "not indexed: summary"),
    ],
)
def test_fields_that_are_left_out_are_warned_of(tmp_path, document, said):
    with pytest.warns(UserWarning, match=said):
        millrace.build(tmp_path / "index", [document])


def test_fields_of_later_documents_are_warned_of(tmp_path):
    documents = ({"id": str(n), "text": "mill"} | ({"abstract": LONG} if n > 500 else {}) for n in range(5000))
    with pytest.warns(UserWarning, match="not indexed: abstract"):
        millrace.build(tmp_path / "index", documents)


def test_fields_that_are_taken_or_small_are_not_warned_of(tmp_path):
    for document, options in [
        ({"id": "a", "abstract": LONG}, {}),
        ({"id": "a", "text": LONG, "lang": "en"}, {}),
        ({"id": "a", "text": "mill", "count": 7, "list": [1.5]}, {}),
        ({"id": "a", "text": "mill", "abstract": LONG}, {"text_field": "text"}),
        (("a", "mill"), {}),
    ]:
        millrace.build(tmp_path / "index", [document], **options)
    with pytest.warns(UserWarning, match="no document has these fields, .*: body, more"):
        millrace.build(tmp_path / "index", [{"id": "a", "x": "mill"}], text_field=["body", "x", "more"])
    with pytest.raises(ValueError, match="vectors are read from files"):
        millrace.build(tmp_path / "index", [{"id": "a", "vector": {"mill": 1}}], format="vectors")


def test_messages_name_what_the_program_gave(tmp_path):
    for documents, said in [
        ([], "the documents: this input is empty"),
        ([("a", "the of and"), ("b", "")], "no text in any of 2 documents: they have no word that is indexed"),
    ]:
        with pytest.raises(millrace.MillraceError, match=said) as raised:
            millrace.build(tmp_path / "index", documents)
        assert not re.search("worker|memory", str(raised.value))
    with pytest.warns(UserWarning, match=r"skipped: the documents: byte \d+: a document of 7"):
        millrace.build(tmp_path / "index", [("a", "mill"), ("b", "mill " * (14 << 20))], memory="1G")
    (tmp_path / "c.jsonl").write_text('{"id": 1, "text": "mill"}\nno JSON\n')
    with pytest.raises(millrace.MillraceError, match="c.jsonl: byte 26") as raised:
        millrace.build(tmp_path / "index", files=tmp_path / "c.jsonl", strict=True)
    assert "worker" not in str(raised.value)


def test_files_give_the_same_index(tmp_path, documents):
    lines = "".join(json.dumps({"id": name, "contents": text}) + "\n" for name, text in documents.items())
    (tmp_path / "c.jsonl").write_text(lines)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    millrace.build(tmp_path / "memory", documents.items(), workers=2)
    for name in ["c.jsonl", "c.jsonl.gz"]:
        millrace.build(tmp_path / name.replace(".", "-"), files=tmp_path / name)

    def postings(index):
        return (index / "runs/000000.postings").read_bytes()

    assert postings(tmp_path / "memory") == postings(tmp_path / "c-jsonl") == postings(tmp_path / "c-jsonl-gz")
    with pytest.warns(UserWarning, match="300 documents have the name of an earlier one"):
        report = millrace.build(tmp_path / "two", files=[tmp_path / "c.jsonl", str(tmp_path / "c.jsonl.gz")])
    assert (report["documents"], report["duplicate_names"]) == (600, 300)


def test_weights_of_vectors_are_multiplied_by_a_factor(tmp_path):
    vectors = tmp_path / "v.jsonl"
    vectors.write_text('{"id": "a", "vector": {"mill": 1.5, "river": 0.25}}\n{"id": "b", "vector": {"mill": 0.75}}\n')
    for factor, weights in [(None, [150.0, 75.0]), (10, [15.0, 8.0]), (2.0, [3.0, 2.0])]:
        report = millrace.build(tmp_path / "index", files=vectors, format="vectors", factor=factor)
        assert float(report["impact_factor"]) == (factor or 100)
        hits = millrace.Index(tmp_path / "index", score="impact").search("mill")
        assert (list(hits.names), list(hits.scores)) == (["a", "b"], weights)
    for wrong in [0, -1, float("nan"), 1e10]:
        with pytest.raises(ValueError, match="from 1e-9 to 1e9"):
            millrace.build(tmp_path / "index", files=vectors, format="vectors", factor=wrong)
    with pytest.raises(ValueError, match="no vectors"):
        millrace.build(tmp_path / "index", files=vectors, format="jsonl", factor=2)
    with pytest.raises(ValueError, match="factor is for files of vectors"):
        millrace.build(tmp_path / "index", [("a", "mill")], factor=2)


def test_settings(tmp_path):
    millrace.build(
        tmp_path / "i", [("a", "Running mills")], stemmer="none", stopwords=["mills"], codec="newpfd", block_size=64,
        order="length", memory=64 << 20,
    )
    index = millrace.Index(tmp_path / "i")
    assert index.analyze("Running mills") == ["running"]
    info = index.info()
    assert (info["settings"]["codec"], info["settings"]["block_size"], info["documents"]) == ("newpfd", 64, 1)
    assert index.path == tmp_path / "i"


def test_words_are_folded(tmp_path):
    millrace.build(tmp_path / "i", [("a", "H\u2082O at the Caf\u00e9, km\u00b2")], stemmer="none", fold=True)
    index = millrace.Index(tmp_path / "i")
    assert index.analyze("h\u2082o CAFE\u0301 km2 2\u00bd") == ["h2o", "cafe", "km2", "2", "1", "2"]
    assert [len(index.search(query)) for query in ("H2O", "cafe", "KM\u00b2")] == [1, 1, 1]
    with pytest.raises(ValueError, match="fold does not go with tokenizer whitespace"):
        millrace.build(tmp_path / "i", [("a", "b")], fold=True, tokenizer="whitespace", stopwords="english")


def test_published_lists_of_stop_words(tmp_path):
    with pytest.warns(UserWarning, match="don of don't, won of won't"):
        millrace.build(tmp_path / "i", [("a", "mill")], stopwords=["The", "don't", "won't"])
    assert millrace.Index(tmp_path / "i").analyze("the t don won mills") == ["don", "won", "mill"]


def test_letters_that_are_not_cut(tmp_path):
    with pytest.warns(UserWarning, match="the tokenizer cjk-bigram finds words in such text"):
        millrace.build(tmp_path / "i", [("a", "\u5317\u4eac\u5927\u5b66")])
    index = millrace.Index(tmp_path / "i")
    with pytest.warns(UserWarning, match="query 1 has no hits; its letters are mostly Chinese"):
        assert len(index.search("\u4eac\u5927")) == 0
    with pytest.warns(UserWarning, match="query q2 has no hits; its letters are mostly Thai"):
        index.search_many([("q1", "mill"), ("q2", "\u0e20\u0e32\u0e29\u0e32")])
    millrace.build(tmp_path / "i", [("a", "\u5317\u4eac\u5927\u5b66")], tokenizer="cjk-bigram")
    assert len(millrace.Index(tmp_path / "i").search("\u4eac\u5927")) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give either documents or files"),
        ({"documents": [], "files": []}, "give either documents or files"),
        ({"documents": [("a", "b")], "memory": "1M"}, "the least is 64M"),
        ({"documents": [("a", "b")], "memory": "1X"}, "1X"),
        ({"documents": [("a", "b")], "codec": "zip"}, "codec is one of bp128"),
        ({"documents": [("a", "b")], "block_size": 3}, "3"),
        ({"documents": [("a", "b")], "stemmer": "klingon"}, "klingon"),
        ({"documents": [("a", "b")], "tokenizer": "chars"}, "words, cjk-bigram or whitespace"),
        ({"documents": [("a", "b")], "order": "random"}, "input, url, name, length, topic, global"),
        ({"documents": [("a", "b")], "workers": 0}, "workers"),
        ({"documents": [("a", "b")], "format": "docx"}, "docx"),
        ({"documents": [("a", "b"), {"id": 1}]}, "document 2: it has none of the fields title"),
        ({"documents": [{"text": "x"}]}, "document 1: it has none of the fields id"),
    ],
)
def test_wrong_arguments(tmp_path, options, said):
    with pytest.raises(ValueError) as raised:
        millrace.build(tmp_path / "index", **options)
    assert said in str(raised.value)
    assert not (tmp_path / "index" / "CURRENT").exists()


@pytest.mark.parametrize("document", ["text", ("a",), ("a", 1), (None, "a"), 7, {"id": 1, "text": 2}])
def test_wrong_documents(tmp_path, document):
    with pytest.raises(TypeError, match="document 1: "):
        millrace.build(tmp_path / "index", [document])


def test_what_the_iterable_raises_is_raised(tmp_path, index):
    millrace.build(tmp_path / "index", [("old", "mill")])

    def broken():
        for number in range(1000):
            yield str(number), "mill"
        raise LookupError("the database has gone")

    with pytest.raises(LookupError, match="the database has gone"):
        millrace.build(tmp_path / "index", broken())
    assert names(tmp_path / "index") == ["old"]


def test_errors_have_the_message_of_the_library(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.jsonl"):
        millrace.build(tmp_path / "index", files=[tmp_path / "nowhere.jsonl"])
    with pytest.raises(millrace.MillraceError, match="input is empty"):
        millrace.build(tmp_path / "index", [])
    assert millrace.build(tmp_path / "index", [], allow_empty=True)["documents"] == 0


def test_remarks_are_warnings(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": 1, "text": "mill"}\nno JSON\n')
    with pytest.warns(UserWarning, match="c.jsonl: byte 26"):
        report = millrace.build(tmp_path / "index", files=tmp_path / "c.jsonl")
    assert sum(report["skipped"].values()) == 1


def test_an_interrupt_ends_a_build_and_changes_nothing(tmp_path):
    millrace.build(tmp_path / "index", [("old", "mill")])
    asked = threading.Event()

    def endless():
        number = 0
        while True:
            number += 1
            # So many that the build has begun.
            if number == 20_000:
                asked.set()
            yield str(number), f"mill number{number}"

    def interrupt():
        assert asked.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    # A shell's background job begins with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            millrace.build(tmp_path / "index", endless(), workers=2)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert names(tmp_path / "index") == ["old"]
    # And the next build is as any.
    assert millrace.build(tmp_path / "index", [("new", "mill")])["documents"] == 1


SLEEPER = """
import sys, time, millrace

def documents():
    try:
        for number in range(10**9):
            yield str(number), "mill"
            time.sleep(float(sys.argv[2]))
    finally:
        print("closed", flush=True)

print("begun", flush=True)
millrace.build(sys.argv[1], documents(), memory="64M")
"""


@pytest.mark.parametrize("pause", [0, 0.01, 100])
def test_an_interrupt_is_raised_in_a_generator_that_sleeps(tmp_path, pause):
    millrace.build(tmp_path / "index", [("old", "mill")])
    for wait in [0, 0.1, 0.3]:
        job = subprocess.Popen(
            [sys.executable, "-c", SLEEPER, tmp_path / "index", str(pause)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A shell's background job begins with the signal ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert job.stdout.readline() == "begun\n"
        time.sleep(0.2 + wait)
        job.send_signal(signal.SIGINT)
        told, error = job.communicate(timeout=60)
        # Python ends as by the signal, and not by an abort.
        assert (job.returncode, told) == (-signal.SIGINT, "closed\n"), error
        assert error.rstrip().endswith("KeyboardInterrupt") and "panicked" not in error
        assert names(tmp_path / "index") == ["old"]


def test_a_generator_is_asked_by_the_thread_that_calls(tmp_path):
    asked = set()

    def documents():
        asked.add(threading.get_ident())
        try:
            for number in range(700):
                yield str(number), "mill"
        except GeneratorExit:
            asked.add("closed")

    millrace.build(tmp_path / "index", documents())
    assert asked == {threading.get_ident()}
    # The build ends before its documents do, and closes them.
    with pytest.raises(ValueError, match="the least is 64M"):
        millrace.build(tmp_path / "index", documents(), memory="1M")
    (tmp_path / "file").write_text("")
    with pytest.raises(millrace.MillraceError):
        millrace.build(tmp_path / "file" / "index", documents())
    assert len(millrace.Index(tmp_path / "index")) == 700


def test_the_lock_of_the_interpreter_is_free_during_a_build(tmp_path):
    turn = threading.Event()

    def documents():
        yield "a", "mill"
        # Comes to an end only if another thread runs meanwhile.
        assert turn.wait(60)
        yield "b", "mill"

    other = threading.Thread(target=turn.set)
    other.start()
    assert millrace.build(tmp_path / "index", documents())["documents"] == 2
    other.join()


def test_a_function_is_told_how_far_a_build_is(tmp_path):
    def slow(count):
        for number in range(count):
            time.sleep(0.001)
            yield f"n{number}", "a mill by the river"

    told = []
    millrace.build(tmp_path / "i", slow(700), progress=told.append)
    assert [done["finished"] for done in told] == [False] * (len(told) - 1) + [True]
    assert len(told) > 2
    last = told[-1]
    assert (last["documents"], last["total_bytes"]) == (700, 0)
    assert [done["documents"] for done in told] == sorted(done["documents"] for done in told)

    lines = "".join(f'{{"id": "{i}", "text": "a mill"}}\n' for i in range(500))
    (tmp_path / "c.jsonl").write_text(lines)
    told.clear()
    threads = set()
    millrace.build(
        tmp_path / "f", files=tmp_path / "c.jsonl", workers=2,
        progress=lambda done: (told.append(done), threads.add(threading.get_ident())),
    )
    last = told[-1]
    assert (last["documents"], last["read_bytes"], last["total_bytes"]) == (500, len(lines), len(lines))
    assert threads == {threading.get_ident()}


def test_what_the_function_raises_ends_the_build(tmp_path):
    def endless():
        number = 0
        while True:
            number += 1
            yield f"n{number}", "a mill by the river"

    def enough(done):
        if done["documents"] > 100:
            raise LookupError("enough")

    millrace.build(tmp_path / "i", [("a", "mill")])
    with pytest.raises(LookupError, match="enough"):
        millrace.build(tmp_path / "i", endless(), progress=enough, memory="64M")
    assert len(millrace.Index(tmp_path / "i")) == 1
    for wrong in [1, "yes", {}]:
        with pytest.raises(TypeError, match="progress is True, False or a function"):
            millrace.build(tmp_path / "i", [("a", "mill")], progress=wrong)
    assert millrace.build(tmp_path / "i", [("a", "mill")], progress=False)["generation"] == 2


class PretendedBar:
    """What a build uses of tqdm."""

    made = []

    def __init__(self, total, unit, **more):
        self.total, self.unit, self.n, self.closed, self.said = total, unit, 0, False, []
        self.made.append(self)

    def set_description_str(self, text, refresh):
        self.said.append(text)

    def set_postfix_str(self, text, refresh):
        self.postfix = text

    def update(self, more):
        self.n += more

    def refresh(self):
        pass

    def close(self):
        self.closed = True


def test_progress_is_shown_by_tqdm_or_a_line(tmp_path, monkeypatch, capsys):
    bars = PretendedBar.made
    auto = types.SimpleNamespace(tqdm=PretendedBar)
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(auto=auto))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    documents = [(f"n{i}", "a mill") for i in range(30)]
    millrace.build(tmp_path / "i", documents, progress=True)
    (tmp_path / "c.tsv").write_text("a\tmill\nb\twater\n")
    millrace.build(tmp_path / "f", files=tmp_path / "c.tsv", progress=True)
    with pytest.raises(ZeroDivisionError):
        millrace.build(tmp_path / "i", ((f"n{i}", "mill" * (1 // (5 - i))) for i in range(9)), progress=True)
    assert [(bar.total, bar.n, bar.unit) for bar in bars[:2]] == [(30, 30, " documents"), (15, 15, "B")]
    assert bars[1].postfix == "2 documents"
    assert bars[0].said[-1] == bars[1].said[-1] == "indexed"
    assert all(bar.closed and "indexed" not in bar.said for bar in bars[2:])
    millrace.Index(tmp_path / "i").search_many(["mill"] * 40, progress=True)
    bar = bars[-1]
    assert (bar.total, bar.n, bar.unit, bar.said[-1], bar.closed) == (40, 40, " queries", "answered", True)
    assert capsys.readouterr().err == ""

    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    millrace.build(tmp_path / "i", iter(documents), progress=True)
    millrace.build(tmp_path / "f", files=tmp_path / "c.tsv", progress=True)
    millrace.Index(tmp_path / "i").search_many(["mill"] * 2000, progress=True)
    lines = [line.split("\r")[-1].rstrip() for line in capsys.readouterr().err.rstrip("\n").split("\n")]
    assert lines == [
        "indexed: 30 of 30 documents", "indexed: 2 documents, 0.0 of 0.0 MB", "answered: 2,000 of 2,000 queries",
    ]
