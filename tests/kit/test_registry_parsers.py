"""Headers, credentials, waits and manifests: the pure parts of talking to a registry."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.registry import backoff, credentials
from kit.registry.challenge import Challenge, parse
from kit.registry.client import base_url
from kit.registry.manifest import Index, Manifest, parse_config, parse_index_or_manifest
from kit.registry.tag import parse_tagged
from records.errors import FormatError, RegistryError

PLAIN = {"os": "linux", "architecture": "amd64", "rootfs": {"diff_ids": []}}
NOW = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.timezone.utc)
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def test_docker_hubs_challenge() -> None:
    header = (
        'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",'
        'scope="repository:vllm/vllm-openai:pull"'
    )
    assert parse(header) == Challenge(
        "bearer",
        {
            "realm": "https://auth.docker.io/token",
            "service": "registry.docker.io",
            "scope": "repository:vllm/vllm-openai:pull",
        },
    )


@pytest.mark.parametrize(
    "header",
    ["", "Digest realm=x", "Bearer service=x", 'Bearer realm="open', "Bearer =,", 'Basic "x"'],
)
def test_a_challenge_that_cannot_be_answered_is_an_error(header: str) -> None:
    with pytest.raises(FormatError):
        parse(header)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.text(max_size=30)))
def test_any_quoted_parameter_comes_back(parameters: dict[str, str]) -> None:
    parameters["realm"] = "r"
    pairs = (
        f'{k}="{v}"'
        for k, v in (
            (k, v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " "))
            for k, v in parameters.items()
        )
    )
    want = {k: v.replace("\n", " ") for k, v in parameters.items()}
    assert parse(f"Bearer {', '.join(pairs)}").parameters == want


def test_the_first_of_two_challenges_counts() -> None:
    assert parse('Basic realm="a", Bearer realm="b"').scheme == "basic"


@pytest.mark.parametrize(
    ("attempt", "header", "want"),
    [
        (1, "", 1),
        (4, "", 8),
        (1, "7", 7),
        (1, "86400", 120),
        (1, "Mon, 30 Nov 2026 12:00:30 GMT", 30),
        (1, "Mon, 30 Nov 2026 11:00:00 GMT", 0),
        (3, "soon", 4),
        (30, "", 120),
    ],
)
def test_waits(attempt: int, header: str, want: float) -> None:
    assert backoff.wait_s(attempt, header, NOW) == want


def test_credentials_come_from_dockers_file_or_two_variables(tmp_path: Path) -> None:
    auth = base64.b64encode(b"user:pass:word").decode()
    (tmp_path / "config.json").write_text(
        json.dumps({"auths": {"reg.example": {"auth": auth}, "https://index.docker.io/v1/": {}}})
    )
    environ = {"DOCKER_CONFIG": str(tmp_path)}
    found = credentials.find("reg.example", environ)
    assert found is not None
    assert (found.user, found.password) == ("user", "pass:word")
    assert "pass:word" not in repr(found)
    assert credentials.find("docker.io", environ) is None
    assert credentials.find("other.example", environ) is None
    environ |= {credentials.USER: "u", credentials.PASSWORD: "p"}
    assert credentials.find("other.example", environ) == credentials.Credentials("u", "p")


@pytest.mark.parametrize("text", ["not json", "[]", '{"auths": {"r.example": {"auth": "!!"}}}'])
def test_a_broken_docker_file_is_no_anonymous_user(text: str) -> None:
    with pytest.raises(RegistryError):
        credentials.parse(text, "r.example")


def test_where_registries_answer() -> None:
    assert base_url("docker.io") == "https://registry-1.docker.io"
    assert base_url("ghcr.io") == "https://ghcr.io"
    assert base_url("127.0.0.1:5000") == "http://127.0.0.1:5000"
    assert base_url("localhost:5000") == "http://localhost:5000"
    assert base_url("10.0.0.1:5000") == "https://10.0.0.1:5000"


def test_an_index_drops_attestations_and_joins_no_variant_of_arm64() -> None:
    def entry(digest: str, **platform: str) -> dict[str, object]:
        media = "application/vnd.oci.image.manifest.v1+json"
        return {"mediaType": media, "digest": digest, "size": 9, "platform": platform}

    found = parse_index_or_manifest(
        json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
                "manifests": [
                    entry(A, os="linux", architecture="arm64", variant="v8"),
                    entry(B, os="unknown", architecture="unknown"),
                ],
            }
        ).encode()
    )
    assert isinstance(found, Index)
    assert [d.platform for d in found.manifests] == ["linux/arm64"]


def test_a_layer_that_occurs_twice_is_pulled_once() -> None:
    layer = {"mediaType": "l", "digest": A, "size": 100}
    document = {"schemaVersion": 2, "layers": [layer, layer], "config": {**layer, "digest": B}}
    found = parse_index_or_manifest(json.dumps(document).encode())
    assert isinstance(found, Manifest)
    assert found.layers_bytes == 100


@pytest.mark.parametrize(
    "document",
    [
        b"{",
        b"[]",
        b'{"schemaVersion": 1}',
        b'{"schemaVersion": 2, "mediaType": "text/html"}',
        b'{"schemaVersion": 2, "layers": {}}',
        b'{"schemaVersion": 2, "manifests": [{"size": -1}]}',
        b'{"schemaVersion": 2, "layers": [], "config": {"mediaType": "x", "size": 1, "digest": 3}}',
        b"[" * 100_000,
        b'{"schemaVersion": 2, "manifests": ' + b"[" * 100_000,
        b'{"schemaVersion": ' + b"2" * 5_000 + b"}",
        "{}".encode("utf-32"),
    ],
    ids=lambda document: document[:40],
)
def test_a_malformed_manifest_is_refused(document: bytes) -> None:
    with pytest.raises(FormatError):
        parse_index_or_manifest(document)


def test_the_cuda_requirement_stands_in_the_configuration_alone() -> None:
    document = {
        "os": "linux",
        "architecture": "amd64",
        "config": {"Env": ["A=1", "NVIDIA_REQUIRE_CUDA=cuda>=12.9 brand=tesla,driver>=535"]},
        "rootfs": {"diff_ids": [A, B]},
    }
    found = parse_config(json.dumps(document).encode())
    assert (found.platform, found.layer_count) == ("linux/amd64", 2)
    assert found.requires_cuda == "cuda>=12.9 brand=tesla,driver>=535"
    without = {**document, "config": {}}
    assert parse_config(json.dumps(without).encode()).requires_cuda == ""


@pytest.mark.parametrize(
    "env", [5, {"NVIDIA_REQUIRE_CUDA": "x"}, "NVIDIA_REQUIRE_CUDA=x", [1, None]]
)
def test_an_environment_of_another_shape_requires_nothing(env: object) -> None:
    document = {**PLAIN, "config": {"Env": env}}
    assert parse_config(json.dumps(document).encode()).requires_cuda == ""


@pytest.mark.parametrize("name", ["", "li\x1b[2Jnux", "linux\u202e", "\ud800", "a/b", "a b"])
def test_a_platform_by_a_name_that_none_has(name: str) -> None:
    with pytest.raises(FormatError, match="is no platform"):
        parse_config(json.dumps({**PLAIN, "os": name}).encode())


def test_a_tag_is_read_and_a_digest_is_none() -> None:
    assert parse_tagged("127.0.0.1:5000/a/b:v1") == ("127.0.0.1:5000", "a/b", "v1")
    for text in ("docker.io/a/b", f"docker.io/a@{A}", "a:b", "localhost:5000/a"):
        with pytest.raises(FormatError):
            parse_tagged(text)
