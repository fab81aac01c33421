"""Searches, compared with BM25 by its formula."""

import contextlib
import json
import math
import pickle
import re
import threading
from collections import Counter

import numpy
import pytest

import millrace


def bm25(documents, query, k1=1.2, b=0.75):
    """All documents with a term of the query, by the formula, best first."""
    counted = {name: Counter(text.split()) for name, text in documents.items()}
    lengths = {name: sum(terms.values()) for name, terms in counted.items()}
    mean = sum(lengths.values()) / len(lengths)
    scores = Counter()
    for term, times in Counter(query.split()).items():
        having = [name for name, terms in counted.items() if term in terms]
        idf = math.log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            tf = counted[name][term]
            norm = k1 * (1 - b + b * lengths[name] / mean)
            scores[name] += times * idf * (k1 + 1) * tf / (tf + norm)
    return scores


def test_candidates_are_ranked_alone(index):
    queries = {"a": "w1x w2x", "b": "w5x", "c": "w1x"}
    everything = index.search_many(queries, 100000)
    of_a = {name: score for name, _, score in everything[0]}
    names = [name for name, _, _ in everything[1]][:7] + list(of_a)[:5]
    given = {"a": {name: 0.0 for name in names}, "b": {"no-such": 1.0}}
    with pytest.warns(UserWarning, match="1 candidate is not in the index: no-such"):
        answers = index.search_many(queries, candidates=given)
    found = [(name, score) for name, _, score in answers[0]]
    assert sorted(name for name, _ in found) == sorted(set(names))
    assert found == [(name, of_a.get(name, 0.0)) for name, _ in found]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert len(answers[1]) == 0 and len(answers[2]) == 0
    del given["b"]
    assert list(index.search_many(queries, 2, candidates=given)[0]) == list(answers[0])[:2]
    assert list(index.search_many(queries, candidates=everything)[0]) == list(everything[0])


def test_scores_are_those_of_the_formula(index, documents, queries):
    for query in queries:
        expected = bm25(documents, query)
        hits = index.search(query, k=1000)
        assert set(hits.names) == set(expected)
        for name, _, score in hits:
            assert score == pytest.approx(expected[name], rel=1e-5)
        assert list(hits.scores) == sorted(hits.scores, reverse=True)


def test_parameters_of_the_score_are_heeded(index_path, documents):
    index = millrace.Index(index_path, k1=0.4, b=0.1, verify=True)
    expected = bm25(documents, "w3x w20x", 0.4, 0.1)
    for name, _, score in index.search("w3x w20x", 1000):
        assert score == pytest.approx(expected[name], rel=1e-5)
    robertson, lucene = (millrace.Index(index_path, idf=idf) for idf in ["robertson", "lucene"])
    assert robertson.search("w30x")[0][2] < lucene.search("w30x")[0][2]


def test_other_scores_rank_by_their_formulas(index_path, documents):
    tokens = {name: text.split() for name, text in documents.items()}
    cf = sum(words.count("w3x") for words in tokens.values())
    p = cf / sum(map(len, tokens.values()))
    index = millrace.Index(index_path, score="ql", mu=50)
    assert index.score == "ql" and millrace.Index(index_path).score == "bm25"
    hits = index.search("w3x", 1000)
    assert len(hits) > 100
    for name, _, score in hits:
        tf, length = tokens[name].count("w3x"), len(tokens[name])
        expected = math.log(1 + tf / (50 * p)) + math.log(50 / (length + 50))
        assert score == pytest.approx(max(expected, 0), abs=1e-5)
    for score in ["bm25-lucene", "bm25plus", "bm25l", "tfidf", "dph", "impact", "wang"]:
        with contextlib.nullcontext() if score != "wang" else pytest.warns(UserWarning, match="no PageRanks"):
            index = millrace.Index(index_path, score=score)
        [one, *_], [best, *_] = index.search("w9x w20x", 3), index.search("w9x w20x", 3, algorithm="exhaustive")
        assert one == best, score
    for wrong in [{"score": "okapi"}, {"score": "ql", "k1": 1}, {"mu": 9}, {"score": "ql", "mu": 0}]:
        with pytest.raises(ValueError):
            millrace.Index(index_path, **wrong)


