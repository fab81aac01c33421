"""Data frames that come in and go out: those of pandas, polars and pyarrow, and whatever has an Arrow stream.

None of these libraries has to be installed: a frame that is given has its own, and one that is made is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy

# Rows that are made into Python's values together.
_ROWS = 4096

# The columns of queries, judgements and runs: PyTerrier's names, and those of ir_datasets and ir_measures.
QIDS = ("qid", "query_id")
TEXTS = ("query", "text", "title")
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


class _Polars(Table):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame.columns)
        self.frame = frame

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        return self.frame.select(names).iter_rows()


class _Arrow(Table):
    def __init__(self, batches: Any) -> None:
        super().__init__(batches.schema.names)
        self.batches = batches

    def _rows(self, names: list[str]) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches:
            for start in range(0, batch.num_rows, _ROWS):
                part = batch.slice(start, _ROWS)
                yield from zip(*(part.column(name).to_pylist() for name in names))


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
        import pyarrow
    except ImportError:
        import polars

        return _Polars(polars.DataFrame(value))
    return _Arrow(pyarrow.RecordBatchReader.from_stream(value))


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
        import pandas

        return pandas.DataFrame({**columns, **{name: pandas.Series(columns[name], dtype=object) for name in strings}})
    if library == "polars":
        import polars

        return polars.DataFrame(columns, schema_overrides={name: polars.String for name in strings})
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table({**columns, **{name: pyarrow.array(columns[name], pyarrow.string()) for name in strings}})
    raise ValueError(f"library is pandas, polars or pyarrow, not {library}")
