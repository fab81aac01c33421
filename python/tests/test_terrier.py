"""The transformer for PyTerrier, with it or without, and the reader of ir_datasets."""

from collections import namedtuple

import pandas
import pytest

import millrace
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
    # What another stage has ranked is ranked anew.
    again = retriever.transform(found.drop_duplicates("qid"))
    assert again[["docno", "rank"]].equals(found[["docno", "rank"]])


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
    answers = index.search_many(datasets.queries(dataset))
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
    answers = millrace.Index(tmp_path / "index").search_many(datasets.queries(dataset))
    assert millrace.evaluate(answers, datasets.qrels(dataset), ["RR"])["measures"] == {"RR": 1}
