"""A test that is skipped for want of a package fails where all packages have to be there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = """
import pytest
from conftest import shared

def test_package():
    pytest.importorskip("no_such_package")

def test_collection():
    shared("no/such/collection")
"""


@pytest.mark.parametrize(("required", "counted"), [("1", "1 failed, 1 skipped"), ("", "2 skipped")])
def test_skipped_tests(tmp_path, required, counted):
    folder = Path(__file__).parent
    (tmp_path / "test_one.py").write_text(TEXT)
    (tmp_path / "conftest.py").symlink_to(folder / "conftest.py")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "test_one.py"],
        cwd=tmp_path, env={**os.environ, "MILLRACE_REQUIRE_PYTHON": required}, capture_output=True, text=True,
        timeout=200,
    )
    assert counted in told.stdout, told.stdout
    assert told.returncode == (1 if required else 0)