def test_queries_are_expanded(tmp_path, index, documents, queries):
    lines = [json.dumps({"id": name, "text": text}) for name, text in documents.items()]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    millrace.build(tmp_path / "index", files=tmp_path / "in.jsonl", memory="64M")
    from_file = millrace.Index(tmp_path / "index")
    answers = from_file.search_many(queries, 7, workers=3, rm3=(3, 5, 0.5))
    assert answers.qids == [str(number) for number in range(1, 51)]
    for query, hits in zip(queries, answers):
        assert list(from_file.search(query, 7, rm3=(3, 5, 0.5))) == list(hits)
    # Own terms with all of the weight find what they find alone.
    alone, plain = from_file.search_many(queries, 7, rm3=(3, 5, 1.0)), from_file.search_many(queries, 7)
    assert numpy.array_equal(alone.offsets, plain.offsets)
    assert not numpy.array_equal(answers.scores, alone.scores)
    with pytest.raises(millrace.MillraceError, match="memory of a program"):
        index.search("w1x", rm3=(3, 5, 0.5))
    with pytest.raises(ValueError, match="from 0 to 1"):
        index.search("w1x", rm3=(3, 5, 2))


def test_a_function_is_told_how_many_queries_are_answered(tmp_path, index, documents, queries):
    told = []
    many = queries * 40
    answers = index.search_many(many, progress=told.append)
    assert numpy.array_equal(answers.docids, index.search_many(many).docids)
    assert told[-1] == {"queries": 2000, "total_queries": 2000, "finished": True}
    assert [done["queries"] for done in told] == sorted(done["queries"] for done in told)
    assert not any(done["finished"] for done in told[:-1])
    index.search_many(queries, candidates=answers, progress=told.append)
    assert told[-1]["queries"] == len(queries)
    index.search_many([], progress=told.append)
    assert told[-1] == {"queries": 0, "total_queries": 0, "finished": True}
    lines = [json.dumps({"id": name, "text": text}) for name, text in documents.items()]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    millrace.build(tmp_path / "index", files=tmp_path / "in.jsonl")
    millrace.Index(tmp_path / "index").search_many(queries, rm3=(3, 5, 0.5), progress=told.append)
    assert told[-1] == {"queries": 100, "total_queries": 100, "finished": True}
    qrels = {str(number): {"d1": 1} for number in range(1, 51)}
    index.tune(queries, qrels, k1=[0.9, 1.2], b=[0.4, 0.75], folds=2, progress=told.append)
    assert told[-1] == {"queries": 200, "total_queries": 200, "finished": True}


def test_what_the_function_raises_ends_the_search(index, queries):
    def enough(done):
        assert not done["finished"]
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        index.search_many(queries * 20_000, 1000, algorithm="exhaustive", workers=1, progress=enough)
    qrels = {str(number): {"d1": 1} for number in range(1, 51)}
    with pytest.raises(LookupError, match="enough"):
        index.tune(queries, qrels, k1=[n / 100 for n in range(1, 2000)], workers=1, progress=enough)
    with pytest.raises(TypeError, match="progress is True, False or a function"):
        index.search_many(queries, progress=3)


@pytest.mark.parametrize("mode", ["or", "and", "and-or"])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_many_are_as_one_by_one(index, queries, mode, workers):
    answers = index.search_many(queries, 7, mode=mode, workers=workers)
    assert len(answers) == len(queries)
    assert answers.qids == [str(number) for number in range(1, 51)]
    assert answers.offsets[0] == 0 and answers.offsets[-1] == len(answers.docids) == len(answers.scores)
    for at, query in enumerate(queries):
        one = index.search(query, 7, mode=mode)
        part = slice(int(answers.offsets[at]), int(answers.offsets[at + 1]))
        for columns in [answers[at], one]:
            assert numpy.array_equal(columns.docids, answers.docids[part])
            assert numpy.array_equal(columns.scores, answers.scores[part])
            assert list(columns.names) == list(answers.names[part])
        assert list(one) == list(zip(one.names, one.docids, one.scores))


def test_columns_are_numpy_arrays_over_one_memory(index, queries):
    answers = index.search_many(queries, 5)
    assert (answers.docids.dtype, answers.scores.dtype) == (numpy.uint32, numpy.float32)
    assert (answers.offsets.dtype, answers.names.dtype) == (numpy.uint64, object)
    assert numpy.shares_memory(answers.docids, answers[3].docids)
    assert numpy.shares_memory(answers.scores, answers.scores)
    assert answers.names is answers.names
    with pytest.raises(ValueError):
        answers.docids[0] = 1
    # An array holds what it shows.
    kept = answers.docids
    expected = kept.copy()
    del answers
    index.search_many(queries, 50)
    assert numpy.array_equal(kept, expected)


def test_queries_come_in_several_forms(index):
    texts = ["w1x", "w2x w3x"]
    forms = [texts, tuple(texts), iter(texts), [("1", "w1x"), (2, "w2x w3x")], {"1": "w1x", "2": "w2x w3x"}]
    for queries in forms:
        answers = index.search_many(queries, 3)
        assert answers.qids == ["1", "2"]
        assert [list(hits) for hits in answers] == [list(index.search(text, 3)) for text in texts]
    for wrong in ["w1x", [1], [("a", 1)], [("a", "b", "c")]]:
        with pytest.raises((TypeError, ValueError)):
            index.search_many(wrong)


