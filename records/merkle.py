"""Merkle trees over runs: roots and proofs, bytes in, verdict out.

Invariant: hashing is that of RFC 6962, section 2.1 (leaf prefix 0x00, node prefix 0x01); proofs are
verified by the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from records.digest import Digest


def leaf_hash(leaf: bytes) -> Digest:
    """SHA-256(0x00 || leaf)."""
    return Digest.of(b"\x00" + leaf)


def root(leaves: Sequence[bytes]) -> Digest:
    """The Merkle tree hash of the leaves in order; SHA-256 of nothing for no leaf."""
    return Digest(_root([_leaf(leaf) for leaf in leaves]).hex())


@dataclass(frozen=True, slots=True)
class Frontier:
    """The roots of the perfect subtrees of a tree, largest first: enough to append in log time.

    They are those at which the tree hash of RFC 6962, section 2.1, splits `size` leaves.
    """

    size: int = 0
    _peaks: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> Frontier:
        """The frontier of the tree with one more leaf."""
        peaks, node, size = list(self._peaks), _leaf(leaf), self.size
        while size & 1:
            node, size = _node(peaks.pop(), node), size >> 1
        return Frontier(self.size + 1, (*peaks, node))

    @property
    def root(self) -> Digest:
        """The Merkle tree hash, as `root` gives it."""
        if not self._peaks:
            return Digest.of(b"")
        *larger, found = self._peaks
        for peak in reversed(larger):
            found = _node(peak, found)
        return Digest(found.hex())


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> tuple[Digest, ...]:
    """The audit path of leaf `index` (RFC 6962, 2.1.1). ValueError if there is no such leaf."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"no leaf {index} among {len(leaves)}")
    return tuple(Digest(h.hex()) for h in _path(index, [_leaf(leaf) for leaf in leaves]))


def consistency_proof(old_size: int, leaves: Sequence[bytes]) -> tuple[Digest, ...]:
    """Proof that the tree over `leaves` extends that of its first `old_size` (RFC 6962, 2.1.2)."""
    if not 0 < old_size <= len(leaves):
        raise ValueError(f"no tree of size {old_size} inside one of {len(leaves)}")
    hashes = [_leaf(leaf) for leaf in leaves]
    return tuple(Digest(h.hex()) for h in _subproof(old_size, hashes, complete=True))


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[Digest], expected_root: Digest
) -> bool:
    """Whether `leaf` is number `index` of the `size` leaves under `expected_root`."""
    if not 0 <= index < size:
        return False
    fn, sn, r = index, size - 1, _leaf(leaf)
    for p in (bytes.fromhex(d.hex) for d in proof):
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = _node(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = _node(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r.hex() == expected_root.hex


def verify_consistency(
    old_size: int, old_root: Digest, size: int, new_root: Digest, proof: Sequence[Digest]
) -> bool:
    """Whether the tree of `size` leaves under `new_root` begins with the older tree."""
    if old_size == size:
        return not proof and old_root == new_root
    if not 0 < old_size < size or not proof:
        return False
    path = [bytes.fromhex(d.hex) for d in proof]
    if old_size & (old_size - 1) == 0:
        path.insert(0, bytes.fromhex(old_root.hex))
    fn, sn = old_size - 1, size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = _node(c, fr), _node(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = _node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and fr.hex() == old_root.hex and sr.hex() == new_root.hex


def _leaf(leaf: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + leaf).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _split(n: int) -> int:
    """The largest power of two below n."""
    return 1 << ((n - 1).bit_length() - 1)


def _root(hashes: Sequence[bytes]) -> bytes:
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    k = _split(len(hashes))
    return _node(_root(hashes[:k]), _root(hashes[k:]))


def _path(m: int, hashes: Sequence[bytes]) -> list[bytes]:
    if len(hashes) == 1:
        return []
    k = _split(len(hashes))
    if m < k:
        return [*_path(m, hashes[:k]), _root(hashes[k:])]
    return [*_path(m - k, hashes[k:]), _root(hashes[:k])]


def _subproof(m: int, hashes: Sequence[bytes], complete: bool) -> list[bytes]:
    if m == len(hashes):
        return [] if complete else [_root(hashes)]
    k = _split(len(hashes))
    if m <= k:
        return [*_subproof(m, hashes[:k], complete), _root(hashes[k:])]
    return [*_subproof(m - k, hashes[k:], complete=False), _root(hashes[:k])]
