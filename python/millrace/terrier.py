"""A transformer for PyTerrier: queries as a data frame in, ranked documents as a data frame out.

>>> import pyterrier as pt
>>> from millrace.terrier import Retriever
>>> bm25 = Retriever("index", k=1000)
>>> pt.Experiment([bm25], topics, qrels, ["ndcg_cut_10", "map"])

PyTerrier is not needed: without it the transformer is a plain object with the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal

import numpy
import pandas

from . import Answers, Index
from ._frames import of_hits

try:
    from pyterrier import Transformer as _Transformer
except ImportError:
    _Transformer = object  # type: ignore[misc, assignment]

__all__ = ["Retriever"]


class Retriever(_Transformer):
    """Retrieves the best documents for each query of a data frame.

    Args:
        index: an open index, or the path of one.
        k: the most documents for a query.
        mode, algorithm, workers, rm3: as in `Index.search_many`.
        text: gives each document a column `text`, which rerankers read. True reads it again from the files that were
            indexed; else it is a mapping of texts by docno, or what is called with a docno and returns its text.
            `millrace.datasets.texts` is such a mapping.
        scoring: with the path of an index, `score`, `k1`, `b` and the other parameters of `Index`.
    """

    def __init__(
        self,
        index: Index | str | PathLike[str],
        *,
        k: int = 1000,
        mode: str = "or",
        algorithm: str = "auto",
        workers: int | None = None,
        rm3: tuple[int, int, float] | None = None,
        text: Mapping[str, str] | Callable[[str], str] | Literal[True] | None = None,
        **scoring: Any,
    ) -> None:
        super().__init__()
        if isinstance(index, Index) and scoring:
            raise ValueError(f"the index is open with its own score: give its path with {', '.join(scoring)}")
        self.index = index if isinstance(index, Index) else Index(index, **scoring)
        if not (text is None or text is True or callable(text) or hasattr(text, "__getitem__")):
            raise TypeError(f"text is True, a mapping or a function, not {type(text)}")
        self.text = text
        self.k, self.mode, self.algorithm, self.workers, self.rm3 = k, mode, algorithm, workers, rm3

    def transform(self, queries: Any) -> Any:
        """Ranks documents.

        Args:
            queries: a data frame with the columns qid and query; others go along.

        Returns:
            A data frame with a row for each hit: the columns of its query, and docno, docid, score and rank, which
            counts from 0 as in PyTerrier; with `text` a column of that name.
        """
        missing = {"qid", "query"} - set(queries.columns)
        if missing:
            raise ValueError(f"the queries have no column {', '.join(sorted(missing))}")
        for name in ("qid", "query"):
            if queries[name].isna().any():
                row = int(numpy.flatnonzero(queries[name].isna())[0])
                raise ValueError(f"row {row} of the queries has no {name}: {queries[name].iloc[row]}")
        texts = queries["query"].astype(str)
        pairs = list(zip(queries["qid"].astype(str), texts))
        answers = self.index.search_many(
            pairs, self.k, mode=self.mode, algorithm=self.algorithm, workers=self.workers, rm3=self.rm3
        )
        offsets = answers.offsets.astype(numpy.int64)
        counts = numpy.diff(offsets)
        new = ("docid", "docno", "score", "rank", *(() if self.text is None else ("text",)))
        old = [name for name in new if name in queries.columns]
        rows = numpy.repeat(numpy.arange(len(queries)), counts)
        ranked = queries.drop(columns=old).iloc[rows].reset_index(drop=True)
        hits = of_hits(answers, offsets)
        ranked = ranked.assign(**hits | {"docno": pandas.Series(hits["docno"], dtype=object)})
        return ranked if self.text is None else ranked.assign(text=self._texts(answers))

    def _texts(self, answers: Answers) -> Any:
        if self.text is True:
            return pandas.Series(answers.texts(), dtype=object)
        source: Any = self.text
        find = source if callable(source) else source.__getitem__
        found = {name: find(name) for name in dict.fromkeys(answers.names)}
        for name, text in found.items():
            if not isinstance(text, str):
                raise TypeError(f"the text of {name} is a text, not {type(text)}")
        return pandas.Series([found[name] for name in answers.names], dtype=object)

    def __call__(self, queries: Any) -> Any:
        """As `transform`; a text, or several, are queries too."""
        if _Transformer is not object:
            return super().__call__(queries)
        if isinstance(queries, str):
            queries = [queries]
        if isinstance(queries, list):
            qids = [str(number) for number in range(1, len(queries) + 1)]
            queries = pandas.DataFrame({"qid": qids, "query": queries})
        return self.transform(queries)

    def search(self, query: str, qid: str = "1", sort: bool = True) -> Any:
        """Ranks documents for one query. They always come sorted; `sort` is PyTerrier's."""
        return self.transform(pandas.DataFrame({"qid": [qid], "query": [query]}))

    def __repr__(self) -> str:
        return f"Retriever({self.index!r}, k={self.k})"
