"""The transformer for PyTerrier, with it or without, and the reader of ir_datasets."""

import os
import subprocess
import sys
from collections import namedtuple

import pandas
import pytest

import millrace
from conftest import shared
from millrace import datasets
from millrace.terrier import Retriever


def test_a_data_frame_of_queries_becomes_one_of_documents(index, queries):
    frame = pandas.DataFrame({"qid": [f"q{i}" for i in range(50)], "query": queries, "more": range(50)})
    retriever = Retriever(index, k=6)
    found = retriever.transform(frame)
    assert list(found.columns) == ["qid", "query", "more", "docno", "docid", "score", "rank"]
    assert found.equals(retriever(frame))
    for at, (qid, rows) in enumerate(found.groupby("qid", sort=False)):
        hits = index.search(queries[at], 6)
        assert qid == f"q{at}" and set(rows["query"]) == {queries[at]} and set(rows["more"]) == {at}
        assert list(rows["docno"]) == list(hits.names) and list(rows["docid"]) == list(hits.docids)
        assert list(rows["score"]) == list(hits.scores) and list(rows["rank"]) == list(range(len(hits)))


def test_documents_that_are_given_are_ranked_anew(index_path, index, queries):
    plain, likelihood = Retriever(index, k=6), Retriever(index_path, k=3, score="ql", mu=50)
    frame = pandas.DataFrame({"qid": ["x", "y"], "query": queries[:2], "more": [7, 8]})
    first = plain(frame)
    # Another stage's own columns go along, each with its document; its order does not matter.
    first = first.assign(mark=[f"m{number}" for number in range(len(first))]).iloc[::-1]
    again = likelihood(first)
    assert list(again.columns) == ["qid", "query", "more", "mark", "docno", "docid", "score", "rank"]
    assert len(again) == len(first)
    scored = likelihood.index.search_many(dict(zip(frame["qid"], frame["query"])), 300)
    for qid, rows in again.groupby("qid"):
        given = first[first["qid"] == qid]
        assert sorted(rows["docno"]) == sorted(given["docno"])
        assert dict(zip(rows["docno"], rows["mark"])) == dict(zip(given["docno"], given["mark"]))
        scores = {hit.name: hit.score for hit in scored[qid]}
        assert list(rows["score"]) == [scores.get(name, 0.0) for name in rows["docno"]]
        assert list(rows["rank"]) == list(range(len(rows))) and rows["score"].is_monotonic_decreasing
    # The columns of a query's first row, a document once, and no others.
    twice = pandas.concat([first, first.head(3)])
    assert likelihood(twice)[["qid", "docno", "rank"]].equals(likelihood(first)[["qid", "docno", "rank"]])
    only = pandas.DataFrame({"qid": [1, 1, 2], "query": ["w1x", "w1x", "w2x"], "docno": ["d9", "d8", "d7"]})
    assert sorted(zip(plain(only)["qid"], plain(only)["docno"])) == [(1, "d8"), (1, "d9"), (2, "d7")]
    nothing = plain(only.iloc[:0])
    assert len(nothing) == 0 and list(nothing.columns) == ["qid", "query", "docno", "docid", "score", "rank"]
    with pytest.warns(UserWarning, match="1 candidate is not in the index: nobody"):
        assert list(plain(only.assign(docno=["d9", "nobody", "d7"]))["docno"]) == ["d9", "d7"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"qid": ["1"], "query": ["w1x"], "docid": [3]}, "there is only a docid"),
        ({"qid": ["1"], "docno": ["d1"]}, "no column query"),
        ({"qid": ["1"], "query": ["w1x"], "docno": [None]}, "row 0 of the queries has no docno"),
        ({"qid": ["1", "1"], "query": ["w1x", "w2x"], "docno": ["d1", "d2"]}, "row 1 .* the query 1 is another one"),
    ],
)
def test_documents_that_cannot_be_ranked_anew(index, columns, said):
    with pytest.raises(ValueError, match=said):
        Retriever(index)(pandas.DataFrame(columns, dtype=object))


def test_vectors_are_answered_as_vectors(index):
    weights = [{"w1x": 2.0, "w9x": 0.5}, {}, {"w30x": 1}]
    expected = index.search_many(list(zip("abc", weights)), 5)
    retriever = Retriever(index, k=5)
    for frame in [
        pandas.DataFrame({"qid": list("abc"), "query_toks": weights}),
        pandas.DataFrame({"qid": list("abc"), "query": ["nowhere"] * 3, "query_toks": weights}),
        pandas.DataFrame({"qid": list("abc"), "query": weights}),
    ]:
        found = retriever(frame)
        assert list(found["docno"]) == list(expected.names) and list(found["score"]) == list(expected.scores)
        again = retriever(found)
        assert again[["qid", "docno", "rank"]].equals(found[["qid", "docno", "rank"]])


def test_lists_of_dictionaries_give_such(index):
    rows = [{"qid": "1", "query": "w1x", "more": 3}, {"qid": "2", "query": "w2x", "more": 4}]
    found = Retriever(index, k=2)(rows)
    assert isinstance(found, list) and [row["more"] for row in found] == [3, 3, 4, 4]
    assert [row["docno"] for row in found] == [hit.name for row in rows for hit in index.search(row["query"], 2)]


