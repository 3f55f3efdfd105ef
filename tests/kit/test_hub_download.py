"""A gated model from a hub: the token goes to the hub alone, and only locked bytes are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_service import REPOSITORY, REVISION, Hub, running_hub

from kit.engine.hub_download import HubSource, download
from kit.engine.hub_token import TOKEN_NAMES, find_token
from kit.engine.models import LockedFile, LockedModel, ModelLock, materialise
from records.digest import Digest
from records.errors import FormatError, ProvisionError

TOKEN = "hf_TheTokenOfThisTestAndOfNothingElse"
FILES = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 4096}
LOCKED = {name: (Digest.of(data), len(data)) for name, data in FILES.items()}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr("kit.engine.hub_download._FIRST_WAIT_S", 0.01)
    with running_hub(Hub(dict(FILES), TOKEN)) as service:
        yield service


def source(hub: Hub, repository: str = REPOSITORY) -> HubSource:
    return HubSource(repository, REVISION, gated=True, endpoint=hub.endpoint)


def test_the_token_reaches_the_hub_and_not_where_it_sends_us(hub: Hub, tmp_path: Path) -> None:
    lines: list[str] = []
    download(source(hub), LOCKED, tmp_path / "m", TOKEN, lines.append)
    assert {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()} == FILES
    assert {given for server, _, given, _ in hub.asked if server == "hub"} == {f"Bearer {TOKEN}"}
    assert {given for server, _, given, _ in hub.asked if server == "store"} == {""}
    assert TOKEN not in "\n".join(lines)


def test_a_renamed_repository_is_followed_on_the_hub_itself(hub: Hub, tmp_path: Path) -> None:
    download(source(hub, f"{REPOSITORY}-old"), LOCKED, tmp_path / "m", TOKEN, print)
    assert (tmp_path / "m" / "config.json").read_bytes() == b"{}"


def test_what_breaks_off_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    big = {"model.safetensors": LOCKED["model.safetensors"]}
    hub.cut_at = [1000, 500_000]
    hub.statuses = [503]
    download(source(hub), big, tmp_path / "m", TOKEN, print)
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    ranges = [asked for server, _, _, asked in hub.asked if server == "store"]
    assert ranges == ["", "bytes=1000-", "bytes=500000-"]


def test_other_bytes_than_the_locked_are_refused_and_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.files["config.json"] = b"[]"
    with pytest.raises(ProvisionError, match=r"got sha256:.*want sha256:") as caught:
        download(source(hub), LOCKED, tmp_path / "m", TOKEN, print)
    assert TOKEN not in f"{caught.value.message}{caught.value.remedy}"
    assert list((tmp_path / "m").iterdir()) == []


@pytest.mark.parametrize(
    ("token", "words"), [("", "none is set here"), ("hf_another", "refuses this token")]
)
def test_without_the_right_token_it_says_what_to_do(
    hub: Hub, tmp_path: Path, token: str, words: str
) -> None:
    with pytest.raises(ProvisionError, match=words) as caught:
        download(source(hub), LOCKED, tmp_path / "m", token, print)
    assert "licence" in caught.value.remedy
    assert f"{hub.endpoint}/{REPOSITORY}" in caught.value.remedy


def test_a_file_that_is_gone_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    del hub.files["config.json"]
    with pytest.raises(ProvisionError, match="HTTP 404"):
        download(source(hub), LOCKED, tmp_path / "m", TOKEN, print)
    assert len(hub.asked) == 1


def test_a_model_of_a_hub_is_made_of_its_files_once(hub: Hub, tmp_path: Path) -> None:
    files = {name: LockedFile(*locked) for name, locked in LOCKED.items()}
    model = LockedModel("gated", None, "none", files, hub=source(hub))
    lock = ModelLock(1, {"m": model})
    made = materialise("m", lock, Path(), tmp_path / "models", print, TOKEN)
    asked = len(hub.asked)
    assert materialise("m", lock, Path(), tmp_path / "models", print) == made
    assert len(hub.asked) == asked, "what stands there is only verified"
    assert {p.name for p in made.iterdir()} == set(FILES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"revision": "main"},
        {"repository": "../x/y"},
        {"endpoint": "http://hub.example.org"},
    ],
)
def test_a_hub_is_asked_for_a_commit_and_over_tls(wrong: dict[str, str]) -> None:
    with pytest.raises(FormatError):
        HubSource(**{"repository": REPOSITORY, "revision": REVISION, **wrong})  # type: ignore[arg-type]


def test_a_token_is_found_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert find_token({"HF_TOKEN": f" {TOKEN}\n", "HF_TOKEN_FILE": str(file)}) == TOKEN
    for name in ("HF_TOKEN_FILE", "HF_TOKEN_PATH"):
        assert name in TOKEN_NAMES
        assert find_token({name: str(file)}) == TOKEN
    assert find_token({"HOME": str(tmp_path)}) == ""
    (tmp_path / ".cache/huggingface").mkdir(parents=True)
    file.rename(tmp_path / ".cache/huggingface/token")
    assert find_token({"HOME": str(tmp_path)}) == TOKEN


@pytest.mark.parametrize("text", ["two words", "tok\nHost: evil", "tökén"])
def test_what_is_no_token_is_not_sent_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProvisionError) as caught:
        find_token({"HF_TOKEN": text})
    assert text not in caught.value.message


def test_a_second_kit_that_wants_the_same_model_waits_for_the_first(
    hub: Hub, tmp_path: Path
) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from kit.engine.hub_download import HubSource, download\n"
        "from records.digest import Digest\n"
        "name, digest, size, place, endpoint = sys.argv[1:]\n"
        f"hub = HubSource({REPOSITORY!r}, {REVISION!r}, True, endpoint)\n"
        "wanted = {name: (Digest.parse(digest), int(size))}\n"
        "download(hub, wanted, Path(place), sys.stdin.read(), print)\n"
    )
    name = "model.safetensors"
    digest, size = LOCKED[name]
    words = [name, str(digest), str(size), str(tmp_path / "m"), hub.endpoint]
    kits = [
        subprocess.Popen(
            [sys.executable, "-c", script, *words],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for one in kits:
        one.communicate(TOKEN.encode(), timeout=60)
    assert [one.returncode for one in kits] == [0, 0]
    assert [server for server, *_ in hub.asked].count("store") == 1
