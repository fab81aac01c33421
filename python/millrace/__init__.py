"""millrace: inverted indexes of text collections, and ranked queries.

>>> import millrace
>>> millrace.build("notes", [("a", "The mill stands by the river."), ("b", "Wind turns a mill too.")])
>>> index = millrace.Index("notes")
>>> for name, docid, score in index.search("mill river"):
...     print(name, score)

`millrace.terrier` has a transformer for PyTerrier, and `millrace.datasets` reads collections of ir_datasets.
"""

from ._hit import Hit
from ._native import (
    VERSION as __version__,
    Answers,
    Hits,
    Index,
    MillraceError,
    Writer,
    build,
    check,
    compare,
    evaluate,
    fuse,
    merge,
)

__all__ = [
    "Answers", "Hit", "Hits", "Index", "MillraceError", "Writer", "build", "check", "compare", "evaluate", "fuse", "merge",
    "__version__",
]
