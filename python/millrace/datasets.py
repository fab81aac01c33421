"""Reads collections, queries and judgements of ir_datasets, for `build`, `search_many` and `evaluate`.

>>> from millrace import build, datasets
>>> build("index", datasets.documents("vaswani"))

A data set is given by its name, which takes the package ir_datasets, or as an object that it has loaded.
"""

from __future__ import annotations

from typing import Any, Iterator

__all__ = ["documents", "qrels", "queries", "texts"]

# Fields of queries that are their text, the first that there is.
_TEXTS = ("text", "title", "query")


def _dataset(dataset: Any) -> Any:
    if not isinstance(dataset, str):
        return dataset
    import ir_datasets  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return ir_datasets.load(dataset)


def documents(dataset: Any) -> Iterator[tuple[str, str]]:
    """The documents of a data set: pairs (name, text), where the text is all that ir_datasets takes for it."""
    for document in _dataset(dataset).docs_iter():
        yield document.doc_id, _text(document)


def _text(document: Any) -> str:
    if hasattr(document, "default_text"):
        return document.default_text()
    if hasattr(document, "text"):
        return document.text
    raise ValueError(f"{type(document).__name__} has neither default_text() nor text")


class _Texts:
    def __init__(self, store: Any) -> None:
        self.store = store

    def __getitem__(self, name: str) -> str:
        return _text(self.store.get(name))


def texts(dataset: Any) -> _Texts:
    """The texts of a data set's documents by their names, for the `text` of a `millrace.terrier.Retriever`."""
    return _Texts(_dataset(dataset).docs_store())


def queries(dataset: Any, field: str | None = None) -> list[tuple[str, str]]:
    """The queries of a data set: pairs (qid, text).

    Args:
        dataset: its name, or the data set.
        field: which of their fields is the text; if left out text, title or query, or what ir_datasets takes for it.
    """
    found = []
    for query in _dataset(dataset).queries_iter():
        fields = (field,) if field else _TEXTS
        name = next((name for name in fields if hasattr(query, name)), None)
        if name:
            text = getattr(query, name)
        elif field is None and hasattr(query, "default_text"):
            text = query.default_text()
        else:
            raise ValueError(f"{type(query).__name__} has none of the fields {', '.join(fields)}")
        found.append((query.query_id, text))
    return found


def qrels(dataset: Any) -> list[tuple[str, str, int]]:
    """The judgements of a data set: rows (qid, name, relevance)."""
    rows = _dataset(dataset).qrels_iter()
    return [(row.query_id, row.doc_id, int(row.relevance)) for row in rows]
