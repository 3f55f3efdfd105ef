"""Deposit metadata for Zenodo, made from CITATION.cff: one of the code, one of the data.

Invariant: a deposit has one licence, so code (MIT) and data (CC-BY-4.0) are two deposits; authors,
title and version are those of CITATION.cff and of no other place.

Fields: the deposit metadata of Zenodo's REST API (https://developers.zenodo.org), which a file
.zenodo.json holds, too. Citation File Format 1.2.0
(https://github.com/citation-file-format/citation-file-format).
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from analysis.reading import Run
from analysis.tables import SYNTHETIC
from records.errors import ExportError

SOFTWARE_NAME, DATA_NAME = "zenodo-software.json", "zenodo-data.json"
_DATA_LICENSE = "CC-BY-4.0"


def read_citation(file: Path) -> str:
    """CITATION.cff. ExportError: it is not there, or no text."""
    try:
        return file.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        why = "is not there" if isinstance(error, FileNotFoundError) else "is not UTF-8"
        raise ExportError(f"{file} {why}", f"git checkout {file.name} restores it") from error


def deposits(citation: str, runs: Sequence[Run], seals: dict[str, str]) -> dict[str, bytes]:
    """The two files by name. ExportError: CITATION.cff lacks what a deposit needs."""
    cited = _cited(citation)
    software = _deposit(cited, "software", cited["license"])
    software |= {"title": cited["title"], "description": _paragraph(cited["abstract"])}
    synthetic = any(run.started.synthetic for run in runs)
    data = _deposit(cited, "dataset", _DATA_LICENSE) | {
        "title": f"{'SYNTHETIC: ' if synthetic else ''}Records of {cited['title']}",
        "description": _described(runs, seals, synthetic),
    }
    if synthetic:
        data["keywords"] = [*data["keywords"], "synthetic"]
    return {SOFTWARE_NAME: _encoded(software), DATA_NAME: _encoded(data)}


def _cited(text: str) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise ExportError(f"CITATION.cff: not YAML: {said}", "restore it from git") from error
    value = value if isinstance(value, dict) else {}
    absent = [key for key in ("title", "license", "version", "abstract") if not value.get(key)]
    authors, keywords = value.get("authors"), value.get("keywords", [])
    if not authors or not _are(dict, authors):
        absent.append("a list of authors")
    if not _are(str, keywords):
        absent.append("keywords that are a list of words")
    if absent:
        raise ExportError(
            f"CITATION.cff lacks {', '.join(absent)}", "add them, or restore the file from git"
        )
    return value


def _are(kind: type, values: object) -> bool:
    return isinstance(values, list) and all(isinstance(one, kind) for one in values)


def _deposit(cited: dict[str, Any], kind: str, licence: str) -> dict[str, Any]:
    return {
        "upload_type": kind,
        "access_right": "open",
        "license": licence,
        "creators": [_creator(author) for author in cited["authors"]],
        "version": str(cited["version"]),
        "keywords": [str(word) for word in cited.get("keywords", [])],
        "language": "eng",
    }


def _creator(author: dict[str, Any]) -> dict[str, str]:
    """A person as 'Family, Given'; an entity by its name."""
    person = ", ".join(
        part for part in (author.get("family-names"), author.get("given-names")) if part
    )
    creator = {"name": str(author.get("name") or person)}
    if author.get("affiliation"):
        creator["affiliation"] = str(author["affiliation"])
    if author.get("orcid"):
        creator["orcid"] = str(author["orcid"]).rsplit("/", 1)[-1]
    return creator


def _described(runs: Sequence[Run], seals: dict[str, str], synthetic: bool) -> str:
    said = _paragraph(SYNTHETIC) if synthetic else ""
    items = "".join(
        f"<li>{html.escape(run.run_id)}: plan {html.escape(run.started.plan.id)}, "
        f"seal {html.escape(seals[run.run_id])}"
        f"{html.escape(f', {run.closing}' if run.closed else '')}</li>"
        for run in sorted(runs, key=lambda run: run.run_id)
    )
    told = _paragraph("Hash-chained, sealed records of benchmark runs; code under MIT apart.")
    return f"{said}{told}<ul>{items}</ul>"


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(' '.join(text.split()))}</p>"


def _encoded(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
