"""A small collection that all tests search, and what becomes of tests that are skipped."""

import os
import random
from pathlib import Path

import pytest

import millrace

# Collections that are not in the repository.
SHARED = Path(__file__).resolve().parents[3] / "shared/data"
NOT_HERE = "this collection is not in the repository: "


def shared(path):
    """A file of a collection that not everybody has."""
    if not (SHARED / path).exists():
        pytest.skip(f"{NOT_HERE}{path}")
    return SHARED / path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where all packages have to be there, a test that is skipped for want of one fails."""
    report = yield
    if report.skipped and os.environ.get("MILLRACE_REQUIRE_PYTHON"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if NOT_HERE not in reason:
            report.outcome = "failed"
            report.longrepr = f"MILLRACE_REQUIRE_PYTHON is set, and: {reason}"
    return report


WORDS = [f"w{number}x" for number in range(60)]


def make_documents(count=300, seed=7):
    rng = random.Random(seed)
    for number in range(count):
        words = rng.choices(WORDS, weights=[1 / (i + 1) for i in range(60)], k=rng.randrange(3, 40))
        yield f"d{number}", " ".join(words)


def make_queries(count=50, seed=9):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(1, 4))) for _ in range(count)]


@pytest.fixture(scope="session")
def documents():
    return dict(make_documents())


@pytest.fixture(scope="session")
def queries():
    return make_queries()


@pytest.fixture(scope="session")
def index_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("indexes") / "index"
    millrace.build(path, make_documents(), workers=2, memory="64M")
    return path


@pytest.fixture(scope="session")
def index(index_path):
    return millrace.Index(index_path)