def test_nothing_found(index):
    assert list(index.search("nowhere")) == []
    assert len(index.search("nowhere").docids) == 0
    answers = index.search_many(["nowhere", "w1x nowhere"], mode="and")
    assert (len(answers[0]), len(answers[1]), answers.unknown) == (0, 0, 1)
    assert list(answers.offsets) == [0, 0, 0] and len(answers.names) == 0
    assert len(index.search_many([])) == 0 and list(index.search_many([]).offsets) == [0]


def test_sequences(index):
    hits = index.search("w1x w2x", 4)
    assert hits[-1] == hits[3] and len(hits) == 4
    for at in [4, -5]:
        with pytest.raises(IndexError):
            hits[at]
    assert repr(hits).startswith("<4 hits: d") and repr(hits).endswith("...>")
    answers = index.search_many(["w1x", "w2x"])
    assert list(answers[-1]) == list(answers[1])
    assert "2 queries" in repr(answers) and "300 documents" in repr(index)


@pytest.mark.parametrize("options", [{"mode": "xor"}, {"algorithm": "magic"}])
def test_wrong_options(index, options):
    with pytest.raises(ValueError, match="is one of"):
        index.search("w1x", **options)


def test_an_index_that_is_not_there_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        millrace.Index(tmp_path)
    millrace.build(tmp_path / "index", [("a", "mill")])
    lexicon = tmp_path / "index/runs/000000.lexicon"
    bytes_ = bytearray(lexicon.read_bytes())
    bytes_[-3] ^= 255
    lexicon.write_bytes(bytes_)
    with pytest.raises(millrace.MillraceError, match="000000.lexicon"):
        millrace.Index(tmp_path / "index")
    for wrong in [{"k1": -1}, {"b": 2}, {"idf": "none"}]:
        with pytest.raises(ValueError):
            millrace.Index(tmp_path / "index", **wrong)


def test_documents_and_explanations(index, documents):
    assert len(index) == 300 and index.info()["generation"] == index.generation_number == 1
    name, docid, score = index.search("w3x w20x")[2]
    document = index.document(name)
    assert document == index.document(docid=docid)
    assert (document["docid"], document["tokens"]) == (docid, len(documents[name].split()))
    explained = index.explain("w3x w20x", name)
    assert (explained["score"], explained["rank"]) == (pytest.approx(score, rel=1e-6), 3)
    assert [term["term"] for term in explained["terms"]] == ["w3x", "w20x"]
    assert explained == index.explain("w3x w20x", docid=docid)
    for missing in [{"name": "nobody"}, {"docid": 300}]:
        with pytest.raises(KeyError):
            index.document(**missing)
    with pytest.raises(ValueError, match="docid or name"):
        index.document()


def test_threads_search_at_once(index, queries):
    expected = [list(index.search(query)) for query in queries]
    found = []

    def search():
        found.append([list(index.search(query)) for query in queries])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_run_files(index, queries, tmp_path):
    answers = index.search_many([(f"q{i}", query) for i, query in enumerate(queries)], 5)
    answers.write_run(tmp_path / "run", tag="mine")
    lines = (tmp_path / "run").read_text().splitlines()
    assert len(lines) == len(answers.docids)
    assert lines[0] == f"q0 Q0 {answers.names[0]} 1 {answers.scores[0]!s} mine"
    with pytest.raises(ValueError, match="one word"):
        answers.write_run(tmp_path / "run", tag="two words")
    with pytest.raises(OSError):
        answers.write_run(tmp_path / "nowhere" / "run")


def test_queries_are_read_from_files(index, tmp_path):
    path = tmp_path / "queries.json"
    path.write_text('{"a": "w1x", "b": {"query": "w2x w3x"}}')
    answers = index.search_many(path, 5)
    assert answers.qids == ["a", "b"]
    assert [list(hits) for hits in answers] == [
        list(index.search("w1x", 5)), list(index.search("w2x w3x", 5))
    ]
    path.write_text('{"query": "w1x", "k": 3}')
    with pytest.raises(ValueError, match="wishes of its own"):
        index.search_many(path)
    path.write_text('{"query": ')
    with pytest.raises(ValueError, match="line 1 of the queries"):
        index.search_many(path)
    with pytest.raises(FileNotFoundError):
        index.search_many(tmp_path / "none")


def test_the_document_of_the_query_can_be_left_out(index):
    hits = list(index.search("w1x", 6))
    name = hits[1][0]
    kept = index.search_many([(name, "w1x"), ("x", "w1x")], 5, remove_query=True)
    assert list(kept[0]) == hits[:1] + hits[2:]
    assert list(kept[1]) == hits[:5]
    for search in (index.search, lambda query, k: index.search_many([query], k)):
        with pytest.raises(ValueError, match="from 1 on"):
            search("w1x", 0)


