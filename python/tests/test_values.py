"""Values that are none, what is missing, pickles, forks and threads."""

import copy
import datetime
import math
import multiprocessing
import pickle
import os
import shutil
import subprocess
import sys
import threading

import pytest

import millrace
from conftest import shared

HALF = "mill \ud800"


@pytest.mark.parametrize(
    ("document", "error", "said"),
    [
        ((None, "a"), TypeError, "its name is a text or a whole number, not None"),
        ((math.nan, "a"), TypeError, "its name is a text or a whole number, not nan"),
        ((True, "a"), TypeError, "its name is a text or a whole number, not <class 'bool'>"),
        ((HALF, "a"), ValueError, "its name is not Unicode text"),
        (("n", None), TypeError, "`n`: its text is a text, not None"),
        (("n", math.nan), TypeError, "`n`: its text is a text, not nan"),
        (("n", b"a"), TypeError, "`n`: its text is a text, not <class 'bytes'>"),
        (("n", HALF), ValueError, "`n`: its text is not Unicode text"),
        ({"id": None, "text": "a"}, TypeError, "its name, the field id, is a text or a whole number, not None"),
        ({"id": HALF, "text": "a"}, ValueError, "its name, the field id, is not Unicode text"),
        ({"id": "n", "text": math.nan}, TypeError, "the field text is a text, not nan"),
        ({"id": "n", "title": "a", "text": HALF}, ValueError, "the field text is not Unicode text"),
        ({"id": "n", "text": None}, ValueError, "it has none of the fields"),
        ({HALF: "n", "text": "a"}, ValueError, "the name of a field is not Unicode text"),
        ({7: "n", "text": "a"}, TypeError, "the name of a field is a text, not <class 'int'>"),
    ],
)
def test_documents_of_nothing(tmp_path, document, error, said):
    with pytest.raises(error) as raised:
        millrace.build(tmp_path / "index", [("first", "mill"), document])
    assert str(raised.value).startswith(f"document 2: {said}")
    assert not (tmp_path / "index" / "CURRENT").exists()


def test_negative_numbers(index, tmp_path):
    for call in [
        lambda: index.search("w1x", -1),
        lambda: index.search("w1x", k=-(2**70)),
        lambda: index.search("w1x", rm3=(-1, 10, 0.5)),
        lambda: index.search_many(["w1x"], k=-1),
        lambda: index.search_many(["w1x"], workers=-1),
        lambda: index.explain("w1x", "d1", k=-1),
        lambda: index.document(docid=-1),
        lambda: index.tune({"a": "w1x"}, {"a": {"d1": 1}}, k=-1),
        lambda: index.tune({"a": "w1x"}, {"a": {"d1": 1}}, folds=-1),
        lambda: millrace.build(tmp_path / "i", [("a", "b")], keep=-1),
        lambda: millrace.build(tmp_path / "i", [("a", "b")], workers=-1),
        lambda: millrace.build(tmp_path / "i", [("a", "b")], block_size=-1),
        lambda: millrace.Index(index.path, generation=-1),
    ]:
        with pytest.raises(ValueError, match="expected a whole number of 0 or more, found .?-"):
            call()
    for wrong in [{"k1": math.nan}, {"b": math.nan}, {"score": "ql", "mu": math.nan}]:
        with pytest.raises(ValueError):
            millrace.Index(index.path, **wrong)
    with pytest.raises(ValueError):
        index.search("w1x", rm3=(10, 10, math.nan))
    for call in [lambda: index.search(None), lambda: index.search("w1x", None), lambda: index.search("w1x", 1.5)]:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        index.search(HALF)


