"""The tutorial runs as it stands, from its first block of code to its last."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_tutorial_runs(tmp_path, monkeypatch):
    for package in ["ir_datasets", "ir_measures", "pyterrier"]:
        pytest.importorskip(package)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/python.md").read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 8
    names = {"__name__": "tutorial"}
    for block in blocks:
        # Errors have the line of the page.
        before = "\n" * (text.count("\n", 0, block.start()) + 1)
        exec(compile(before + block[1], "docs/python.md", "exec"), names)
