"""The image lock against a real registry with a password, and against one that misbehaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from fault_proxy import Asked, Fault, FaultProxy, Rule, fault_proxy
from registry_service import (
    INDEX,
    MANIFEST,
    PASSWORD,
    USER,
    PutImage,
    RegistryService,
    put_image,
    running_registry,
)

from kit.image_lock import ImageLock, LockedImage, filled, read_image_lock, write_image_lock
from kit.images import verify
from kit.main import main
from kit.registry import backoff
from kit.registry.client import Registry
from kit.registry.credentials import PASSWORD as PASSWORD_VARIABLE
from kit.registry.credentials import USER as USER_VARIABLE
from kit.registry.credentials import Credentials
from kit.registry.resolve import resolve
from kit.registry.transfer import Transfer, open_http
from records.digest import Digest
from records.errors import (
    FormatError,
    ImageMismatchError,
    RegistryBusyError,
    RegistryError,
    UnresolvedImageError,
)

REPOSITORY, TAG = "vllm/vllm-openai", "v0.29.0"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryService]:
    with running_registry(tmp_path_factory.mktemp("registry"), htpasswd=True) as running:
        yield running


@pytest.fixture(scope="module")
def image(service: RegistryService) -> PutImage:
    return put_image(service, REPOSITORY, TAG)


def _ignore(_line: str) -> None:
    return


def _no_wait(_seconds: float) -> None:
    return


def unresolved(name: str, image: PutImage) -> LockedImage:
    return LockedImage(name, REPOSITORY, TAG, image.index, False, {})


@contextmanager
def asking(name: str, waits: list[float] | None = None) -> Iterator[Registry]:
    """This registry, with the right password; waits are noted, not waited."""
    noted: list[float] = [] if waits is None else waits
    with open_http() as http:
        transfer = Transfer(http, noted.append, _ignore)
        yield Registry(name, transfer, Credentials(USER, PASSWORD))


@contextmanager
def behind_fault(
    service: RegistryService, rule: Rule, waits: list[float] | None = None
) -> Iterator[tuple[FaultProxy, Registry]]:
    with fault_proxy(service.url, rule) as proxy, asking(proxy.name, waits) as registry:
        yield proxy, registry


def locked(service: RegistryService, image: PutImage) -> LockedImage:
    with asking(service.name) as registry:
        return filled(unresolved(service.name, image), resolve(registry, REPOSITORY, image.index))


def test_the_walk_finds_every_digest(service: RegistryService, image: PutImage) -> None:
    with asking(service.name) as registry:
        found = resolve(registry, REPOSITORY, image.index)
    assert list(found) == ["linux/amd64", "linux/arm64"]
    for name, platform in found.items():
        assert platform.manifest_digest == image.manifests[name]
        assert platform.image_id == image.configs[name]
        assert platform.layers_bytes == image.layers_bytes
        assert platform.requires_cuda == "cuda>=12.9"


def test_the_digest_of_one_platform_is_resolved_too(
    service: RegistryService, image: PutImage
) -> None:
    with asking(service.name) as registry:
        found = resolve(registry, REPOSITORY, image.manifests["linux/arm64"])
    assert list(found) == ["linux/arm64"]


def test_verify_accepts_what_was_locked_also_at_a_mirror(
    service: RegistryService, image: PutImage, tmp_path: Path
) -> None:
    lock = locked(service, image)
    with running_registry(tmp_path / "mirror") as mirror:
        assert put_image(mirror, REPOSITORY, "other-tag").index == image.index
        with asking(mirror.name) as registry:
            assert verify(lock, registry).keys() == lock.platforms.keys()


def test_a_wrong_password_is_refused(service: RegistryService, image: PutImage) -> None:
    with open_http() as http:
        transfer = Transfer(http, _no_wait, _ignore)
        wrong = Registry(service.name, transfer, Credentials(USER, "wrong"))
        with pytest.raises(RegistryError, match="refused, HTTP 401"):
            resolve(wrong, REPOSITORY, image.index)
        anonymous = Registry(service.name, transfer, None)
        with pytest.raises(RegistryError, match="asks for a user and a password"):
            resolve(anonymous, REPOSITORY, image.index)


def test_bearer_tokens_are_fetched_once_a_repository(
    service: RegistryService, image: PutImage
) -> None:
    """The token service of the hub's kind in front of the real registry."""

    def rule(asked: Asked) -> Fault | None:
        if asked.path.startswith("/token"):
            assert "scope=repository%3Avllm%2Fvllm-openai%3Apull" in asked.path
            assert "service=test" in asked.path
            assert asked.headers["authorization"].startswith("Basic ")
            return Fault(body=b'{"token": "T0"}')
        if asked.headers.get("authorization") != "Bearer T0":
            realm = f'Bearer realm="http://{proxy.name}/token",service="test"'
            return Fault(401, headers=(("WWW-Authenticate", realm),))
        asked.headers["authorization"] = service.auth
        return None

    with behind_fault(service, rule) as (proxy, registry):
        assert len(resolve(registry, REPOSITORY, image.index)) == 2
        tokens = [a for a in proxy.asked if a.path.startswith("/token")]
    assert len(tokens) == 1