@pytest.mark.parametrize(
    ("queries", "error", "said"),
    [
        (["w1x", None], ValueError, "query 2: expected a text or a pair"),
        (["w1x", HALF], ValueError, "query 2 is not Unicode text"),
        ([("a", None)], TypeError, "query a: its text is a text, not None"),
        ([("a", math.nan)], TypeError, "query a: its text is a text, not nan"),
        ([("a", HALF)], ValueError, "query a: its text is not Unicode text"),
        ({None: "w1x"}, TypeError, "query 1: its name is None"),
        ([(math.nan, "w1x")], TypeError, "query 1: its name is nan"),
        ([(HALF, "w1x")], ValueError, "query 1: its name is not Unicode text"),
    ],
)
def test_queries_of_nothing(index, queries, error, said):
    with pytest.raises(error) as raised:
        index.search_many(queries)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_judgements_and_runs_of_nothing(nothing):
    run = {"a": {"d": 1.0}}
    qrels = {"a": {"d": 1}}
    for wrong, said in [
        ({nothing: {"d": 1}}, "the name of a query is"),
        ({"a": {nothing: 1}}, "query a: the name of a document is"),
    ]:
        with pytest.raises(TypeError, match=f"run: {said}"):
            millrace.evaluate(wrong, qrels)
        with pytest.raises(TypeError, match=f"qrels: {said}"):
            millrace.evaluate(run, wrong)
    for wrong, said in [
        ([("a", "d", 1), (nothing, "d", 1)], "row 2: the name of the query is"),
        ([("a", "d", 1), ("a", nothing, 1)], "row 2: query a: the name of the document is"),
        ([("a", "d", nothing)], "row 1: query a: document d: expected a row"),
        ({"a": {"d": nothing}}, "query a: document d: expected a number"),
    ]:
        with pytest.raises((TypeError, ValueError), match=f"qrels: {said}"):
            millrace.evaluate(run, wrong)
    with pytest.raises(ValueError, match="query a: document d: "):
        millrace.evaluate({"a": {"d": nothing}}, qrels)
    with pytest.raises(ValueError, match="query a: the name of a document is not Unicode text"):
        millrace.evaluate({"a": {HALF: 1}}, qrels)


def test_a_run_of_strangers_is_warned_of():
    with pytest.warns(UserWarning, match="none of the documents of this run is judged"):
        found = millrace.evaluate({"a": {"D": 1.0}}, {"a": {"d": 1}}, ["map", "ndcg_cut_10"])
    assert found["measures"] == {"AP": 0, "nDCG@10": 0}


def test_missing_files(tmp_path, index):
    nowhere = tmp_path / "nowhere"
    for call in [
        lambda: millrace.Index(nowhere),
        lambda: millrace.Index(index.path, generation=7),
        lambda: millrace.build(tmp_path / "index", files=[nowhere]),
        lambda: millrace.build(tmp_path / "index", [("a", "b")], stopwords=str(nowhere)),
        lambda: millrace.evaluate(nowhere, {"a": {"d": 1}}),
        lambda: millrace.evaluate({"a": {"d": 1}}, str(nowhere)),
        lambda: millrace.compare({"a": {"d": 1}}, nowhere, {"a": {"d": 1}}),
    ]:
        with pytest.raises(FileNotFoundError, match="nowhere|gen-000007"):
            call()


def test_an_index_is_pickled_as_its_path_and_generation(tmp_path):
    path = tmp_path / "index"
    millrace.build(path, [("old", "water mill"), ("x", "water")])
    index = millrace.Index(path, score="bm25plus", k1=0.7, score_delta=0.5)
    other = pickle.dumps(millrace.Index(path, idf="robertson", b=0.2))
    assert list(pickle.loads(other).search("mill")) == list(millrace.Index(path, idf="robertson", b=0.2).search("mill"))
    pickled = pickle.dumps(index)
    hits = index.search("water mill")
    many = index.search_many({"a": "water", "b": "nowhere", "c": "mill"}, workers=1)
    kept = pickle.dumps((hits, many, many[2]))
    assert len(pickled) < 1000
    millrace.build(path, [("new", "water mill"), ("y", "water")], keep=1)
    for again in [pickle.loads(pickled), copy.copy(index), copy.deepcopy(index)]:
        assert (again.score, again.generation_number, again.path) == ("bm25plus", 1, path)
        assert list(again.search("water mill")) == list(hits)
    assert millrace.Index(path).generation_number == 2
    again, answers, one = pickle.loads(kept)
    assert list(again) == list(hits) and hits[0][0] == "old"
    assert list(one) == list(many[2]) and [name for name, _, _ in one] == ["old"]
    assert (answers.qids, answers.unknown) == (many.qids, many.unknown)
    assert [list(hits) for hits in answers] == [list(hits) for hits in many]
    assert list(answers.offsets) == list(many.offsets)
    assert list(copy.deepcopy(hits)) == list(hits)
    del index, hits, many, again, answers, one
    shutil.rmtree(path / "gen-000001")
    for gone in [pickled, kept]:
        with pytest.raises(FileNotFoundError, match="not there any more"):
            pickle.loads(gone)
    with pytest.raises(ValueError, match="these hits are not of this generation"):
        millrace.Hits(path / "gen-000002", b"\xff\xff\xff\xff", b"\0\0\0\0")


INDEX = None


def search(number):
    return [hit[0] for hit in INDEX.search(f"w{number}x", k=3)]


def search_many(number):
    return list(INDEX.search_many([f"w{number}x", "w2x"], k=3)[0])


def built(path):
    return millrace.build(path, [("x", "alpha beta")], memory="64M")["documents"]


