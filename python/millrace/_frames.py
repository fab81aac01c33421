"""Data frames that come in and go out: those of pandas, polars and pyarrow, and whatever has an Arrow stream.

None of these libraries has to be installed: a frame that is given has its own, and one that is made is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy

# Rows that are made into Python's values together.
_ROWS = 4096
# Rows of documents of which all columns are looked at.
_FIRST = 32

# The columns of queries, judgements and runs: PyTerrier's names, and those of ir_datasets and ir_measures.
QIDS = ("qid", "query_id")
TEXTS = ("query", "text", "title")
TOKS = ("query_toks",)
NAMES = ("docno", "doc_id")
LABELS = ("label", "relevance")
SCORES = ("score",)


class Table:
    """A data frame of any kind, by columns that are asked for; what is missing in it is None."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = list(columns)

    def rows(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of these columns."""
        for name in names:
            if self.columns.count(name) > 1:
                raise ValueError(f"the data frame has several columns {name}")
        return self._rows(list(names))

    def records(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The rows of these columns, as dictionaries."""
        return (dict(zip(names, row)) for row in self.rows(names))

    def first(self) -> list[dict[str, Any]]:
        """The first rows, with all columns that have names of their own."""
        names = [name for name in self.columns if isinstance(name, str) and self.columns.count(name) == 1]
        return [dict(zip(names, row)) for row in self._first(names)]

    def of(self, *wanted: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of columns that go by one of several names, of which the first that is there counts."""
        names = []
        for among in wanted:
            name = next((name for name in among if name in self.columns), None)
            if name is None:
                found = ", ".join(str(column) for column in self.columns)
                raise ValueError(f"the data frame has no column {' or '.join(among)}; its columns are {found}")
            names.append(name)
        return self.rows(names)

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        raise NotImplementedError

    def _first(self, names: list[str]) -> Iterable[tuple[Any, ...]]:
        raise NotImplementedError


class _Pandas(Table):
    def __init__(self, frame: Any) -> None:
        named = [name for name in frame.index.names if name is not None and name not in frame.columns]
        # An index that has a name is a column.
        self.frame = frame.reset_index(level=named) if named else frame
        super().__init__(self.frame.columns)

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self.frame), _ROWS):
            part = self.frame.iloc[start : start + _ROWS][names].astype(object)
            part = part.where(part.notna(), None)
            yield from zip(*(part[name].tolist() for name in names))

    def _first(self, names: list[str]) -> Iterable[tuple[Any, ...]]:
        return _Pandas(self.frame.head(_FIRST))._rows(names)


class _Polars(Table):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame.columns)
        self.frame = frame

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        return self.frame.select(names).iter_rows()

    def _first(self, names: list[str]) -> Iterable[tuple[Any, ...]]:
        return self.frame.head(_FIRST).select(names).rows()


class _Arrow(Table):
    def __init__(self, batches: Any) -> None:
        super().__init__(batches.schema.names)
        self.batches = iter(batches)

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches:
            for start in range(0, batch.num_rows, _ROWS):
                part = batch.slice(start, _ROWS)
                yield from zip(*(part.column(name).to_pylist() for name in names))

    def _first(self, names: list[str]) -> Iterable[tuple[Any, ...]]:
        begun = [batch for batch in [next(self.batches, None)] if batch is not None]
        # A stream is read once.
        self.batches = chain(begun, self.batches)
        parts = [batch.slice(0, _FIRST) for batch in begun]
        return chain.from_iterable(zip(*(part.column(name).to_pylist() for name in names)) for part in parts)


def table(value: Any) -> Table | None:
    """A value that has columns as a table; None if it is no data frame."""
    if hasattr(value, "iloc"):
        return _Pandas(value)
    if hasattr(value, "collect_schema") and hasattr(value, "collect"):
        value = value.collect()
    if hasattr(value, "iter_rows"):
        return _Polars(value)
    if not hasattr(value, "__arrow_c_stream__"):
        return None
    try:
        import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        import polars  # type: ignore[import-not-found, unused-ignore]

        return _Polars(polars.DataFrame(value))
    return _Arrow(pyarrow.RecordBatchReader.from_stream(value))


def rows(items: Any, what: str, wanted: Sequence[Sequence[str]]) -> Iterator[Any]:
    """The rows of a program: named tuples and dictionaries by their fields, as columns are found, others as they are.

    A named tuple none of whose known fields stands in another place is read by its places. Of a dictionary of
    dictionaries the keys and the value are a row.
    """
    if isinstance(items, dict):
        for name, inner in items.items():
            if not isinstance(inner, dict):
                raise ValueError(f"{what}: query {name}: expected a dictionary by document")
            yield from ((name, *item) for item in inner.items())
        return
    if not hasattr(items, "__iter__"):
        raise ValueError(f"{what}: a run is the answers of search_many, and it and judgements may be a path, a dictionary "
                         f"of dictionaries by query and document, a data frame, or rows, not {type(items)}")
    names: Any = None
    places: list[Any] = []
    for number, row in enumerate(items, 1):
        fields = tuple(row) if isinstance(row, dict) else getattr(row, "_fields", None)
        if fields is None:
            yield row
            continue
        if fields != names:
            names = fields
            places = [next((fields.index(name) for name in among if name in fields), None) for among in wanted]
        values = tuple(row.values()) if isinstance(row, dict) else row
        if None not in places:
            yield tuple(values[place] for place in places)
        elif isinstance(row, dict) or any(place not in (None, at) for at, place in enumerate(places)):
            lacking = " or ".join(wanted[places.index(None)])
            found = ", ".join(map(str, fields))
            raise ValueError(f"{what}: row {number} has no field {lacking}; its fields are {found}")
        else:
            yield row


def measures(asked: Any) -> list[Any]:
    """The names of measures, where one or several may be those of ir_measures."""
    def is_object(measure: Any) -> bool:
        return type(measure).__module__.startswith("ir_measures")

    several = [asked] if isinstance(asked, str) or is_object(asked) else asked
    return [str(measure) if is_object(measure) else measure for measure in several]


def of_hits(found: Any, offsets: Any = None) -> dict[str, Any]:
    """The columns docno, docid, score and rank, which counts from 0 for each query that the offsets part."""
    ranks = numpy.arange(len(found.docids))
    if offsets is not None:
        ranks -= numpy.repeat(offsets[:-1], numpy.diff(offsets))
    return {
        "docno": found.names.tolist(),
        "docid": found.docids,
        "score": found.scores.astype(numpy.float64),
        "rank": ranks,
    }


def make(library: str, found: Any, queries: Sequence[tuple[str, str]] | None) -> Any:
    """The frame of answers to these queries, or of the hits of one, with the columns that PyTerrier's have."""
    columns: dict[str, Any] = {}
    offsets = None
    if queries is not None:
        offsets = found.offsets.astype(numpy.int64)
        counts = numpy.diff(offsets)
        for name, texts in zip(("qid", "query"), zip(*queries) if queries else ((), ())):
            columns[name] = [text for text, count in zip(texts, counts.tolist()) for _ in range(count)]
    strings = (*columns, "docno")
    columns |= of_hits(found, offsets)
    if library == "pandas":
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

        return pandas.DataFrame({**columns, **{name: pandas.Series(columns[name], dtype=object) for name in strings}})
    if library == "polars":
        import polars  # type: ignore[import-not-found, unused-ignore]

        return polars.DataFrame(columns, schema_overrides={name: polars.String for name in strings})
    if library == "pyarrow":
        import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]

        return pyarrow.table({**columns, **{name: pyarrow.array(columns[name], pyarrow.string()) for name in strings}})
    raise ValueError(f"library is pandas, polars or pyarrow, not {library}")
