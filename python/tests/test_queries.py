"""Queries in all their forms, what is warned of in them, and what answers are to a program."""

import pickle
from collections import namedtuple

import numpy
import pandas
import polars
import pytest

import millrace
from millrace import Hit


@pytest.fixture(scope="module")
def mills(tmp_path_factory):
    path = tmp_path_factory.mktemp("mills") / "index"
    texts = ["the water mill", "a river, water", "the wind mill turns", "nothing of it"]
    millrace.build(path, zip("abcd", texts))
    return millrace.Index(path)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "v.jsonl").write_text(
        '{"id": "a", "vector": {"mill": 2, "##er": 1}}\n{"id": "b", "vector": {"mill": 1, "the": 3}}\n'
    )
    millrace.build(folder / "index", files=folder / "v.jsonl", format="vectors")
    return millrace.Index(folder / "index", score="impact")


def found(answers):
    return {qid: [hit.name for hit in hits] for qid, hits in answers.items()}


def Fields(*names):
    return namedtuple("Query", names)


@pytest.mark.parametrize(
    "queries",
    [
        [["1", "mill"], ("2", "river")],
        [{"qid": "1", "query": "mill"}, {"_id": 2, "text": "river"}],
        [{"question": "mill"}, {"title": "river", "query_id": "2"}],
        {"1": {"query": "mill"}, 2: "river"},
        {"1": {"mill": 1}, "2": {"river": 0.5}},
        [{"mill": 1.0}, {"river": numpy.float32(2), "mill": 0}],
        [("1", {"mill": numpy.int64(3)}), "river"],
        [Fields("query_id", "text")("1", "mill"), Fields("text", "query_id")("river", "2")],
        [Fields("topic", "words")("1", "mill"), Fields("topic", "query")("2", "river")],
        pandas.DataFrame({"qid": [1, 2], "query": [{"mill": 1.0}, "river"]}, dtype=object),
        pandas.DataFrame({"qid": [1, 2], "query": "nowhere", "query_toks": [{"mill": 1.0}, {"river": 2.0}]}),
        polars.DataFrame({"qid": [1, 2], "query_toks": ["mill", "river"]}),
    ],
    ids=str,
)
def test_lists_dictionaries_and_named_tuples_are_queries(mills, queries):
    assert found(mills.search_many(queries)) == {"1": ["a", "c"], "2": ["b"]}


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ([{}], "query 1: has neither query"),
        ([{"narrative": "mill"}], "query 1: has neither query"),
        ([{"QID": "1", "query": "mill"}], "differs from `qid` in case"),
        ([{"qid": "1", "query": "mill", "k": 3}], "query 1 has wishes of its own"),
        ([{"qid": "1", "query": float("nan")}], "query 1: a number of it is infinite or none"),
        ({"q": {"mill": float("inf")}}, "query 1: a number of it is infinite or none"),
        ({"q": {"mill": -1.0}}, "query q: \"vector\" has terms"),
        ({"q": {"a b": 1.0}}, "query q: \"vector\" has terms"),
        ({"q": {"mill": True}}, "query q: has neither query"),
        ([("a", "b", "c")], "query 1: expected a text or a pair"),
        ([7], "query 1: expected a text or a pair"),
    ],
)
def test_queries_that_are_none(mills, queries, said):
    with pytest.raises(ValueError, match=said):
        mills.search_many(queries)


def test_a_dictionary_of_fields_is_one_query(mills):
    assert found(mills.search_many({"qid": "7", "query": "river"})) == {"7": ["b"]}
    assert found(mills.search_many({"topic": "river"})) == {"topic": ["b"]}


