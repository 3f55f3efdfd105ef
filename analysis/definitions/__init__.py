"""What each tool calls latency per token, computed from the same chunks.

Invariant: importing this package computes nothing; every rule is a pure function of its columns.
"""

from analysis.definitions.catalogue import DEFINITIONS, definition
from analysis.definitions.columns import ChunkColumns
from analysis.definitions.definition import Definition, Summary, of_request, pooled, summarise
from analysis.definitions.rules import Sample

__all__ = [
    "DEFINITIONS",
    "ChunkColumns",
    "Definition",
    "Sample",
    "Summary",
    "definition",
    "of_request",
    "pooled",
    "summarise",
]