def test_names_are_had_by_any_door_and_rotten_ones_are_not_opened(tmp_path):
    texts = [(f"d{number:03}", f"mill {number}") for number in range(300)]
    path = tmp_path / "rots"
    millrace.build(path, texts)
    index = millrace.Index(path)
    doors = {
        "names": lambda: list(index.search("mill", 300).names),
        "hits": lambda: list(index.search("mill", 300)),
        "hit": lambda: index.search("7", 3)[0],
        "repr": lambda: repr(index.search("7", 3)),
        "many": lambda: list(index.search_many(["mill", "7"], 300).names),
        "of many": lambda: list(index.search_many(["mill", "7"], 300)[1]),
        "frame": lambda: index.search_many({"1": "mill"}, 300).to_frame(),
        "run": lambda: index.search_many(["mill"], 300).write_run(tmp_path / "run"),
        "removed": lambda: index.search_many({"d007": "mill"}, 300, remove_query=True),
        "document": lambda: index.document(docid=7),
        "by name": lambda: index.document("d007"),
        "candidates": lambda: index.search_many({"1": "mill"}, candidates={"1": {"d007": 1.0}}),
        "measures": lambda: millrace.evaluate(index.search_many(["7"], 1000), {"1": {"d007": 1}}),
    }
    for door in doors.values():
        door()
    [names] = path.glob("runs/*.names")
    # A block has once what its names begin with, the d.
    last_byte = 64 + 1 + 3 * 7 + 2
    with open(names, "r+b") as file:
        file.seek(last_byte)
        assert file.read(1) == b"7"
        file.seek(last_byte)
        file.write(b"8")
    with pytest.raises(millrace.MillraceError, match=re.escape(f"{names}: byte 64: expected")):
        millrace.Index(path)


def test_phrases(tmp_path):
    texts = ["wind mill by the river", "mill of wind", "the wind mill wind mill"]
    millrace.build(tmp_path / "i", [(f"d{n}", text) for n, text in enumerate(texts)], positions=True)
    index = millrace.Index(tmp_path / "i")
    hits = index.search('"wind mill"', syntax="operators", count=True)
    assert list(hits.names) == ["d2", "d0"] and hits.found == 2
    assert list(index.search('"mill wind"', syntax="operators").names) == ["d2"]
    tree = json.dumps({"phrase": "wind mill", "slop": 1, "ordered": False})
    assert set(index.search(tree, syntax="tree").names) == {"d0", "d1", "d2"}
    # A document that is added later has positions, too.
    with millrace.Writer(index) as writer:
        writer.update("d3", "far wind mill")
    assert index.search('"wind mill"', 0, syntax="operators", count=True).found == 3
    millrace.build(tmp_path / "j", [("d", texts[0])])
    with pytest.raises(ValueError, match="without positions"):
        millrace.Index(tmp_path / "j").search('"wind mill"', syntax="operators")


def test_operators_and_counts(index, documents):
    words = {name: set(text.split()) for name, text in documents.items()}
    every = [word for own in words.values() for word in sorted(own)]
    a, b, c = (word for word, _ in Counter(every).most_common(3))
    expected = {name for name, own in words.items() if a in own and b not in own}
    hits = index.search(f"+{a} -{b} {c}", 10000, syntax="operators", count=True)
    assert set(hits.names) == expected and hits.found == len(expected) > 0
    assert index.search(f"+{a} -{b}", 0, syntax="operators", count=True).found == hits.found
    assert index.search(a, 3).found is None
    tree = json.dumps({"all": [a], "none": [b], "any": [c]})
    assert list(index.search(tree, 10000, syntax="tree")) == list(hits)
    answers = index.search_many([f"+{a} -{b} {c}", a], 5, syntax="operators", count=True)
    assert answers.found == [len(expected), index.df(a)]
    assert answers[0].found == len(expected) and list(answers[0]) == list(hits)[:5]
    again = pickle.loads(pickle.dumps(answers))
    assert again.found == answers.found and again[1].found == answers.found[1]
    assert pickle.loads(pickle.dumps(hits)).found == hits.found
    explained = index.explain(f"+{a} -{b} {c}", hits.names[0], syntax="operators")
    assert explained["score"] == pytest.approx(hits.scores[0]) and explained["rank"] == 1
    with pytest.raises(ValueError, match="character 1"):
        index.search(f"-{a}", syntax="operators")
    with pytest.raises(ValueError, match="syntax is one of"):
        index.search(a, syntax="lucene")
