"""A small collection that all tests search."""

import random

import pytest

import millrace

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
