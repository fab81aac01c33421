"""The notebook runs as it stands, from its first cell of code to its last."""

import json
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/first.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert notebook["nbformat"] == 4 and len(cells) > 8
    names = {"__name__": "notebook"}
    for number, cell in enumerate(cells, 1):
        assert (cell["outputs"], cell["execution_count"]) == ([], None), "saved with what it once printed"
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}, cell of code {number}", "exec"), names)
    # What its text says of it.
    assert names["hits"][0][0] == "watermill"
    assert names["found"]["measures"]["nDCG@10"] > 0.8
    assert all(row["t_test_p"] is None or row["t_test_p"] > 0.05 for row in names["comparison"].values())
    printed = capsys.readouterr()
    assert "8 documents before, 6 now" in printed.out
    assert "8/8" in printed.err or "8 of 8 documents" in printed.err
    assert set(names["ranked"]["docno"]) <= {"watermill", "windmill", "weir", "wool", "loom", "fulling"}
    assert names["folder"].is_relative_to(tmp_path)
