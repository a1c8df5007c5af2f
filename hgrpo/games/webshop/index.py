"""BM25 search as in Lucene, with a memory-mapped inverted index shared between processes.

Scores are bit-identical to Lucene's: 32-bit floats are summed in 64 bits, and the sum is rounded to
32 bits. The package bm25s cannot be used, because its rounding and tie-breaking differ from
Lucene's, it ignores repeated query terms, and it copies the vocabulary into each process.
"""

import hashlib
import json
import math
import shutil
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hgrpo.errors import UserError
from hgrpo.games.webshop.analyser import analyse

# The parameters k1 and b of BM25, with pyserini's defaults.
_K1 = np.float32(0.9)
_B = np.float32(0.4)

_FORMAT = "bm25 1"
_HEADER = "index.json"
_ARRAYS = {"keys": np.uint64, "starts": np.int64, "documents": np.int32, "saturations": np.float32}
# If a query has fewer postings than this share of the number of documents, sorting the postings is
# faster than filling an array with one entry per document.
_SPARSE = 1 / 16

# The 256 document lengths that Lucene can encode in a byte (SmallFloat.byte4ToInt), ascending: all
# lengths from 0 to 40, then 8 lengths in steps of 2, 8 in steps of 4, and so on.
_CODES = np.arange(256 - 24)
_FLOATS = np.where(_CODES < 8, _CODES, (8 + _CODES % 8) << np.maximum(_CODES // 8 - 1, 0))
_LENGTHS = np.concatenate([np.arange(24), 24 + _FLOATS])


def quantise(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round each document length down to the nearest one that Lucene can encode in a byte."""
    return _LENGTHS[np.searchsorted(_LENGTHS, lengths, side="right") - 1]


@dataclass(frozen=True, eq=False)
class Index:
    """An inverted index with V terms and P postings, i.e. pairs of a term and a document.

    Attributes:
        size: number of documents, including those without terms.
        filled: number of documents with at least one term; N in the formula of `scores`.
        keys: uint64 [V] ascending, a hash of each term. A term that is not in the index is mistaken
            for one of these terms with probability V / 2^64.
        starts: int64 [V + 1], offset of each term's first posting.
        documents: int32 [P], document index of each posting, ascending within a term.
        saturations: float32 [P], 1 + tf / (k1 (1 - b + b dl / avgdl)).
    """

    size: int
    filled: int
    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    saturations: NDArray[np.float32]

    def search(self, query: str, k: int = 50) -> list[int]:
        """Indices of the best `k` documents, best first; ties are broken by the lower index."""
        documents, scores = self.scores(query)
        if len(scores) > k:
            best = scores >= np.partition(scores, -k)[-k]
            documents, scores = documents[best], scores[best]
        return documents[np.argsort(-scores, kind="stable")[:k]].tolist()

    def scores(self, query: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Indices (ascending) and BM25 scores of the documents that share a term with the query.

        The score is the sum over the query's terms, repetitions included, of
        ln(1 + (N - df + 0.5) / (df + 0.5)) tf / (tf + k1 (1 - b + b dl / avgdl)). Here dl is the
        quantised length and avgdl the exact mean length of the N documents with terms. This is
        Lucene 8's BM25Similarity
        (https://lucene.apache.org/core/8_11_0/core/org/apache/lucene/search/similarities/BM25Similarity.html)
        with k1 = 0.9 and b = 0.4.
        """
        terms = Counter(analyse(query))
        keys = np.array([_key(term) for term in terms], np.uint64)
        places = np.searchsorted(self.keys, keys)
        documents, shares = [], []
        for place, key, count in zip(places.tolist(), keys, terms.values(), strict=True):
            if place < len(self.keys) and self.keys[place] == key:
                postings = slice(*self.starts[place : place + 2].tolist())
                weight = np.float32(count) * self._idf(postings.stop - postings.start)
                documents.append(self.documents[postings])
                # Lucene computes tf / (tf + norm) as 1 - 1 / (1 + tf / norm), as in the next line.
                shares.append(weight - weight / self.saturations[postings])
        if not documents:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        hits, share = np.concatenate(documents), np.concatenate(shares)
        # Sum the contributions per document. See `_SPARSE` for the two methods.
        if len(hits) < _SPARSE * self.size:
            hits, places = np.unique(hits, return_inverse=True)
            return hits, np.bincount(places, share).astype(np.float32)
        totals = np.bincount(hits, share, self.size)
        hits = np.flatnonzero(totals)
        return hits, totals[hits].astype(np.float32)

    def _idf(self, df: int) -> np.float32:
        return np.float32(math.log(1 + (self.filled - df + 0.5) / (df + 0.5)))

    def save(self, folder: Path) -> None:
        """Write the index to a folder, and replace an existing index."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        # Write the header last, so that an incomplete index cannot be loaded.
        header = {"format": _FORMAT, "size": self.size, "filled": self.filled}
        (folder / _HEADER).write_text(json.dumps(header) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Index":
        """Memory-map an index; raise UserError if one of its files is missing or damaged."""
        try:
            header = json.loads((folder / _HEADER).read_bytes())
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise ValueError(f"{_HEADER} does not have format {_FORMAT!r}")
            arrays = {name: mapped(folder / f"{name}.npy", kind) for name, kind in _ARRAYS.items()}
            return cls(int(header["size"]), int(header["filled"]), **arrays)
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise UserError(f"{folder}: the folder is not a search index: {error}") from None


def build(documents: Iterable[str]) -> Index:
    """Build the index in one pass over the documents, preserving their order.

    The peak memory is the size of the vocabulary plus about 24 bytes per posting.
    """
    numbers: dict[str, int] = {}
    terms, frequencies, ends, lengths = array("i"), array("f"), array("q", [0]), array("q")
    for document in documents:
        counts = Counter(analyse(document))
        terms.extend([numbers.setdefault(term, len(numbers)) for term in counts])
        frequencies.extend(counts.values())
        ends.append(len(terms))
        lengths.append(counts.total())
    keys = np.fromiter(map(_key, numbers), np.uint64, len(numbers))
    order = np.argsort(keys)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    by_document = csr_array(
        (np.asarray(frequencies), ranks[np.asarray(terms)], np.asarray(ends)),
        shape=(len(lengths), len(numbers)),
    )
    by_term = by_document.tocsc()
    filled = int(np.count_nonzero(lengths))
    saturations, columns = by_term.data, by_term.indices
    saturations *= _inverse_norms(np.asarray(lengths), filled)[columns]
    saturations += 1
    starts, numbered = by_term.indptr.astype(np.int64), columns.astype(np.int32, copy=False)
    return Index(len(lengths), filled, keys[order], starts, numbered, saturations)


def _inverse_norms(lengths: NDArray[np.int64], filled: int) -> NDArray[np.float32]:
    """1 / (k1 (1 - b + b dl / avgdl)) of each document, in Lucene's order of 32-bit operations."""
    mean = np.float32(lengths.sum() / max(filled, 1))
    shares = _B * quantise(lengths).astype(np.float32) / max(mean, np.float32(1))
    return np.float32(1) / (_K1 * ((np.float32(1) - _B) + shares))


def _key(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")


def mapped(path: Path, kind: type) -> NDArray:
    """Memory-map a 1-d array from `np.save`; raise ValueError if its shape or type is wrong."""
    numbers = np.load(path, mmap_mode="r")
    if numbers.dtype != kind or numbers.ndim != 1:
        actual = f"{numbers.dtype} {list(numbers.shape)}"
        raise ValueError(f"{path.name} contains {actual} instead of a list of {np.dtype(kind)}")
    return np.asarray(numbers)  # a plain array view, because indexing a memmap is slow
