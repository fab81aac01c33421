"""Data frames of pandas, polars and pyarrow as documents, queries, judgements and runs, and of answers."""

import subprocess
import sys

import numpy
import pandas
import pytest

import millrace

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


class Stream:
    """What has an Arrow stream, and nothing else of a table but its schema."""

    def __init__(self, table):
        self.table, self.schema = table, table.schema

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


MAKERS = {
    "pandas": pandas.DataFrame,
    "pandas of Arrow": lambda columns: pandas.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": lambda columns: pandas.DataFrame(columns).set_index(next(iter(columns))),
    "polars": polars.DataFrame,
    "lazy polars": polars.LazyFrame,
    "pyarrow": pyarrow.table,
    "pyarrow in batches": lambda columns: pyarrow.table(columns).to_reader(max_chunksize=7),
    "a batch of pyarrow": lambda columns: pyarrow.table(columns).combine_chunks().to_batches()[0],
    "a stream": lambda columns: Stream(pyarrow.table(columns)),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_kind
def test_documents(tmp_path, make, documents):
    # More rows than are read together.
    rows = [(f"{name}-{copy}", text) for copy in range(30) for name, text in documents.items()]
    columns = {"docno": [name for name, _ in rows], "text": [text for _, text in rows], "year": [2026] * len(rows)}
    millrace.build(tmp_path / "rows", rows)
    report = millrace.build(tmp_path / "frame", make(columns))
    assert report["documents"] == len(rows) == 9000
    one, other = (tmp_path / name / "runs/000000.postings" for name in ["rows", "frame"])
    assert one.read_bytes() == other.read_bytes()


@every_kind
def test_fields_and_values_of_documents(tmp_path, make):
    columns = {
        "key": [7, 8, 9], "title": ["mills", None, "river mills"], "body": ["water", "wind wheels", "by the river"],
        "other": [0.5, None, 2.0],
    }
    report = millrace.build(tmp_path / "index", make(columns), id_field="key", text_field=["title", "body"])
    assert (report["documents"], report["tokens"]) == (3, 7)
    index = millrace.Index(tmp_path / "index")
    assert {name for name, _, _ in index.search("mill")} == {"7", "9"}
    assert [name for name, _, _ in index.search("wheel")] == ["8"]
    for wrong, said in [
        ({"id": ["a"], "more": ["b"]}, "no column with their texts: none of .*; its columns are id, more"),
        ({"text": ["a"], "more": ["b"]}, "no column with the names of documents: none of .*docno.*; its columns are"),
    ]:
        if make is not MAKERS["pandas with an index"]:
            with pytest.raises(ValueError, match=said):
                millrace.build(tmp_path / "none", make(wrong))
    # As rows of a program: a text or a name that is missing is an error, and nothing is built.
    for wrong, error, said in [
        ({"more": [1, 2], "id": ["a", "b"], "text": ["c", None]}, ValueError, "document 2: it has none of the fields"),
        ({"more": [1, 2], "id": ["a", None], "text": ["c", "d"]}, TypeError, "document 2: its name, the field id, is"),
    ]:
        with pytest.raises(error, match=said):
            millrace.build(tmp_path / "none", make(wrong))
    assert not (tmp_path / "none" / "CURRENT").exists()


@every_kind
def test_queries_judgements_and_runs(make, index, queries):
    topics = {f"q{at}": text for at, text in enumerate(queries)}
    expected = index.search_many(topics, 1000)
    columns = {"qid": list(topics), "query": list(topics.values())}
    found = index.search_many(make(columns), 1000)
    assert found.qids == expected.qids and list(found.docids) == list(expected.docids)
    # Names of ir_datasets, in another order.
    found = index.search_many(make({"text": columns["query"], "query_id": columns["qid"]}), 1000)
    assert found.qids == expected.qids and list(found.docids) == list(expected.docids)

    judged = [(qid, name, at % 3) for at, (qid, name) in enumerate((q, f"d{n}") for q in topics for n in range(40))]
    qids, names, labels = map(list, zip(*judged))
    measures = millrace.evaluate(expected, judged)
    assert measures["measures"]["AP"] > 0
    run = {
        "qid": [qid for qid, hits in zip(expected.qids, expected) for _ in hits],
        "docno": expected.names.tolist(), "score": expected.scores.tolist(),
    }
    for qid, docno, label in [("qid", "docno", "label"), ("query_id", "doc_id", "relevance")]:
        qrels = {qid: qids, docno: names, label: labels}
        assert millrace.evaluate(expected, make(qrels)) == measures
        assert millrace.evaluate(make(run), make(qrels)) == measures
    compared = millrace.compare(make(run), expected, make(qrels), ["AP"])
    assert compared["AP"]["difference"] == 0
    again = index.search_many(topics, candidates=make(run))
    assert list(again.docids) == list(expected.docids)


def test_numbers_name_queries_and_documents(tmp_path):
    millrace.build(tmp_path / "index", pandas.DataFrame({"id": numpy.array([3, 4]), "text": ["mill", "river"]}))
    index = millrace.Index(tmp_path / "index")
    answers = index.search_many(pandas.DataFrame({"qid": [1, 2], "query": ["mill", "river"]}), k=1000)
    assert answers.qids == ["1", "2"] and answers.names.tolist() == ["3", "4"]
    qrels = polars.DataFrame({"qid": [1, 2], "docno": [3, 4], "label": [1, 0]})
    assert millrace.evaluate(answers, qrels, ["RR"])["per_query"]["1"] == {"RR": 1}


@pytest.mark.parametrize(
    ("frame", "error", "said"),
    [
        ({"query": ["a"]}, ValueError, "the data frame has no column qid or query_id; its columns are query"),
        ({"qid": ["a"], "more": ["b"]}, ValueError, "no column query or text or title; its columns are qid, more"),
        ({"qid": [None], "query": ["b"]}, TypeError, "query 1: its name is None"),
        ({"qid": ["a", "b"], "query": ["b", None]}, TypeError, "query b: its text is a text, not None"),
        ({"qid": ["a"], "query": [7]}, TypeError, "query a: its text is a text, not <class 'int'>"),
    ],
)
def test_queries_that_are_none(index, frame, error, said):
    for make in [pandas.DataFrame, polars.DataFrame, pyarrow.table]:
        with pytest.raises(error, match=said):
            index.search_many(make(frame))


def test_judgements_and_runs_that_are_none(index):
    run = pandas.DataFrame({"qid": ["a", "b"], "docno": ["d1", "d2"], "score": [1.0, 2.0]})
    qrels = pandas.DataFrame({"qid": ["a", "b"], "docno": ["d1", "d2"], "label": [1, 0]})
    assert millrace.evaluate(run, qrels, ["RR"])["measures"] == {"RR": 0.5}
    for wrong, said in [
        (qrels.drop(columns="label"), "no column label or relevance; its columns are qid, docno"),
        (qrels.assign(label=[1, None]), "row 2: query b: document d2: expected a row"),
        (qrels.assign(label=[1, 1e10]), "row 2: query b: document d2: expected a row"),
        (qrels.assign(label=[1, 0.5]), "row 2: query b: document d2: expected a row"),
        (qrels.assign(docno=["d1", None]), "qrels: row 2: query b: the name of the document is None"),
    ]:
        with pytest.raises((TypeError, ValueError), match=said):
            millrace.evaluate(run, wrong)
    assert millrace.evaluate(run, qrels.assign(label=[1.0, 0.0]), ["RR"])["measures"] == {"RR": 0.5}
    for wrong, said in [
        (run.drop(columns="score"), "no column score; its columns are qid, docno"),
        (run.assign(score=[1.0, None]), "run: query b: document d2: expected a number"),
        (run.assign(qid=[None, "b"]), "run: row 1: the name of the query is None"),
        (pandas.concat([run, run["qid"]], axis=1), "several columns qid"),
        (run.assign(qid="a", docno="d1"), "d1"),
    ]:
        with pytest.raises((TypeError, ValueError, millrace.MillraceError), match=said):
            millrace.evaluate(wrong, qrels)
    # A column of texts is no frame, but the texts that it has.
    for column in [pandas.Series(["w1x", "w2x"]), polars.Series(["w1x", "w2x"])]:
        assert index.search_many(column, 3).qids == ["1", "2"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_answers_as_a_frame(index, queries, library):
    topics = {"a": queries[0], "none": "nowhere", "b": queries[1]}
    answers = index.search_many(topics, 6)
    frame = answers.to_frame(library)
    assert type(frame).__module__.split(".")[0] == library
    rows = frame.to_dict("records") if library == "pandas" else (frame.to_dicts if library == "polars" else frame.to_pylist)()
    expected = [
        {"qid": qid, "query": topics[qid], "docno": name, "docid": docid, "score": score, "rank": rank}
        for qid in topics
        for rank, (name, docid, score) in enumerate(answers[qid])
    ]
    assert rows == expected and list(rows[0]) == list(expected[0])
    # It is a run again.
    qrels = {"a": {rows[1]["docno"]: 1}}
    assert millrace.evaluate(frame, qrels, ["RR@6"]) == millrace.evaluate(answers, qrels, ["RR@6"])
    one = answers["b"][:2].to_frame(library)
    assert list(one.columns if library != "pyarrow" else one.column_names) == ["docno", "docid", "score", "rank"]
    assert len(one) == 2
    for nothing in [index.search_many({"1": "nowhere"}), index.search_many([])]:
        empty = nothing.to_frame(library)
        assert len(empty) == 0
        assert list(empty.columns if library != "pyarrow" else empty.column_names) == list(expected[0])


def test_frames_keep_the_query_that_was_asked(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "x", "text": "water mill"}\n{"id": "y", "text": "mill wheel"}\n')
    millrace.build(tmp_path / "index", files=tmp_path / "a.jsonl")
    answers = millrace.Index(tmp_path / "index").search_many({"1": "water"}, rm3=(10, 10, 0.5))
    assert answers.to_frame()["query"].tolist() == ["water", "water"]
    with pytest.raises(ValueError, match="library is pandas, polars or pyarrow, not numpy"):
        answers.to_frame("numpy")


def test_a_stream_is_read_by_polars_where_there_is_no_pyarrow(tmp_path):
    script = """
import sys
sys.modules["pyarrow"] = None
import millrace, polars

class Stream:
    schema = None
    def __arrow_c_stream__(self, requested_schema=None):
        return polars.DataFrame({"id": ["a"], "text": ["water mill"]}).__arrow_c_stream__(requested_schema)

print(millrace.build(sys.argv[1], Stream())["tokens"], "pandas" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", script, tmp_path / "index"], capture_output=True, text=True, timeout=200)
    assert told.stdout == "2 False\n", told.stderr


@every_kind
def test_columns_that_are_left_out_are_warned_of(make, tmp_path):
    rows = 5000
    columns = {"docno": [str(n) for n in range(rows)], "text": ["mill"] * rows, "summary": ["a long text of it"] * rows}
    with pytest.warns(UserWarning, match="8. % of the bytes of strings .* not indexed: summary"):
        report = millrace.build(tmp_path / "index", make(columns))
    assert (report["documents"], report["tokens"]) == (rows, rows)
    columns["summary"] = columns.pop("text")
    columns["year"] = list(range(rows))
    millrace.build(tmp_path / "index", make({"docno": columns["docno"], "text": columns["summary"], "year": columns["year"]}))
