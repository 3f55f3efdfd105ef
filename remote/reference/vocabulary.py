"""A small vocabulary: token ids and texts, and a tokenizer with one token a word.

Invariant: a token's text is ASCII that needs no escape in JSON, so that chunks are joined as bytes.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

_SENTENCE = (
    "the boat left the quay before dawn and the gulls rose over the pier as a light wind came "
    "down from the hills where sheep stood in wet grass by a wall of grey stone while two "
    "men on the road spoke of rain and of bread and one of them laughed and then said that "
    "every river finds its own way to salt water if you give it time"
)
_WORDS = tuple(f" {word}".encode() for word in _SENTENCE.split())
_FIRST_ID = 1000


@lru_cache(maxsize=8192)
def _text(start: int, count: int) -> bytes:
    return b"".join(_WORDS[(start + i) % len(_WORDS)] for i in range(count))


@lru_cache(maxsize=8192)
def _ids(start: int, count: int) -> bytes:
    ids = (_FIRST_ID + (start + i) % len(_WORDS) for i in range(count))
    return b"[" + b",".join(b"%d" % token for token in ids) + b"]"


def text_json(start: int, count: int) -> bytes:
    """The text of `count` tokens from position `start` of the endless text, as JSON string body."""
    return _text(start % len(_WORDS), count)


def ids_json(start: int, count: int) -> bytes:
    """Their token ids as a JSON array."""
    return _ids(start % len(_WORDS), count)


def tokenize(text: str) -> tuple[int, ...]:
    """One id a word; the same word always has the same id (CRC-32, no table)."""
    return tuple(2000 + zlib.crc32(word.encode()) % 40_000 for word in text.split())
