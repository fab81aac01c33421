"""Fields, boosts and BM25F."""

import pytest

import millrace

DOCUMENTS = [
    {"id": "a", "title": "The mill", "text": "a wheel turns in the river"},
    {"id": "b", "title": ["River", "Wheels"], "text": "mill mill mill"},
    {"id": "c", "text": "mill"},
]


@pytest.fixture(scope="module")
def fields(tmp_path_factory):
    path = tmp_path_factory.mktemp("fields") / "index"
    millrace.build(path, DOCUMENTS, text_field="text", field=["title", "text"], positions=True)
    return path


def names(path, query, **options):
    search = {key: options.pop(key) for key in ["syntax"] if key in options}
    return [hit.name for hit in millrace.Index(path, **options).search(query, **search)]


def test_words_of_fields(fields):
    assert names(fields, "title:mill", syntax="operators") == ["a"]
    assert names(fields, 'text:"mill mill" OR title:(river -mill)', syntax="operators") == ["b"]
    assert sorted(names(fields, "mill")) == ["b", "c"]
    with pytest.raises(ValueError, match="title, text"):
        names(fields, "titel:mill", syntax="operators")


def test_boosts_and_bm25f(fields):
    assert names(fields, "mill", boost={"title": 9, "text": 1})[0] == "a"
    assert names(fields, "mill", boost={"title": 0.01, "text": 1})[-1] == "a"
    assert len(names(fields, "mill", score="bm25f", boost={"title": 2, "text": 1}, b={"title": 0.2})) == 3
    with pytest.raises(millrace.MillraceError, match="there is title, text"):
        names(fields, "mill", boost={"head": 1})


def test_writers_know_fields(fields):
    with millrace.Writer(fields) as writer:
        writer.update("d", "weir", fields={"title": ["Lock", "Sluice gate"]})
        writer.commit()
    assert names(fields, "title:sluices", syntax="operators") == ["d"]
