"""A transformer for PyTerrier: queries as a data frame in, ranked documents as a data frame out.

>>> import pyterrier as pt
>>> from millrace.terrier import Retriever
>>> bm25 = Retriever("index", k=1000)
>>> pt.Experiment([bm25], topics, qrels, ["ndcg_cut_10", "map"])

PyTerrier is not needed: without it the transformer is a plain object with the same methods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, Literal

import numpy
import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

from . import Answers, Index
from ._frames import of_hits

try:
    from pyterrier import Transformer as _Transformer  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    _Transformer = object  # type: ignore[misc, assignment]

__all__ = ["Retriever"]


def _one_word(name: str) -> str:
    """A name as runs have it."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]", "_", name)


class Retriever(_Transformer):
    """Retrieves the best documents for each query of a data frame, or ranks again those that it has.

    Args:
        index: an open index, or the path of one.
        k: the most documents for a query; those that are ranked again are all kept.
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
            queries: a data frame with the columns qid and query; others go along. A query is a text, or a dictionary
                with weights of terms; the column query_toks has such dictionaries, and goes before query. With the
                column docno, as behind another stage, only these documents are ranked.

        Returns:
            A data frame with a row for each hit: the columns of its query, or of its document where these were given,
            and docno, docid, score and rank, which counts from 0 as in PyTerrier; with `text` a column of that name.
        """
        asked = "query_toks" if "query_toks" in queries.columns else "query"
        missing = {"qid", asked} - set(queries.columns)
        if missing:
            raise ValueError(f"the queries have no column {', '.join(sorted(missing))}")
        given = "docno" in queries.columns
        if not given and "docid" in queries.columns:
            raise ValueError("documents that are ranked again are known by their docno, and there is only a docid")
        for name in ("qid", asked, *(("docno",) if given else ())):
            if queries[name].isna().any():
                row = int(numpy.flatnonzero(queries[name].isna())[0])
                raise ValueError(f"row {row} of the queries has no {name}: {queries[name].iloc[row]}")
        qids = queries["qid"].astype(str).tolist()
        texts = [query if isinstance(query, dict) else str(query) for query in queries[asked]]
        if given:
            return self._ranked_anew(queries, list(zip(qids, texts, queries["docno"].astype(str))))
        answers = self._answers(list(zip(qids, texts)), k=self.k)
        return self._ranked(queries, [row for row, hits in enumerate(answers) for _ in range(len(hits))], answers)

    def _answers(self, queries: Any, **options: Any) -> Answers:
        return self.index.search_many(
            queries, mode=self.mode, algorithm=self.algorithm, workers=self.workers, rm3=self.rm3, **options
        )

    def _ranked_anew(self, frame: Any, rows: list[tuple[str, Any, str]]) -> Any:
        """The documents of these rows, which have qid, query and docno."""
        asked: dict[str, Any] = {}
        candidates: dict[str, dict[str, float]] = {}
        places: dict[tuple[str, str], int] = {}
        for place, (qid, query, name) in enumerate(rows):
            if asked.setdefault(qid, query) != query:
                raise ValueError(f"row {place} of the queries: the query {qid} is another one in an earlier row")
            candidates.setdefault(qid, {})[name] = 0.0
            places.setdefault((qid, _one_word(name)), place)
        answers = self._answers(list(asked.items()), candidates=candidates)
        names = ((qid, hit.name) for qid, hits in answers.items() for hit in hits)
        found = [places[qid, _one_word(name)] for qid, name in names]
        return self._ranked(frame, found, answers)

    def _ranked(self, queries: Any, rows: Any, answers: Answers) -> Any:
        """The hits of answers, each with the row that it belongs to."""
        new = ("docid", "docno", "score", "rank", *(() if self.text is None else ("text",)))
        old = [name for name in new if name in queries.columns]
        ranked = queries.drop(columns=old).iloc[rows].reset_index(drop=True)
        hits = of_hits(answers, answers.offsets.astype(numpy.int64))
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
        """As `transform`; a text, or several, are queries too, and a list of dictionaries gives one."""
        if _Transformer is not object:
            return super().__call__(queries)
        if isinstance(queries, str):
            queries = [queries]
        if isinstance(queries, list):
            if queries and all(isinstance(query, dict) for query in queries):
                return self.transform(pandas.DataFrame(queries)).to_dict("records")
            qids = [str(number) for number in range(1, len(queries) + 1)]
            queries = pandas.DataFrame({"qid": qids, "query": queries})
        return self.transform(queries)

    def search(self, query: str, qid: str = "1", sort: bool = True) -> Any:
        """Ranks documents for one query. They always come sorted; `sort` is PyTerrier's."""
        return self.transform(pandas.DataFrame({"qid": [qid], "query": [query]}))

    def __repr__(self) -> str:
        return f"Retriever({self.index!r}, k={self.k})"
