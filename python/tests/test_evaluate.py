"""Measures, comparisons and tuning."""

import math

import pytest

import millrace

QRELS = {"a": {"d1": 2, "d2": 0, "d3": 1}, "b": {"d1": 1}}
RUN = {"a": {"d2": 3.0, "d1": 2.0, "x": 1.5, "d3": 1.0}, "b": {"x": 1.0, "d1": 0.5}, "c": {"d1": 1.0}}


def test_measures_by_hand():
    found = millrace.evaluate(RUN, QRELS, ["nDCG@10", "AP", "RR", "P@2", "R@2"])
    assert (found["queries"], found["queries_not_judged"], found["queries_without_hits"]) == (2, 1, 0)
    a, b = found["per_query"]["a"], found["per_query"]["b"]
    gain = 2 / math.log2(3) + 1 / math.log2(5)
    assert a["nDCG@10"] == pytest.approx(gain / (2 + 1 / math.log2(3)))
    assert (a["AP"], a["RR"], a["P@2"], a["R@2"]) == (pytest.approx((1 / 2 + 2 / 4) / 2), 0.5, 0.5, 0.5)
    assert (b["AP"], b["RR"], b["R@2"]) == (0.5, 0.5, 1)
    assert found["measures"]["RR"] == 0.5
    assert len(millrace.evaluate(RUN, QRELS)["measures"]) == 9


def test_ties_go_by_name_or_as_the_run_has_them():
    run = {"a": {"d1": 1.0, "x": 1.0}, "b": {"d1": 1.0, "x": 1.0}}
    measures = ["P@1", "Judged@1"]
    assert millrace.evaluate(run, QRELS, measures)["measures"] == {"P@1": 0, "Judged@1": 1}
    assert millrace.evaluate(run, QRELS, measures, ties="run")["measures"] == {"P@1": 1, "Judged@1": 1}
    with pytest.raises(ValueError, match="ties"):
        millrace.evaluate(run, QRELS, measures, ties="name")


def test_all_forms_of_runs_and_judgements(tmp_path, index):
    (tmp_path / "qrels").write_text("a 0 d1 2\na 0 d2 0\na 0 d3 1\nb 0 d1 1\n")
    (tmp_path / "run").write_text(
        "".join(f"{q} Q0 {d} 1 {s} t\n" for q, documents in RUN.items() for d, s in documents.items())
    )
    rows = [(q, d, relevance, "0") for q, documents in QRELS.items() for d, relevance in documents.items()]
    expected = millrace.evaluate(RUN, QRELS)["per_query"]
    for run in [RUN, tmp_path / "run", str(tmp_path / "run")]:
        for qrels in [QRELS, tmp_path / "qrels", rows, iter(rows)]:
            assert millrace.evaluate(run, qrels)["per_query"] == expected
    answers = index.search_many({"a": "w1x w2x", "b": "w5x"}, 1000)
    answers.write_run(tmp_path / "run")
    qrels = {"a": {answers.names[0]: 1, "d1": 1}, "b": {"d1": 1}}
    assert millrace.evaluate(answers, qrels)["measures"] == millrace.evaluate(tmp_path / "run", qrels)["measures"]


def test_comparisons():
    same = millrace.compare(RUN, RUN, QRELS, ["AP"])["AP"]
    assert (same["difference"], same["better"], same["worse"], same["t_test_p"]) == (0, 0, 0, None)
    better = {"a": {"d1": 2.0, "d3": 1.0}, "b": {"d1": 1.0}}
    found = millrace.compare(better, RUN, QRELS, ["AP"])["AP"]
    assert (found["difference"], found["better"], found["worse"]) == (0.5, 2, 0)
    assert found["randomisation_p"] == 0.5


@pytest.mark.parametrize(
    ("run", "qrels", "error", "said"),
    [
        (RUN, {}, millrace.MillraceError, "qrels"),
        (RUN, {"z": {"d": 1}}, millrace.MillraceError, "z|no|none"),
        ("nowhere", QRELS, FileNotFoundError, "nowhere"),
        (RUN, "nowhere", FileNotFoundError, "nowhere"),
        (RUN, [("a", "d1", 1), ("a", "d1", 0)], millrace.MillraceError, "d1"),
        (RUN, [("a", "d1", "high")], ValueError, "whole number"),
        ({"a": {"d": math.nan}}, QRELS, ValueError, "query a: document d"),
        ({"a": 1}, QRELS, ValueError, "query a"),
        (7, QRELS, ValueError, "a run is"),
    ],
)
def test_wrong_input(run, qrels, error, said):
    with pytest.raises(error, match=said):
        millrace.evaluate(run, qrels)


def test_wrong_measures():
    with pytest.raises(ValueError, match="Q-measure"):
        millrace.evaluate(RUN, QRELS, ["Q-measure"])


def test_tuning_finds_the_best_of_its_grid(index, index_path, queries):
    queries = dict(enumerate(queries[:12]))
    qrels = {}
    for qid, text in queries.items():
        names = index.search(text, 9).names
        qrels[str(qid)] = {name: int(place % 2) for place, name in enumerate(names)}
    with pytest.warns(UserWarning, match="AP: only the first 50 hits of a query count here"):
        found = index.tune(queries, qrels, k1=[0.5, 1.2], b=[0.2, 0.75], measure="AP", folds=3, k=50)
    assert [(pair["k1"], pair["b"]) for pair in found["grid"]] == [(0.5, 0.2), (0.5, 0.75), (1.2, 0.2), (1.2, 0.75)]
    for pair in found["grid"]:
        answers = millrace.Index(index_path, k1=pair["k1"], b=pair["b"]).search_many(queries, 50)
        assert pair["mean"] == pytest.approx(millrace.evaluate(answers, qrels, ["AP@50"])["measures"]["AP@50"])
    assert found["best"]["mean"] == max(pair["mean"] for pair in found["grid"])
    with pytest.raises(ValueError, match="folds"):
        index.tune(queries, qrels, folds=13)
    smoothed = millrace.Index(index_path, score="ql", mu=200)
    with pytest.warns(UserWarning, match="k=1000 is enough"):
        found = smoothed.tune(queries, qrels, mu=[200], measure="AP", folds=3, k=50)
    assert [setting["mu"] for setting in found["grid"]] == [200, 1000]
    answers = smoothed.search_many(queries, 50)
    assert found["best"]["mean"] >= found["grid"][0]["mean"]
    assert found["grid"][0]["mean"] == pytest.approx(millrace.evaluate(answers, qrels, ["AP@50"])["measures"]["AP@50"])
    with pytest.raises(ValueError, match="k1 does not go with score ql"):
        smoothed.tune(queries, qrels, k1=[1])
