"""Texts of documents, read again from their files, and the column of texts that rerankers read."""

import gzip
import json

import pandas
import pytest

import millrace
from millrace import datasets
from millrace.terrier import Retriever

TEXTS = {"x": "The water mill.\nBy the river", "y": "A windmill – or two mills", "z": "", "w": "mill, \"wheel\" & <race>"}


@pytest.fixture(params=["lines", "packed", "csv"])
def stored(tmp_path, request):
    lines = "".join(json.dumps({"id": name, "text": text, "more": 7}) + "\n" for name, text in TEXTS.items())
    if request.param == "lines":
        path = tmp_path / "a.jsonl"
        path.write_text(lines)
    elif request.param == "packed":
        path = tmp_path / "a.jsonl.gz"
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path = tmp_path / "a.csv"
        pandas.DataFrame({"id": TEXTS.keys(), "text": TEXTS.values()}).to_csv(path, index=False)
    millrace.build(tmp_path / "index", files=path)
    return millrace.Index(tmp_path / "index"), path


def test_texts_are_those_of_the_files(stored):
    index, path = stored
    for at, (name, text) in enumerate(TEXTS.items()):
        assert index.text(name) == index.text(docid=at) == text
    hits = index.search("mill")
    assert len(hits) == 3 and hits.texts().tolist() == [TEXTS[name] for name in hits.names]
    assert hits[1:].texts().tolist() == hits.texts().tolist()[1:]
    answers = index.search_many({"a": "mill", "b": "nowhere", "c": "wheel mill"})
    assert len(answers.names) == 6 and answers.texts().tolist() == [TEXTS[name] for name in answers.names]
    assert index.search("nowhere").texts().tolist() == []
    with pytest.raises(KeyError):
        index.text("nobody")
    with pytest.raises(ValueError, match="either docid or name"):
        index.text("x", docid=0)
    path.rename(path.with_name("elsewhere"))
    for call in [hits.texts, answers.texts, lambda: index.text("x")]:
        with pytest.raises(FileNotFoundError, match=str(path)):
            call()


def test_texts_that_have_changed_or_were_never_stored(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "x", "text": "the water mill"}\n')
    millrace.build(tmp_path / "index", files=path)
    index = millrace.Index(tmp_path / "index")
    path.write_text('{"id": "x", "text": "the water mills turn"}\n')
    with pytest.raises(millrace.MillraceError, match="changed since"):
        index.text("x")
    millrace.build(tmp_path / "memory", TEXTS.items())
    index = millrace.Index(tmp_path / "memory")
    for call in [index.search("mill").texts, lambda: index.text("y")]:
        with pytest.raises(millrace.MillraceError, match="memory of a program, which is not kept"):
            call()


class Store:
    def get(self, name):
        return {"x": datasets_document("x"), "y": datasets_document("y"), "w": datasets_document("w")}[name]


class datasets_document:
    def __init__(self, name):
        self.doc_id, self.text = name, TEXTS[name]


class Dataset:
    def docs_store(self):
        return Store()


@pytest.mark.parametrize(
    "text", [True, TEXTS, TEXTS.get, pandas.Series(TEXTS), datasets.texts(Dataset())],
    ids=["files", "dictionary", "function", "column", "data set"],
)
def test_a_retriever_gives_texts(stored, text):
    index, _ = stored
    frame = pandas.DataFrame({"qid": ["1", "2", "3"], "query": ["mill", "nowhere", "mill wheel"], "text": "old"})
    ranked = Retriever(index, text=text)(frame)
    assert list(ranked["text"]) == [TEXTS[name] for name in ranked["docno"]] and len(ranked) == 6
    without = Retriever(index)(frame)
    assert set(without["text"]) == {"old"}
    columns = ["qid", "query", "docno", "docid", "score", "rank"]
    assert ranked[columns].equals(without[columns])
    empty = Retriever(index, text=text)(frame[1:2])
    assert len(empty) == 0 and "text" in empty.columns


def test_a_pipeline_reranks_by_text(stored):
    pyterrier = pytest.importorskip("pyterrier")
    index, _ = stored
    longest = Retriever(index, text=True) >> pyterrier.apply.doc_score(lambda row: float(len(row["text"])))
    ranked = longest(pandas.DataFrame({"qid": ["1"], "query": ["mill"]}))
    ranked = ranked.sort_values("rank")
    assert list(ranked["docno"]) == sorted(["x", "y", "w"], key=lambda name: -len(TEXTS[name]))


def test_texts_that_are_none(stored):
    index, _ = stored
    frame = pandas.DataFrame({"qid": ["1"], "query": ["mill"]})
    with pytest.raises(TypeError, match="the text of . is a text, not <class 'NoneType'>"):
        Retriever(index, text={}.get)(frame)
    with pytest.raises(KeyError):
        Retriever(index, text={})(frame)
    for wrong in [False, 7]:
        with pytest.raises(TypeError, match="text is True, a mapping or a function, not"):
            Retriever(index, text=wrong)


def test_fields_of_records_are_kept(tmp_path):
    rows = [
        {"id": "a", "text": "water mill", "author": "Ada", "meta": {"n": [1, None]}, "list": [1, 2]},
        {"id": "b", "text": "water wheel water", "author": None, "list": [3, 4]},
    ]
    kept = ["author", "meta", "list"]
    millrace.build(tmp_path / "index", rows, store=True, store_fields=kept, stemmer="none")
    index = millrace.Index(tmp_path / "index")
    hits = index.search("water mill")
    assert hits.names.tolist() == ["a", "b"]
    assert hits.column("author").tolist() == ["Ada", None]
    assert hits.column("meta").tolist() == [{"n": [1, None]}, None]
    assert hits.column("list").tolist() == [[1, 2], [3, 4]]
    assert index.document("b")["stored"] == {"list": [3, 4]}
    assert hits.texts().tolist() == ["water mill", "water wheel water"]
    with pytest.raises(ValueError, match="there are author"):
        hits.column("authors")
    with millrace.Writer(tmp_path / "index") as writer:
        writer.update("c", "mühlen Wasser mühlen", values={"author": ["x"]})
        writer.commit()
    hits = millrace.Index(tmp_path / "index").search("mühlen")
    assert hits.column("author").tolist() == [["x"]]
    places = hits.highlights()
    assert [snippet[begin:end] for begin, end in places[0] for snippet in hits.snippets()] == ["mühlen", "mühlen"]