def test_a_pipeline_of_two_and_the_reported_scripts(index, tmp_path):
    pyterrier = pytest.importorskip("pyterrier")
    first, second = Retriever(index, k=4), Retriever(index.path, k=4, score="ql")
    frame = pandas.DataFrame({"qid": ["1", "2"], "query": ["w1x w5x", "w2x"]})
    found = (first >> second)(frame)
    assert sorted(zip(found["qid"], found["docno"])) == sorted(zip(first(frame)["qid"], first(frame)["docno"]))
    script = shared("reports/141-terrier-transformer/t.py")
    told = subprocess.run([sys.executable, script, tmp_path], env=os.environ, capture_output=True, text=True, timeout=200)
    assert "== results as input\n  qid query docno" in told.stdout and "!! ValueError the queries have no column" in told.stdout
    rows = told.stdout.split("== results as input\n")[1].split("==")[0].rstrip().split("\n")
    assert [row.split()[3] for row in rows[1:]] == ["d4", "d5"], told.stdout


def test_no_queries_and_no_hits(index_path):
    retriever = Retriever(index_path, mode="and")
    empty = pandas.DataFrame({"qid": [], "query": []})
    for frame in [empty, pandas.DataFrame({"qid": ["1"], "query": ["nowhere"]})]:
        found = retriever.transform(frame)
        assert len(found) == 0 and set(found.columns) == {"qid", "query", "docno", "docid", "score", "rank"}
    for name, nothing in [("qid", None), ("query", None), ("query", float("nan"))]:
        frame = pandas.DataFrame({"qid": ["1", "2"], "query": ["w1x", "w2x"]}, dtype=object)
        frame.loc[1, name] = nothing
        with pytest.raises(ValueError, match=f"row 1 of the queries has no {name}"):
            retriever.transform(frame)
    with pytest.raises(ValueError, match="no column qid"):
        retriever.transform(pandas.DataFrame({"query": ["a"]}))


def test_one_query(index):
    retriever = Retriever(index, k=3)
    assert list(retriever.search("w1x")["docno"]) == list(index.search("w1x", 3).names)
    assert set(retriever.search("w1x", qid="x")["qid"]) == {"x"}
    assert "k=3" in repr(retriever)


def test_scores_and_expansion(index_path, queries):
    frame = pandas.DataFrame({"qid": ["1"], "query": [queries[0]]})
    found = Retriever(index_path, k=5, score="ql", mu=300).transform(frame)
    expected = millrace.Index(index_path, score="ql", mu=300).search(queries[0], 5)
    assert list(found["docno"]) == list(expected.names)
    with pytest.raises(ValueError, match="give its path with k1"):
        Retriever(millrace.Index(index_path), k1=0.9)


def test_hits_have_slices_and_answers_names(index, queries):
    answers = index.search_many([("a", queries[0]), ("b", queries[1])], 6)
    assert list(answers["b"]) == list(answers[1])
    with pytest.raises(KeyError, match="no query c"):
        answers["c"]
    hits = answers["a"]
    assert list(hits[1:3]) == list(hits)[1:3] and list(hits[-2:].names) == list(hits.names)[-2:]
    assert len(hits[10:]) == 0 and list(hits[:]) == list(hits)
    with pytest.raises(ValueError, match="step 1"):
        hits[::2]


def test_in_a_pipeline_of_pyterrier(index, queries):
    pytest.importorskip("pyterrier")
    frame = pandas.DataFrame({"qid": ["1", "2"], "query": queries[:2]})
    retriever = Retriever(index, k=5)
    found = (retriever % 2)(frame)
    expected = retriever.transform(frame)
    expected = expected[expected["rank"] < 2].reset_index(drop=True)
    assert found[["qid", "docno", "score", "rank"]].equals(expected[["qid", "docno", "score", "rank"]])


Document = namedtuple("Document", ["doc_id", "title", "text"])
Document.default_text = lambda self: f"{self.title} {self.text}"
Plain = namedtuple("Plain", ["doc_id", "text"])
Query = namedtuple("Query", ["query_id", "title", "description"])
Judgement = namedtuple("Judgement", ["query_id", "doc_id", "relevance", "iteration"])


class Dataset:
    """What ir_datasets gives."""

    def docs_iter(self):
        yield Document("a", "Mills", "by the river")
        yield Plain("b", "a windmill")

    def queries_iter(self):
        yield Query("1", "mill", "texts about rivers")

    def qrels_iter(self):
        yield Judgement("1", "a", 1, "0")


def test_a_data_set_from_documents_to_measures(tmp_path):
    dataset = Dataset()
    report = millrace.build(tmp_path / "index", datasets.documents(dataset))
    assert (report["documents"], report["tokens"]) == (2, 3)
    index = millrace.Index(tmp_path / "index")
    assert datasets.queries(dataset) == [("1", "mill")]
    assert datasets.queries(dataset, "description") == [("1", "texts about rivers")]
    with pytest.raises(ValueError, match="narrative"):
        datasets.queries(dataset, "narrative")
    answers = index.search_many(datasets.queries(dataset), k=1000)
    assert millrace.evaluate(answers, datasets.qrels(dataset), ["RR"])["measures"] == {"RR": 1}


def test_a_data_set_of_the_package(tmp_path):
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("a\tmills by the river\nb\ta windmill\n")
    (tmp_path / "queries.tsv").write_text("1\tmill\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    dataset = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    millrace.build(tmp_path / "index", datasets.documents(dataset))
    answers = millrace.Index(tmp_path / "index").search_many(datasets.queries(dataset), k=1000)
    assert millrace.evaluate(answers, datasets.qrels(dataset), ["RR"])["measures"] == {"RR": 1}
