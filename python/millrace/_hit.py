"""What iterating over hits yields, and how answers and hits are iterated over."""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Hit(NamedTuple):
    """A document that was found: its name, its docid and its score."""

    name: str
    docid: int
    score: float


def each(found: Any) -> Iterator[Any]:
    return map(found.__getitem__, range(len(found)))
