"""RFC 6962 trees: the published vectors, every proof up to 40 leaves, and no mutated proof."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import merkle
from records.digest import Digest

# From github.com/transparency-dev/merkle, testonly/constants.go, where the certificate-transparency
# project keeps them.
EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION_0_OF_8 = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
)
SIZES = range(1, 41)


def _leaves(count: int) -> list[bytes]:
    return [b"leaf %d" % i for i in range(count)]


def test_the_published_roots() -> None:
    assert merkle.root([]).hex == EMPTY_ROOT
    for size, root in enumerate(ROOTS, 1):
        assert merkle.root(LEAVES[:size]).hex == root
    assert merkle.leaf_hash(b"").hex == ROOTS[0]


def test_the_published_inclusion_proof() -> None:
    proof = merkle.inclusion_proof(0, LEAVES)
    assert tuple(d.hex for d in proof) == INCLUSION_0_OF_8
    assert merkle.verify_inclusion(LEAVES[0], 0, 8, proof, Digest(ROOTS[7]))


def test_every_inclusion_proof_holds_and_only_for_its_leaf_and_place() -> None:
    for size in SIZES:
        leaves = _leaves(size)
        root = merkle.root(leaves)
        for index in range(size):
            proof = merkle.inclusion_proof(index, leaves)
            assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
            assert not merkle.verify_inclusion(b"other", index, size, proof, root)
            assert not merkle.verify_inclusion(leaves[index], index, size, proof, Digest.of(b"r"))
            assert not merkle.verify_inclusion(leaves[index], size, size, proof, root)
            for other in range(size):
                if other != index:
                    assert not merkle.verify_inclusion(leaves[index], other, size, proof, root)


def test_every_consistency_proof_holds() -> None:
    leaves = _leaves(SIZES[-1])
    roots = [merkle.root(leaves[:n]) for n in range(SIZES[-1] + 1)]
    for new in SIZES:
        for old in range(1, new + 1):
            proof = merkle.consistency_proof(old, leaves[:new])
            assert merkle.verify_consistency(old, roots[old], new, roots[new], proof)
            if old < new:
                assert not merkle.verify_consistency(old, roots[old - 1], new, roots[new], proof)
                assert not merkle.verify_consistency(old, roots[old], new, roots[new - 1], proof)
                assert not merkle.verify_consistency(new, roots[new], old, roots[old], proof)


@st.composite
def _mutations(draw: st.DrawFn, proof: tuple[Digest, ...]) -> tuple[Digest, ...]:
    items = list(proof)
    kind = draw(st.sampled_from(["flip", "drop", "add", "swap"] if items else ["add"]))
    at = draw(st.integers(0, max(0, len(items) - 1)))
    if kind == "flip":
        raw = bytearray.fromhex(items[at].hex)
        raw[draw(st.integers(0, 31))] ^= draw(st.integers(1, 255))
        items[at] = Digest(raw.hex())
    elif kind == "drop":
        del items[at]
    elif kind == "add":
        items.insert(at, draw(st.sampled_from([Digest.of(b"x"), *items])))
    else:
        items.reverse()
    return tuple(items)


@given(st.integers(1, 40), st.data())
def test_mutated_inclusion_proofs_fail(size: int, data: st.DataObject) -> None:
    leaves = _leaves(size)
    index = data.draw(st.integers(0, size - 1))
    proof = merkle.inclusion_proof(index, leaves)
    mutated = data.draw(_mutations(proof))
    if mutated != proof:
        root = merkle.root(leaves)
        assert not merkle.verify_inclusion(leaves[index], index, size, mutated, root)


@given(st.integers(1, 40), st.data())
def test_mutated_consistency_proofs_fail(size: int, data: st.DataObject) -> None:
    leaves = _leaves(size)
    old = data.draw(st.integers(1, size))
    proof = merkle.consistency_proof(old, leaves)
    mutated = data.draw(_mutations(proof))
    if mutated != proof:
        roots = merkle.root(leaves[:old]), merkle.root(leaves)
        assert not merkle.verify_consistency(old, roots[0], size, roots[1], mutated)


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=12), st.data())
def test_any_change_of_leaves_changes_the_root(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    root = merkle.root(leaves)
    assert merkle.root(leaves[:index] + leaves[index + 1 :]) != root
    assert merkle.root([*leaves[:index], leaves[index] + b"x", *leaves[index + 1 :]]) != root
    assert merkle.root([*leaves, b"more"]) != root


@pytest.mark.parametrize(("index", "count"), [(-1, 3), (3, 3), (0, 0)])
def test_no_proof_for_what_is_not_there(index: int, count: int) -> None:
    with pytest.raises(ValueError, match="no leaf"):
        merkle.inclusion_proof(index, _leaves(count))


@pytest.mark.parametrize("old", [0, 4, -1])
def test_no_consistency_with_a_tree_that_is_not_inside(old: int) -> None:
    with pytest.raises(ValueError, match="no tree"):
        merkle.consistency_proof(old, _leaves(3))
    assert not merkle.verify_consistency(old, Digest.of(b""), 3, merkle.root(_leaves(3)), ())


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_appending_gives_the_root_over_all(leaves: list[bytes]) -> None:
    frontier = merkle.Frontier()
    for size, leaf in enumerate(leaves):
        assert frontier.root == merkle.root(leaves[:size])
        frontier = frontier.append(leaf)
    assert (frontier.size, frontier.root) == (len(leaves), merkle.root(leaves))
