from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, final, overload

import numpy
from numpy.typing import NDArray

from ._hit import Hit

__all__ = [
    "VERSION", "Answers", "Column", "Hits", "Index", "MillraceError", "Writer", "build", "check", "compare", "evaluate",
    "fuse", "merge",
]

VERSION: str

_Path: TypeAlias = str | PathLike[str]
# Of any library that has an Arrow stream, or of pandas.
_Frame: TypeAlias = Any
_Library: TypeAlias = Literal["pandas", "polars", "pyarrow"]
_Document: TypeAlias = tuple[Any, ...] | dict[str, Any]
# A text, or weights of terms.
_Query: TypeAlias = str | Mapping[str, float]
_Queries: TypeAlias = Path | Iterable[_Query | Sequence[Any] | dict[str, Any]] | dict[Any, Any] | _Frame
_Qrels: TypeAlias = _Path | dict[str, dict[str, int]] | Iterable[Sequence[Any]] | _Frame
_Run: TypeAlias = Answers | _Path | dict[str, dict[str, float]] | Iterable[Sequence[Any]] | _Frame
# Names, or measures of ir_measures.
_Measures: TypeAlias = str | Iterable[Any] | Any | None
_Progress: TypeAlias = bool | Callable[[dict[str, Any]], object] | None
_Mode: TypeAlias = Literal["or", "and", "and-or"]
_Syntax: TypeAlias = Literal["words", "operators", "tree"]
_Score: TypeAlias = Literal["bm25", "bm25-lucene", "bm25f", "bm25plus", "bm25l", "tfidf", "ql", "dph", "impact", "wang"]

class MillraceError(Exception): ...

# What numpy makes arrays of.
@final
class Column:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Hits:
    def __new__(
        cls,
        generation: _Path,
        docids: bytes,
        scores: bytes,
        query: str = "",
        found: int | None = None,
        syntax: str = "words",
        facets: str | None = None,
    ) -> Self: ...
    def __getnewargs__(self) -> tuple[Path, bytes, bytes, str, int | None, str, str | None]: ...
    @property
    def found(self) -> int | None: ...
    @property
    def facets(self) -> dict[str, Any] | None: ...
    @property
    def docids(self) -> NDArray[numpy.uint32]: ...
    @property
    def scores(self) -> NDArray[numpy.float32]: ...
    @property
    def names(self) -> NDArray[numpy.object_]: ...
    def texts(self) -> NDArray[numpy.object_]: ...
    def column(self, name: str) -> NDArray[numpy.object_]: ...
    def snippets(self, length: int = 160) -> NDArray[numpy.object_]: ...
    def highlights(self, length: int = 160) -> list[list[tuple[int, int]]]: ...
    def to_frame(self, library: _Library | str = "pandas") -> Any: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: int, /) -> Hit: ...
    @overload
    def __getitem__(self, at: slice, /) -> Hits: ...
    def __iter__(self) -> Iterator[Hit]: ...

@final
class Answers:
    def __new__(
        cls,
        generation: _Path,
        docids: bytes,
        scores: bytes,
        queries: Sequence[tuple[str, str]],
        offsets: Sequence[int],
        unknown: int,
        k: int = ...,
        found: Sequence[int] = ...,
        syntax: str = "words",
        facets: Sequence[str] = ...,
    ) -> Self: ...
    def __getnewargs__(
        self,
    ) -> tuple[
        Path, bytes, bytes, list[tuple[str, str]], list[int], int, int, list[int], str, list[str]
    ]: ...
    @property
    def found(self) -> list[int] | None: ...
    @property
    def facets(self) -> list[dict[str, Any]] | None: ...
    @property
    def qids(self) -> list[str]: ...
    @property
    def offsets(self) -> NDArray[numpy.uint64]: ...
    @property
    def docids(self) -> NDArray[numpy.uint32]: ...
    @property
    def scores(self) -> NDArray[numpy.float32]: ...
    @property
    def names(self) -> NDArray[numpy.object_]: ...
    @property
    def unknown(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int | str, /) -> Hits: ...
    def __iter__(self) -> Iterator[Hits]: ...
    def __contains__(self, qid: object, /) -> bool: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[Hits]: ...
    def items(self) -> list[tuple[str, Hits]]: ...
    def column(self, name: str) -> NDArray[numpy.object_]: ...
    def texts(self) -> NDArray[numpy.object_]: ...
    def to_frame(self, library: _Library | str = "pandas") -> Any: ...
    def write_run(self, path: _Path, tag: str = "millrace") -> None: ...

