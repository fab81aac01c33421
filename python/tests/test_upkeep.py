"""An index that is there: checked, merged, and followed to its next generation."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import millrace


def build(path, number, **options):
    return millrace.build(path, [(f"d{number}-{n}", f"mill water{n}") for n in range(40)], **options)


def test_a_sound_index_and_a_damaged_one(tmp_path):
    path = tmp_path / "index"
    report = build(path, 1)
    told = []
    checked = millrace.check(path, workers=2, progress=told.append)
    assert {name: checked[name] for name in ["documents", "terms", "postings"]} == {
        name: report[name] for name in ["documents", "terms", "postings"]
    }
    assert told[-1]["finished"] and told[-1]["total_bytes"] >= told[-1]["bytes"] > 0
    for name in ["runs/000000.postings", "runs/000000.lexicon"]:
        file = path / name
        sound = file.read_bytes()
        file.write_bytes(sound[:-3] + bytes([sound[-3] ^ 255]) + sound[-2:])
        with pytest.raises(millrace.MillraceError, match=f"{name}: byte"):
            millrace.check(path)
        file.write_bytes(sound)
    assert millrace.check(str(path)) == checked
    for call in [millrace.check, millrace.merge]:
        with pytest.raises(FileNotFoundError, match="nowhere"):
            call(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="workers"):
        millrace.check(path, workers=0)


def test_an_index_is_merged_and_followed(tmp_path):
    path = tmp_path / "index"
    build(path, 1)
    index = millrace.Index(path, k1=0.7)
    assert millrace.merge(path) == {"runs": 1, "generation": None}
    assert index.refresh() is False
    before = index.search_many({"q": "mill water7"}, 50)
    told = []
    merged = millrace.merge(path, codec="vbyte", block_size=64, order="name", memory="64M", progress=told.append)
    assert merged == {"runs": 1, "generation": 2} and told[-1]["finished"]
    assert index.generation_number == 1
    assert index.refresh() is True and index.generation_number == 2 and index.refresh() is False
    assert index.info()["settings"]["codec"] == "vbyte"
    after = index.search_many({"q": "mill water7"}, 50)
    assert dict(zip(after.names, after.scores)) == dict(zip(before.names, before.scores))
    assert list(after.docids) != list(before.docids)
    # What was found before stays as it was.
    assert before["q"][0].name == "d1-7" and list(before.names)[0] == "d1-7"
    build(path, 3)
    assert index.search("mill")[0].name.startswith("d1-") and index.refresh()
    assert index.search("mill")[0].name.startswith("d3-") and index.search("mill")[0].score == pytest.approx(
        millrace.Index(path, k1=0.7).search("mill")[0].score
    )
    for wrong in [{"codec": "zip"}, {"codec": "rice", "block_size": 7}, {"order": "random"}, {"memory": "1X"}]:
        with pytest.raises(ValueError):
            millrace.merge(path, **wrong)
    with pytest.raises(FileNotFoundError, match="no-ranks"):
        millrace.merge(path, pagerank=tmp_path / "no-ranks")


def test_what_is_raised_ends_a_merge(tmp_path):
    build(tmp_path / "index", 1)

    def enough(done):
        raise LookupError("enough")

    # It may be over before anything is told.
    with pytest.raises(LookupError, match="enough"):
        millrace.merge(tmp_path / "index", codec="vbyte", progress=enough)
    assert millrace.check(tmp_path / "index")["documents"] == 40


def test_an_index_that_was_opened_at_a_generation_follows_too(tmp_path):
    path = tmp_path / "index"
    build(path, 1)
    build(path, 2)
    old = millrace.Index(path, generation=1, score="ql", mu=50)
    assert old.refresh() and (old.generation_number, old.score) == (2, "ql")
    assert not millrace.Index(path).refresh()


def test_documents_are_added_replaced_and_deleted(tmp_path):
    path = tmp_path / "index"
    millrace.build(path, [("a", "water mill"), ("b", "old race"), ("c", "stone")])
    index = millrace.Index(path)
    writer = millrace.Writer(path, workers=1, memory="64M")
    writer.update("b", "new mill race")
    writer.update("d", "lost")
    writer.delete("d")
    writer.delete("a")
    assert writer.pending == 3 and "3 pending" in repr(writer)
    assert not index.refresh()
    told = writer.commit()
    assert {name: told[name] for name in ["added", "replaced", "deleted", "absent", "documents"]} == {
        "added": 0, "replaced": 1, "deleted": 2, "absent": 1, "documents": 2,
    }
    assert told["generation"] == 2 and writer.pending == 0
    assert [hit.name for hit in index.search("mill")] == ["a"]
    assert index.refresh() and [hit.name for hit in index.search("mill")] == ["b"]
    assert writer.commit()["generation"] is None
    # A block commits, unless it ends by an exception.
    with pytest.raises(KeyError), millrace.Writer(path) as broken:
        broken.update("e", "mill")
        raise KeyError
    with millrace.Writer(path) as whole:
        whole.update("e", "mill")
    assert index.refresh() and {hit.name for hit in index.search("mill")} == {"b", "e"}
    assert millrace.check(path)["documents"] == 3
    with pytest.raises(ValueError, match="name"):
        writer.update("", "text")
    for name in ["b", "c", "e"]:
        writer.delete(name)
    with pytest.raises(millrace.MillraceError, match="0 of 3 documents"):
        writer.commit()
    assert writer.pending == 3
    with pytest.raises(FileNotFoundError, match="nowhere"), millrace.Writer(tmp_path / "nowhere") as none:
        none.update("a", "b")


def test_threads_share_a_writer_and_an_open_index_sees_their_commits(tmp_path):
    path = tmp_path / "index"
    millrace.build(path, [("a", "water mill")])
    index = millrace.Index(path)
    writer = millrace.Writer(index, workers=1, memory="64M")
    def commit(number):
        writer.update(f"d{number}", f"mill number{number}")
        told = writer.commit()
        assert [hit.name for hit in index.search(f"number{number}")] == [f"d{number}"]
        return told["generation"]
    with ThreadPoolExecutor(8) as threads:
        generations = list(threads.map(commit, range(40)))
    assert max(generations) == index.generation_number <= 41 and not index.refresh()
    assert millrace.check(path)["documents"] == 41
