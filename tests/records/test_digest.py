"""Digests and image references: what is read, and what is refused."""

from __future__ import annotations

import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.digest import Digest, ImageRef
from records.errors import FormatError

HEX = "ab" * 32


@given(st.binary(max_size=300))
def test_digest_agrees_with_hashlib_and_survives_text(data: bytes) -> None:
    digest = Digest.of(data)
    assert digest.hex == hashlib.sha256(data).hexdigest()
    assert Digest.parse(str(digest)) == digest
    assert Digest.of_file(io.BytesIO(data)) == digest


def test_digest_of_file_takes_what_remains_over_many_blocks() -> None:
    data = bytes(range(256)) * 9000
    file = io.BytesIO(data)
    file.seek(5)
    assert Digest.of_file(file) == Digest.of(data[5:])


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEX,
        f"sha256:{HEX[:-1]}",
        f"sha256:{HEX}0",
        f"sha256:{HEX.upper()}",
        f"SHA256:{HEX}",
        f"sha512:{HEX}",
        f"sha256:{HEX}\n",
        f" sha256:{HEX}",
        f"sha256:{'é' * 64}",
        f"sha256:{'٣' * 64}",
    ],
)
def test_bad_digests_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="digest"):
        Digest.parse(text)


@pytest.mark.parametrize("text", ["", "ab", HEX.upper(), HEX + "\n", f"sha256:{HEX}"])
def test_a_digest_cannot_be_made_of_anything_else(text: str) -> None:
    with pytest.raises(FormatError):
        Digest(text)


@pytest.mark.parametrize(
    ("registry", "repository"),
    [
        ("docker.io", "vllm/vllm-openai"),
        ("localhost", "x"),
        ("localhost:5000", "a/b/c"),
        ("registry:5000", "x"),
        ("127.0.0.1:5000", "a_b/c__d/e-f/g---h/i.j"),
        ("gcr.IO", "x0"),
    ],
)
def test_good_references_come_back_as_they_were(registry: str, repository: str) -> None:
    text = f"{registry}/{repository}@sha256:{HEX}"
    ref = ImageRef.parse(text)
    assert (ref.registry, ref.repository, ref.digest.hex) == (registry, repository, HEX)
    assert str(ref) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docker.io/vllm/vllm-openai:v0.29.0",
        f"docker.io/vllm/vllm-openai:v0.29.0@sha256:{HEX}",
        f"vllm/vllm-openai@sha256:{HEX}",
        f"docker.io/@sha256:{HEX}",
        f"docker.io/A@sha256:{HEX}",
        f"docker.io/a//b@sha256:{HEX}",
        f"docker.io/a/../b@sha256:{HEX}",
        f"docker.io/a..b@sha256:{HEX}",
        f"docker.io/a___b@sha256:{HEX}",
        f"docker.io/a-@sha256:{HEX}",
        f"-docker.io/a@sha256:{HEX}",
        f"docker..io/a@sha256:{HEX}",
        f"docker.io:/a@sha256:{HEX}",
        f"docker.io:123456/a@sha256:{HEX}",
        f"https://docker.io/a@sha256:{HEX}",
        f"docker.io/a@sha256:{HEX[:-1]}",
        f"docker.io/a@sha256:{HEX}\n",
        f"docker.io/a@{HEX}",
    ],
)
def test_bad_references_are_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        ImageRef.parse(text)
    assert "@sha256:" in caught.value.remedy


def test_a_reference_cannot_be_made_of_bad_parts() -> None:
    with pytest.raises(FormatError):
        ImageRef("docker.io", "a:tag", Digest(HEX))