@final
class Index:
    def __new__(
        cls,
        path: _Path,
        *,
        score: _Score | str = "bm25",
        k1: float | None = None,
        b: float | Mapping[str, float] | None = None,
        boost: Mapping[str, float] | None = None,
        idf: Literal["lucene", "robertson"] | None = None,
        mu: float | None = None,
        score_delta: float | None = None,
        alpha: float | None = None,
        static_scale: Literal["greatest", "log", "rank"] | None = None,
        verify: bool = False,
        generation: int | None = None,
    ) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def score(self) -> str: ...
    @property
    def generation_number(self) -> int: ...
    def __len__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Path], dict[str, Any]]: ...
    def refresh(self) -> bool: ...
    def info(self) -> dict[str, Any]: ...
    def search(
        self,
        query: _Query,
        k: int = 10,
        *,
        mode: _Mode | str = "or",
        algorithm: str = "auto",
        syntax: _Syntax | str = "words",
        count: bool = False,
        rm3: tuple[int, int, float] | None = None,
        filter: str | None = None,
        sort: str | None = None,
        facets: str | Sequence[str] | None = None,
    ) -> Hits: ...
    def search_many(
        self,
        queries: _Queries,
        k: int | None = None,
        *,
        mode: _Mode | str = "or",
        algorithm: str = "auto",
        syntax: _Syntax | str = "words",
        count: bool = False,
        workers: int | None = None,
        rm3: tuple[int, int, float] | None = None,
        remove_query: bool = False,
        candidates: _Run | None = None,
        query_format: str | None = None,
        progress: _Progress = None,
        filter: str | None = None,
        sort: str | None = None,
        facets: str | Sequence[str] | None = None,
    ) -> Answers: ...
    def analyze(self, text: str) -> list[str]: ...
    def df(self, term: str) -> int: ...
    def postings(self, term: str) -> tuple[NDArray[numpy.uint32], NDArray[numpy.uint32]]: ...
    def snippet(self, query: _Query, text: str, length: int = 160) -> str: ...
    def document(self, name: str | None = None, *, docid: int | None = None) -> dict[str, Any]: ...
    def text(self, name: str | None = None, *, docid: int | None = None) -> str: ...
    def explain(
        self,
        query: _Query,
        name: str | None = None,
        *,
        docid: int | None = None,
        k: int = 10,
        syntax: _Syntax | str = "words",
    ) -> dict[str, Any]: ...
    def tune(
        self,
        queries: _Queries,
        qrels: _Qrels,
        *,
        k1: Sequence[float] | None = None,
        b: Sequence[float] | None = None,
        boost: Mapping[str, Sequence[float]] | None = None,
        field_b: Mapping[str, Sequence[float]] | None = None,
        mu: Sequence[float] | None = None,
        score_delta: Sequence[float] | None = None,
        alpha: Sequence[float] | None = None,
        measure: Any = None,
        folds: int = 5,
        k: int = 1000,
        mode: _Mode | str = "or",
        workers: int | None = None,
        remove_query: bool = False,
        progress: _Progress = None,
    ) -> dict[str, Any]: ...

@final
class Writer:
    def __new__(
        cls,
        index: _Path | Index,
        *,
        memory: int | str | None = None,
        workers: int | None = None,
        wait: bool = True,
        allow_shrink: bool = False,
    ) -> Self: ...
    @property
    def pending(self) -> int: ...
    def update(
        self,
        name: str,
        text: str,
        fields: dict[str, str | list[str]] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None: ...
    def delete(self, name: str | None = None, *, filter: str | None = None) -> None: ...
    def abort(self) -> None: ...
    def commit(self, keep_point: bool = False) -> dict[str, Any]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: Any | None = None,
    ) -> bool: ...

def build(
    index: _Path,
    documents: Iterable[_Document] | _Frame | None = None,
    *,
    files: _Path | Sequence[_Path] | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    format: str | None = None,
    id_field: str | Sequence[str] | None = None,
    text_field: str | Sequence[str] | None = None,
    field: str | Sequence[str] | None = None,
    encoding: str | None = None,
    tokenizer: Literal["words", "cjk-bigram", "whitespace"] = "words",
    fold: bool = False,
    stemmer: str | None = None,
    stopwords: str | Sequence[str] | None = None,
    factor: float | None = None,
    codec: str = "bp128",
    block_size: int = 128,
    positions: bool = False,
    columns: str | Sequence[str] | None = None,
    store: bool = False,
    store_fields: str | Sequence[str] | None = None,
    order: Literal["input", "url", "name", "length", "topic", "global"] | None = None,
    merge: bool = True,
    duplicates: str = "all",
    strict: bool = False,
    allow_empty: bool = False,
    max_skipped: str | None = None,
    min_documents: str | None = None,
    keep: int = 1,
    progress: _Progress = None,
) -> dict[str, Any]: ...
def evaluate(
    run: _Run, qrels: _Qrels, measures: _Measures = None, ties: Literal["trec_eval", "run"] | str = "trec_eval"
) -> dict[str, Any]: ...
def compare(run: _Run, other: _Run, qrels: _Qrels, measures: _Measures = None) -> dict[str, dict[str, Any]]: ...
def fuse(
    runs: Sequence[_Run],
    *,
    method: Literal["rrf", "combsum", "combmnz", "combmax", "combmin"] | str = "rrf",
    k: int = 1000,
    rrf_k: float | None = None,
    weights: Sequence[float] | None = None,
) -> dict[str, dict[str, float]]: ...
def check(index: _Path, *, workers: int | None = None, progress: _Progress = None) -> dict[str, int]: ...
def merge(
    index: _Path,
    *,
    codec: str | None = None,
    block_size: int | None = None,
    order: Literal["input", "url", "name", "length", "topic", "global"] | str | None = None,
    pagerank: _Path | None = None,
    now: bool = False,
    memory: int | str | None = None,
    workers: int | None = None,
    progress: _Progress = None,
) -> dict[str, int | None]: ...
