"""Files of queries, and queries with weights."""

import warnings

import pytest

from conftest import WORDS

QUERIES = {"q1": f"{WORDS[1]} {WORDS[2]}", "q2": WORDS[3], "q3": f'{WORDS[4]}, "{WORDS[5]}"\n{WORDS[6]}'}


@pytest.mark.filterwarnings("ignore:the queries. the first line", "ignore:query q3")
@pytest.mark.parametrize("settings", [{"index": False}, {}, {"index": False, "sep": ";"}, {"sep": "\t"}])
@pytest.mark.parametrize("names", [("qid", "query"), ("query_id", "text")])
def test_a_frame_written_as_csv_is_read(index, tmp_path, settings, names):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(list(QUERIES.items()), columns=list(names)).to_csv(tmp_path / "q.csv", **settings)
    answers = index.search_many(tmp_path / "q.csv", 5)
    expected = index.search_many(QUERIES, 5)
    assert answers.qids == expected.qids == list(QUERIES)
    assert all(list(answers[qid]) == list(expected[qid]) for qid in QUERIES)
    assert all(len(answers[qid]) == 5 for qid in QUERIES)


def test_what_may_be_csv_or_words_is_refused(index, tmp_path):
    (tmp_path / "q.csv").write_text("q1,w1x\nq2,w2x\n")
    with pytest.raises(ValueError, match="q.csv: every line begins with another name.*CSV or words"):
        index.search_many(tmp_path / "q.csv", 5)
    (tmp_path / "q.json").write_text('{"topic_id": "7", "utterance": "w1x"}')
    with pytest.raises(ValueError, match="has the fields `topic_id`, `utterance`"):
        index.search_many(tmp_path / "q.json", 5)


@pytest.mark.parametrize("weight", ["-1", "", "abc", "1,5", "inf"])
def test_a_query_with_a_wrong_weight_is_refused_alone(index, weight):
    wrong = f"applypipeline:off w1x^{weight}"
    said = r"has no weight behind `w1x\^` \(character 23\)"
    with pytest.raises(ValueError, match=said):
        index.search(wrong, 3)
    with pytest.warns(UserWarning, match=f"the query wrong {said}"):
        answers = index.search_many([("wrong", wrong), ("right", "applypipeline:off w1x^2 w2x^0")], 3)
    assert len(answers["wrong"]) == 0
    assert [hit[0] for hit in answers["right"]] == [hit[0] for hit in index.search("w1x", 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(index.search(f"w1x^{weight}", 3)) == 3