def opened(number):
    return len(millrace.Index(INDEX.path))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_children_answer(index, tmp_path):
    global INDEX
    INDEX = index
    # The parent has threads by then.
    index.search_many(["w1x", "w2x"] * 20, k=5)
    for job, given in [
        (search, range(1, 5)),
        (search_many, range(1, 5)),
        (opened, range(2)),
        (built, [tmp_path / "a", tmp_path / "b"]),
    ]:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map_async(job, given).get(timeout=100)
        if job is not built:
            assert found == [job(one) for one in given]
        else:
            assert found == [1, 1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_is_forked_during_searches_answers(index):
    global INDEX
    INDEX = index
    ended = threading.Event()

    def busy():
        while not ended.is_set():
            index.search_many([f"w{number}x" for number in range(40)], k=5, workers=2)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    [thread.start() for thread in threads]
    try:
        for _ in range(5):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map_async(search, [1, 2]).get(timeout=100) == [search(1), search(2)]
                assert pool.map_async(search_many, [3]).get(timeout=100) == [search_many(3)]
    finally:
        ended.set()
        [thread.join() for thread in threads]


def test_spawned_children_are_sent_an_index(index):
    # A spawned child imports this file; what it is sent is the index alone.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply_async(index.search, ("w1x", 3)).get(timeout=100)
    assert list(found) == list(index.search("w1x", 3))


def test_threads_answer(index):
    found = []
    threads = [
        threading.Thread(target=lambda n=n: found.append((n, list(index.search(f"w{n}x", 3))))) for n in range(8)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(found) == [(n, list(index.search(f"w{n}x", 3))) for n in range(8)]


def test_the_reported_script(tmp_path):
    script = shared("reports/70-python-fork-pickle/t.py")
    told = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=200
    ).stdout.splitlines()
    assert [line.split()[:2] for line in told[:3]] == [["fork", "search"], ["fork", "search_many"], ["fork", "build"]]
    assert told[3:] == ["pickle 50", "pickle 50", "threads 8"]
    assert all(line.endswith("]") for line in told[:3]), told


def test_a_query_with_too_many_terms_is_refused_alone(index):
    long = " ".join(f"t{number}x" for number in range(65_537))
    with pytest.warns(UserWarning, match="the query long has more than 65536 different terms"):
        answers = index.search_many([("short", "w1x"), ("long", long), ("last", "w1x")], 3)
    assert len(answers["long"]) == 0
    assert list(answers["short"]) == list(answers["last"]) == list(index.search("w1x", 3))
    with pytest.raises(ValueError, match="different terms"):
        index.search(long, 3)


def test_columns_come_from_dictionaries_frames_and_calls(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = [
        {"id": "a", "text": "water mill", "year": 1999, "tags": ["x", "y"], "day": datetime.date(2021, 5, 3)},
        {"id": "b", "text": "water", "year": None, "tags": [], "day": None},
        {"id": "c", "text": "mill water wheel", "year": 2001.0, "tags": "z", "day": "2022"},
    ]
    columns = ["year:int", "tags:word[]", "day:date", "title"]
    for name, documents in [("dicts", rows), ("frame", pandas.DataFrame(rows))]:
        folder = tmp_path / name
        with pytest.warns(UserWarning, match="no document has a value .*: title"):
            millrace.build(folder, documents, columns=columns)
        index = millrace.Index(folder)
        hits = index.search("water", 10)
        found = dict(zip(hits.names, hits.column("year")))
        assert found == {"a": 1999, "b": None, "c": 2001}
        assert dict(zip(hits.names, hits.column("tags"))) == {"a": ["x", "y"], "b": [], "c": ["z"]}
        assert dict(zip(hits.names, hits.column("day"))) == {"a": "2021-05-03", "b": None, "c": "2022-01-01"}
        assert set(hits.column("title")) == {None}
        assert list(index.search("water", filter="year > 2000 or tags = y").names) == ["a", "c"]
        scores = {name: score for name, _, score in hits}
        answers = index.search_many({"1": "water mill", "2": "wheel"}, filter="exists year")
        assert set(answers.column("year")) == {1999, 2001}
        for name, _, score in index.search("water", filter="day >= 2022"):
            assert score == scores[name]
        assert index.document("a")["values"]["tags"] == ["x", "y"]
        with pytest.raises(ValueError, match="there are year"):
            index.search("water", filter="yaer = 1")
        with pytest.raises(ValueError, match="there are year"):
            hits.column("yaer")
        with millrace.Writer(folder) as writer:
            writer.update("d", "water", values={"year": 2010, "tags": ["x"]})
            writer.update("a", "water", values={"year": 2011})
        index.refresh()
        assert sorted(index.search("water", filter="year >= 2010").names) == ["a", "d"]