def test_weights_count_and_terms_are_not_analysed(mills, vectors):
    plain = {hit.name: hit.score for hit in mills.search("mill")}
    for weight in [0.5, 3]:
        hits = mills.search({"mill": weight})
        assert {hit.name: hit.score for hit in hits} == {name: pytest.approx(weight * score) for name, score in plain.items()}
    assert len(mills.search({"mills": 1.0})) == 0 and len(mills.search("mills")) == 2
    assert list(mills.search({"water": 2.0, "mill": 1.0})) == list(mills.search("water water mill"))
    assert [tuple(hit) for hit in vectors.search({"mill": 2.0, "the": 1.0})] == [("b", 1, 5.0), ("a", 0, 4.0)]
    assert list(vectors.search_many({"q": {"mill": 2.0, "the": 1.0}})["q"]) == list(vectors.search("mill^2 the"))
    assert mills.explain({"mill": 2.0}, "a")["score"] == pytest.approx(2 * plain["a"])
    assert len(mills.search_many({"q": {}})["q"]) == 0


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ([("q", "mill"), ("q", "river")], "two queries have the name q"),
        (pandas.DataFrame({"qid": [1, 1], "query": ["mill", "river"]}), "two queries have the name 1"),
        (["mill", '"water mill"'], 'query 2: `"water mill"` is searched for as words'),
        (["mill", "title:water"], "query 2: `title:water` is searched for as words"),
        ({"q": "water AND mill"}, "query q: `AND` is searched for as words"),
        ([{"qid": "9", "query": "mill", "narrative": "x"}], "query 9: unknown fields are ignored: narrative"),
        ([Fields("query_id", "title", "description")("9", "mill", "x")], "unknown fields are ignored: description"),
    ],
    ids=str,
)
def test_what_means_nothing_is_warned_of(mills, queries, said):
    with pytest.warns(UserWarning, match=said) as told:
        mills.search_many(queries)
    assert len(told) == 1


def test_one_query_and_a_file_are_warned_of(mills, vectors, tmp_path):
    with pytest.warns(UserWarning, match=r"`mill\*` is searched for as words"):
        mills.search("mill*")
    path = tmp_path / "queries.tsv"
    path.write_text("1\tmill\n1\t+river\n")
    with pytest.warns(UserWarning) as told:
        assert len(mills.search_many(path)) == 2
    assert sorted(str(one.message)[:25] for one in told) == ["query 1: `+river` is sear", "two queries have the name"]
    # Nothing is an operator where texts are terms.
    vectors.search_many(["mill*", "##er"])
    mills.search({"mill*": 1.0})


