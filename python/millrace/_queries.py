"""Queries of a program, as the library reads them: texts, and objects of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any


def read(queries: Iterable[Any], names: list[str], texts: list[str]) -> Iterator[Any]:
    """Each query as a text; or as its name, its text or object, and whether it is an object, which may have the name.

    `names` and `texts` are the fields of objects that are such.
    """
    if isinstance(queries, Mapping):
        is_one = not _are_weights(queries) and any(key in names or key in texts for key in queries)
        queries = [queries] if is_one else queries.items()
    for number, query in enumerate(queries, 1):
        fields = getattr(query, "_fields", None)
        # A named tuple of two whose fields do not say otherwise is a pair.
        if fields is not None and (len(fields) != 2 or fields[0] in texts or fields[1] in names):
            query = dict(zip(fields, query))
        if isinstance(query, str):
            yield query
        elif isinstance(query, Mapping):
            yield None, _object(query, number) if query else "{}", True
        elif isinstance(query, (list, tuple)) and len(query) == 2:
            name, text = query
            is_object = isinstance(text, Mapping)
            yield name, _object(text, number) if is_object else text, is_object
        else:
            raise ValueError(f"query {number}: expected a text or a pair (qid, text), or a dictionary")


def _are_weights(terms: Mapping[Any, Any]) -> bool:
    return all(isinstance(weight, Real) and not isinstance(weight, bool) for weight in terms.values())


def _object(query: Mapping[Any, Any], number: int) -> str:
    """A dictionary of fields, or weights of terms, which are a vector."""
    if _are_weights(query):
        query = {"vector": {term: float(weight) for term, weight in query.items()}}
    try:
        return json.dumps(dict(query), default=str, allow_nan=False)
    except ValueError:
        raise ValueError(f"query {number}: a number of it is infinite or none: {query}") from None