def test_a_password_never_goes_to_a_realm_in_clear(
    service: RegistryService, image: PutImage
) -> None:
    header = ("WWW-Authenticate", 'Bearer realm="http://tokens.example/t"')
    with (
        behind_fault(service, lambda _: Fault(401, headers=(header,))) as (_, registry),
        pytest.raises(RegistryError, match=r"password in clear at http://tokens\.example"),
    ):
        resolve(registry, REPOSITORY, image.index)


@pytest.mark.parametrize("realm", ["http://[::1", "/token", "file:///etc/passwd", "x y", ""])
def test_a_realm_that_is_no_place_for_tokens_is_refused_at_once(
    realm: str, service: RegistryService, image: PutImage
) -> None:
    header = ("WWW-Authenticate", f'Bearer realm="{realm}"')
    with (
        behind_fault(service, lambda _: Fault(401, headers=(header,))) as (proxy, registry),
        pytest.raises(RegistryError, match=r"no address for tokens|password in clear"),
    ):
        resolve(registry, REPOSITORY, image.index)
    assert len(proxy.asked) == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"token": ' + b"9" * 5_000 + b"}", b"\xff"])
def test_an_answer_that_holds_no_token(
    body: bytes, service: RegistryService, image: PutImage
) -> None:
    def rule(asked: Asked) -> Fault:
        realm = f'Bearer realm="http://{proxy.name}/token"'
        given = asked.path.startswith("/token")
        return Fault(body=body) if given else Fault(401, headers=(("WWW-Authenticate", realm),))

    with (
        behind_fault(service, rule) as (proxy, registry),
        pytest.raises(RegistryError, match="holds no token"),
    ):
        resolve(registry, REPOSITORY, image.index)


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b"\xff", b'{"format": ' + b"9" * 5_000 + b"}", b"\0"]
)
def test_a_lock_that_was_damaged_names_its_file(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "images.lock.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"images\.lock\.json"):
        read_image_lock(path)


def test_429_is_waited_out_as_long_as_the_registry_says(
    service: RegistryService, image: PutImage
) -> None:
    left = [3]

    def rule(asked: Asked) -> Fault | None:
        if "/manifests/" in asked.path and left[0] and asked.headers.get("authorization"):
            left[0] -= 1
            return Fault(429, headers=(("Retry-After", "17"),))
        return None

    waits: list[float] = []
    with behind_fault(service, rule, waits) as (_, registry):
        assert resolve(registry, REPOSITORY, image.index)
    assert waits == [17, 17, 17]


def test_429_without_end_has_an_error_of_its_own(service: RegistryService, image: PutImage) -> None:
    waits: list[float] = []
    with (
        behind_fault(service, lambda _: Fault(429), waits) as (_, registry),
        pytest.raises(RegistryBusyError, match="HTTP 429, 6 times"),
    ):
        resolve(registry, REPOSITORY, image.index)
    assert waits == [1, 2, 4, 8, 16]
    assert len(waits) == backoff.ATTEMPTS - 1


def test_a_blob_cut_short_is_asked_again_then_refused(
    service: RegistryService, image: PutImage
) -> None:
    cuts = [2]

    def rule(asked: Asked) -> Fault | None:
        if "/blobs/" in asked.path and cuts[0] and asked.headers.get("authorization"):
            cuts[0] -= 1
            return Fault(body=asked.behind().content, cut_to=40)
        return None

    with behind_fault(service, rule) as (_, registry):
        assert resolve(registry, REPOSITORY, image.index)
        cuts[0] = 100
        with pytest.raises(RegistryError, match=r"RemoteProtocolError|got 40 bytes"):
            resolve(registry, REPOSITORY, image.index)


def test_a_blob_that_is_wholly_sent_but_shorter_is_refused_with_both_sizes(
    service: RegistryService, image: PutImage
) -> None:
    def rule(asked: Asked) -> Fault | None:
        if "/blobs/" in asked.path and asked.headers.get("authorization"):
            return Fault(body=asked.behind().content[:40])
        return None

    with (
        behind_fault(service, rule) as (_, registry),
        pytest.raises(RegistryError, match=r"got 40 bytes, want \d+, 6 times"),
    ):
        resolve(registry, REPOSITORY, image.index)


@pytest.mark.parametrize("kind", ["manifests", "blobs"])
def test_a_lying_mirror_is_refused_with_got_and_want(
    service: RegistryService, image: PutImage, kind: str
) -> None:
    """One changed byte of the same length, and Docker-Content-Digest still says the right thing."""

    def rule(asked: Asked) -> Fault | None:
        if f"/{kind}/sha256:" not in asked.path or "authorization" not in asked.headers:
            return None
        body = asked.behind().content.replace(b"linux", b"linus", 1)
        said = asked.path.rpartition("/")[2]
        return Fault(body=body, headers=(("Docker-Content-Digest", said),))

    lock = locked(service, image)
    with (
        behind_fault(service, rule) as (_, registry),
        pytest.raises(ImageMismatchError, match=r"got sha256:[0-9a-f]{64} .*, want sha256:"),
    ):
        verify(lock, registry)


def test_a_manifest_tampered_with_in_the_registrys_own_store_is_refused(
    service: RegistryService,
) -> None:
    victim = put_image(service, "victim/image", "v1", env=("V=1",))
    path = service.stored_blob(victim.configs["linux/amd64"])
    path.write_bytes(path.read_bytes().replace(b"V=1", b"V=2"))
    with asking(service.name) as registry, pytest.raises((ImageMismatchError, RegistryError)):
        resolve(registry, "victim/image", victim.index)


def test_another_image_under_the_tag_is_refused(service: RegistryService) -> None:
    first = put_image(service, "moved/image", "v1", env=("A=1",))
    second = put_image(service, "moved/image", "v1", env=("A=2",))
    image = LockedImage(service.name, "moved/image", "v1", first.index, False, {})
    with asking(service.name) as registry:
        with pytest.raises(ImageMismatchError) as caught:
            verify(image, registry)
        assert f"got {second.index}, want {first.index}" in caught.value.message
        assert resolve(registry, "moved/image", first.index), "the digest still leads to the first"


def test_of_two_manifests_for_one_platform_the_first_counts(service: RegistryService) -> None:
    images = [put_image(service, "two/images", f"v{n}", env=(f"A={n}",)) for n in (1, 2)]
    manifests = [image.manifests["linux/amd64"] for image in images]
    entries = [
        {
            "mediaType": MANIFEST,
            "digest": str(digest),
            "size": service.stored_blob(digest).stat().st_size,
            "platform": {"os": "linux", "architecture": "amd64"},
        }
        for digest in manifests
    ]
    data = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    index = service.put_manifest("two/images", "both", data, INDEX)
    with asking(service.name) as registry:
        found = resolve(registry, "two/images", index)
    assert [platform.manifest_digest for platform in found.values()] == manifests[:1]


def test_an_index_that_names_the_wrong_platform_is_refused(
    service: RegistryService, image: PutImage
) -> None:
    arm = image.manifests["linux/arm64"]
    size = service.stored_blob(arm).stat().st_size
    entry = {
        "mediaType": MANIFEST,
        "digest": str(arm),
        "size": size,
        "platform": {"os": "linux", "architecture": "amd64"},
    }
    data = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode()
    digest = service.put_manifest(REPOSITORY, "crossed", data, INDEX)
    with asking(service.name) as registry, pytest.raises(ImageMismatchError, match="linux/arm64"):
        resolve(registry, REPOSITORY, digest)


def test_a_lock_that_says_otherwise_is_never_overwritten(
    service: RegistryService, image: PutImage
) -> None:
    lock = locked(service, image)
    amd64 = replace(lock.platforms["linux/amd64"], image_id=Digest("0" * 64))
    edited = replace(lock, platforms={**lock.platforms, "linux/amd64": amd64})
    with asking(service.name) as registry:
        found = resolve(registry, REPOSITORY, image.index)
    with pytest.raises(ImageMismatchError, match=r"image_id: got sha256:.*, want sha256:0000"):
        filled(edited, found)


def test_lock_and_verify_as_a_user_types_them(
    service: RegistryService,
    image: PutImage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(USER_VARIABLE, USER)
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    path = tmp_path / "images.lock.json"
    write_image_lock(path, ImageLock(1, {"one": unresolved(service.name, image)}))
    at = ("--lock", str(path))
    assert main(["images", "verify", *at]) == UnresolvedImageError.exit_code
    told = capsys.readouterr().err
    assert "one: not resolved in the lock yet" in told
    assert "try: kit images lock" in told
    assert main(["images", "lock", *at, "--json"]) == 0
    resolved = read_image_lock(path).image("one")
    assert resolved.resolved
    assert resolved.platform("linux/amd64").image_id == image.configs["linux/amd64"]
    assert main(["images", "verify", *at]) == 0
    before = path.read_bytes()
    assert main(["images", "lock", *at]) == 0
    assert path.read_bytes() == before
    added = f"{service.name}/{REPOSITORY}:{TAG}"
    assert main(["images", "lock", "two", "--add", added, *at]) == 0
    assert read_image_lock(path).image("two").index_digest == image.index
    assert main(["images", "list", *at]) == 0
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err
