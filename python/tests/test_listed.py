"""Orders by columns, facets, `*`, and deletions by a filter."""

import copy
import pickle

import pytest

import millrace

ROWS = [
    {"id": "a", "text": "water mill", "year": 1999, "tags": ["x", "y", "x"]},
    {"id": "b", "text": "water", "tags": ["y"]},
    {"id": "c", "text": "mill water wheel", "year": 2001, "tags": []},
    {"id": "d", "text": "wheel water", "year": 1999, "tags": ["z", "y"]},
]
FACETS = {
    "tags": [{"value": "y", "count": 3}, {"value": "x", "count": 1}],
    "year": {"count": 3, "least": 1999, "greatest": 2001, "mean": (1999 + 1999 + 2001) / 3},
}


@pytest.fixture
def listed(tmp_path):
    millrace.build(tmp_path / "index", ROWS, columns=["year:int", "tags:word[]"])
    return millrace.Index(tmp_path / "index")


def test_hits_are_sorted_and_counted(listed):
    for facets in ["tags:2,year", ["tags:2", "year"]]:
        hits = listed.search("water", sort="year:desc", facets=facets, count=True)
        # Equal years go by score, which is that of the shorter text.
        assert list(hits.names) == ["c", "a", "d", "b"]
        assert (hits.found, hits.facets) == (4, FACETS)
        assert hits[:2].facets == FACETS
        again = pickle.loads(pickle.dumps(hits))
        assert (list(again), again.facets) == (list(hits), FACETS)
    assert list(listed.search("water", 1, sort="year").names) == ["a"]
    assert listed.search("water").facets is None
    assert listed.search("nowhere", facets="tags").facets == {"tags": []}


def test_all_documents_are_found(listed):
    hits = listed.search("*")
    assert [(name, score) for name, _, score in hits] == [(name, 0.0) for name in "abcd"]
    found = listed.search("*", 0, count=True, filter="tags = y", facets="tags:1")
    assert (found.found, found.facets) == (3, {"tags": [{"value": "y", "count": 3}]})


def test_many_are_sorted_and_counted(listed):
    answers = listed.search_many({"1": "water", "2": "nowhere", "3": "*"}, sort="year", facets="tags:2,year", workers=2)
    assert list(answers["1"].names) == ["a", "d", "c", "b"]
    assert answers.facets[0] == answers.facets[2] == answers["3"].facets == FACETS
    assert answers.facets[1] == {"tags": [], "year": {"count": 0, "least": None, "greatest": None, "mean": None}}
    assert copy.deepcopy(answers).facets == answers.facets
    assert listed.search_many(["water"]).facets is None
    without = listed.search_many({"c": "water"}, 2, sort="year:desc", remove_query=True)
    assert list(without["c"].names) == ["a", "d"]


def test_wrong_columns_are_named(listed):
    for wrong, said in [
        ({"sort": "yaer"}, "sort names `yaer`"),
        ({"sort": "tags"}, "hits may be sorted by year"),
        ({"facets": "yaer:2"}, "facets names `yaer`"),
        ({"facets": "tags:0"}, "counts 0 values"),
    ]:
        for search in [lambda: listed.search("water", **wrong), lambda: listed.search_many(["water"], **wrong)]:
            with pytest.raises(ValueError, match=said):
                search()
    with pytest.raises(ValueError, match="candidates are neither"):
        listed.search_many(["water"], candidates={"1": {"a": 1.0}}, sort="year")
    for wish in [{"sort": "year"}, {"facets": "tags"}, {"filter": "year = 1"}, {"offset": 1}]:
        with pytest.raises(ValueError, match="wishes of its own"):
            listed.search_many([{"qid": "1", "query": "water", **wish}])


def test_what_passes_is_deleted(listed):
    with millrace.Writer(listed) as writer:
        writer.delete(filter="year = 1999")
        writer.update("e", "water", values={"year": 1999})
        assert writer.pending == 2
    assert list(listed.search("*").names) == ["b", "c", "e"]
    writer = millrace.Writer(listed)
    with pytest.raises(ValueError, match="either a name or a filter"):
        writer.delete()
    with pytest.raises(ValueError, match="either a name or a filter"):
        writer.delete("b", filter="year = 1")
    writer.delete(filter="yaer = 1")
    writer.delete("b")
    with pytest.raises(ValueError, match="the filter names `yaer`"):
        writer.commit()
    assert writer.pending == 2
    writer.abort()
    writer.delete(filter="year = 2001")
    assert writer.commit()["deleted"] == 1
    assert list(listed.search("*").names) == ["b", "e"]