def test_the_form_of_a_file_can_be_named(mills, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("1 mill\n2 river\n")
    with pytest.warns(UserWarning, match="every line is `qid text`"):
        assert found(mills.search_many(path)) == {"1": ["a", "c"], "2": ["b"]}
    path.write_text("x\tmill\ny\triver\n")
    assert mills.search_many(path, query_format="tsv").qids == ["x", "y"]
    assert mills.search_many(path, query_format="words").qids == ["1", "2"]
    for wrong, form in [(path, "tsw"), (["mill"], "words")]:
        with pytest.raises(ValueError, match="tsv|path of a file"):
            mills.search_many(wrong, query_format=form)


def test_a_name_that_comes_twice_is_not_measured(mills):
    with pytest.warns(UserWarning, match="two queries"):
        answers = mills.search_many([("q", "mill"), ("r", "wind"), ("q", "river")])
    qrels = {"q": {"a": 1}}
    for call in [
        lambda: millrace.evaluate(answers, qrels, ["P@1"]),
        lambda: millrace.compare({"q": {"a": 1.0}}, answers, qrels, ["P@1"]),
        lambda: millrace.fuse([answers, {"q": {"a": 1.0}}]),
        lambda: mills.tune([("q", "mill"), ("r", "wind"), ("q", "river")], qrels, folds=2),
    ]:
        with pytest.raises(ValueError, match="two queries have the name q, so that their answers cannot be told apart"):
            call()


def test_measures_that_look_deeper_are_warned_of(mills):
    qrels = {"q": {"a": 1}, "r": {"b": 1}}
    answers = mills.search_many({"q": "mill", "r": "river"}, k=2)
    for run in [answers, pickle.loads(pickle.dumps(answers))]:
        with pytest.warns(UserWarning, match="AP, R@100: only the first 2 hits .* k=1000 is enough"):
            millrace.evaluate(run, qrels, ["AP", "P@2", "R@100"])
        with pytest.warns(UserWarning, match="R@3: only the first 2 hits"):
            millrace.compare({"q": {"a": 1.0}}, run, qrels, ["R@3"])
    millrace.evaluate(mills.search_many({"q": "mill", "r": "river"}, k=1000), qrels)
    millrace.evaluate(mills.search_many({"q": "mill"}, candidates=answers), {"q": {"a": 1}})


def test_answers_are_looked_up_by_the_names_of_queries(mills):
    answers = mills.search_many({"q": "mill", "7": "river", "none": "nowhere"})
    assert "q" in answers and "7" in answers and "z" not in answers and 7 not in answers and None not in answers
    assert answers.keys() == answers.qids == ["q", "7", "none"]
    by_name = dict(answers)
    assert list(by_name) == answers.qids and list(by_name["q"]) == list(answers["q"]) == list(answers[0])
    assert [(qid, list(hits)) for qid, hits in answers.items()] == [(qid, list(answers[qid])) for qid in answers.qids]
    assert [list(hits) for hits in answers] == [list(hits) for hits in answers.values()]
    assert len(by_name["none"]) == 0
    many = mills.search_many({str(number): "mill" for number in range(20_000)}, k=1)
    assert all(qid in many and many[qid][0].name == "a" for qid in many.qids)


def test_hits_are_named_tuples(mills):
    hits = mills.search("mill")
    for hit in [hits[0], next(iter(hits)), mills.search_many(["mill"])["1"][0], pickle.loads(pickle.dumps(hits[0]))]:
        assert isinstance(hit, Hit) and isinstance(hit, tuple)
        name, docid, score = hit
        assert (hit.name, hit.docid, hit.score) == (name, docid, score) == hit == hits[0]
        assert (hit.name, hit.docid) == ("a", 0) and hit.score == hits.scores[0]
    assert [hit._asdict()["name"] for hit in hits] == ["a", "c"]
    assert next(reversed(hits)) == hits[-1] and hits[0] in hits


def test_measures_and_rows_of_ir_measures(mills):
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, P, Judged, Qrel, R, ScoredDoc, Success, nDCG

    answers = mills.search_many({"q": "mill", "r": "water"}, k=5)
    qrels = [Qrel("q", "c", 2, "0"), Qrel("q", "a", 0, "0"), Qrel("r", "a", 1, "0")]
    run = [ScoredDoc(qid, hit.name, hit.score) for qid, hits in answers.items() for hit in hits]
    measures = [nDCG @ 3, AP @ 5, AP(rel=2) @ 5, P @ 1, P(rel=2) @ 2, R @ 2, Success @ 1, Judged @ 2]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    for given in [answers, run]:
        ours = millrace.evaluate(given, qrels, measures)["measures"]
        assert set(ours) == {str(measure) for measure in measures}
        assert ours == {str(measure): pytest.approx(value) for measure, value in theirs.items()}
    assert list(millrace.evaluate(answers, qrels, nDCG @ 3)["measures"]) == ["nDCG@3"]
    assert millrace.evaluate(answers, qrels, "P@1")["measures"] == {"P@1": theirs[P @ 1]}
    assert list(millrace.compare(answers, run, qrels, [P @ 1, "R@2"])) == ["P@1", "R@2"]
    tuned = mills.tune({"q": "mill", "r": "water"}, qrels, measure=P @ 1, k1=[0.9], b=[0.4], folds=2)
    assert tuned["best"]["mean"] >= tuned["default"]["mean"]
    for wrong, error in [([nDCG(dcg="exp-log2") @ 3], ValueError), ([3], TypeError), (3, TypeError)]:
        with pytest.raises(error):
            millrace.evaluate(answers, qrels, wrong)


def test_rows_are_read_by_their_fields():
    run = {"q": {"a": 2.0, "b": 1.0}}
    expected = millrace.evaluate(run, {"q": {"b": 1}}, ["RR"])
    for qrels in [
        [Fields("doc_id", "query_id", "relevance")("b", "q", 1)],
        [Fields("label", "qid", "docno", "more")(1, "q", "b", "x")],
        [Fields("x", "y", "z")("q", "b", 1)],
        [{"docno": "b", "label": 1, "qid": "q"}],
        [("q", "b", 1, "0"), ["q", "a", 0]],
    ]:
        assert millrace.evaluate(run, qrels, ["RR"]) == expected
    rows = [Fields("score", "docno", "qid")(2.0, "a", "q"), {"query_id": "q", "score": 1, "doc_id": "b"}]
    assert millrace.evaluate(rows, {"q": {"b": 1}}, ["RR"]) == expected
    for wrong in [[Fields("relevance", "x", "y")(1, "q", "b")], [{"qid": "q", "docno": "b"}]]:
        with pytest.raises(ValueError, match="row 1 has no field"):
            millrace.evaluate(run, wrong)


def test_runs_are_fused(mills):
    one = mills.search_many({"q": "mill", "r": "water"})
    other = {"q": {"c": 9.0, "z": 1.0}, "s": {"y": 1.0}}
    fused = millrace.fuse([one, other])
    assert list(fused) == ["q", "r", "s"] and list(fused["q"]) == ["c", "a", "z"]
    assert fused["q"]["c"] == pytest.approx(1 / 61 + 1 / 62) and fused["s"] == {"y": pytest.approx(1 / 61)}
    assert millrace.fuse([one, other], rrf_k=0)["q"]["c"] == pytest.approx(1.5)
    assert millrace.fuse([one, other], method="combsum", k=1)["q"] == {"a": 1.0}
    summed = millrace.fuse([one, other], method="combsum")
    assert summed["q"] == {"a": 1.0, "c": 1.0, "z": 0.0}
    both = millrace.fuse([one, other], method="combmnz", weights=[0.5, 2])
    assert both["q"] == {"c": 2 * 2.0, "a": 0.5, "z": 0.0}
    assert millrace.evaluate(fused, {"q": {"c": 1}}, ["P@1"])["measures"] == {"P@1": 1}
    assert found(mills.search_many({"q": "mill"}, candidates={"q": {"c": 1.0}})) == {"q": ["c"]}
    for wrong, options, said in [
        ([one], {}, "two runs or more"),
        ([one, one], {"method": "best"}, "`best` is not one of rrf, "),
        ([one, one], {"weights": [1]}, "a number for each run"),
        ([one, one], {"method": "combsum", "rrf_k": 3}, "goes with"),
        ([one, one], {"rrf_k": -1}, "0 or more"),
        ([one, one], {"k": 0}, "from 1 on"),
        ([one, {"q": ["a"]}], {}, "run 2: query q: expected a dictionary"),
    ]:
        with pytest.raises(ValueError, match=said):
            millrace.fuse(wrong, **options)


def test_terms_have_dfs_and_postings(mills, vectors, index, documents):
    assert [mills.df(term) for term in ["mill", "mills", "Water", "turn", "the", "nowhere", ""]] == [2, 2, 2, 1, 0, 0, 0]
    docids, tfs = mills.postings("water")
    assert (docids.dtype, tfs.dtype) == (numpy.uint32, numpy.uint32)
    assert (docids.tolist(), tfs.tolist()) == ([0, 1], [1, 1])
    assert [column.tolist() for column in mills.postings("nowhere")] == [[], []]
    for call in [mills.df, mills.postings]:
        with pytest.raises(ValueError, match="`water mill` is several terms: water, mill"):
            call("water mill")
    assert vectors.df("##er") == 1 and vectors.df("mill er") == 0
    assert [column.tolist() for column in vectors.postings("mill")] == [[0, 1], [2, 1]]
    for term in ["w1x", "w9x", "w50x"]:
        expected = [(docid, text.split().count(term)) for docid, text in enumerate(documents.values())]
        expected = [(docid, tf) for docid, tf in expected if tf]
        assert list(zip(*(column.tolist() for column in index.postings(term)))) == expected
        assert index.df(term) == len(expected)


def test_snippets_have_the_words_of_the_query(mills, tmp_path):
    text = f"{'word ' * 60}the old mills {'word ' * 60}"
    part = mills.snippet("mill", text, 60)
    assert "mills" in part and len(part) <= 60 and part.startswith("...")
    assert "mills" in mills.snippet({"mill": 2.0}, text) and "mills" not in mills.snippet("river", text)
    (tmp_path / "a.jsonl").write_text(f'{{"id": "x", "text": "{text}"}}\n{{"id": "y", "text": "a mill"}}\n')
    millrace.build(tmp_path / "index", files=tmp_path / "a.jsonl")
    index = millrace.Index(tmp_path / "index")
    hits = index.search("mill")
    for some in [hits, index.search_many(["mill"])["1"], pickle.loads(pickle.dumps(hits)), hits[:2]]:
        assert some.snippets(60).tolist() == [index.snippet("mill", text, 60) for text in some.texts()]
    assert hits[1:].snippets().tolist() == hits.snippets().tolist()[1:]
    with pytest.raises(millrace.MillraceError, match="memory of a program"):
        mills.search("mill").snippets()
