"""The report as one HTML file that asks nothing of any network.

Invariant: the bytes depend on the report alone. Every text is escaped by the template engine; what
is not escaped is this package's own style and script, which the policy in the head names by digest,
so that no other script or style would run even if one got in. What is invisible in a text, or would
turn the order of what stands beside it over, is shown by its code.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from analysis.report.model import Report
from records.limits import printable

_DIGEST = re.compile(r"\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b")
_TEMPLATES = Path(__file__).parent / "templates"
# Images are the figures, as data; nothing else is loaded, sent or framed.
_POLICY = (
    "default-src 'none'; img-src data:; style-src '{style}'; script-src '{script}'; "
    "base-uri 'none'; form-action 'none'"
)


def page(report: Report) -> bytes:
    """The page, UTF-8."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters["breakable"] = _breakable
    environment.filters["digests_short"] = _digests_short
    style, script = _own("page.css"), _own("page.js")
    policy = _POLICY.format(style=_source(style), script=_source(script))
    made = environment.get_template("page.html.j2").render(
        report=report,
        policy=policy,
        style=style,
        script=script,
        run_anchors={run.id: run.anchor for run in report.runs},
    )
    return (made + "\n").encode()


def _seen(value: object) -> object:
    """A text with nothing hidden in it; its lines as they are."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "\n".join(map(printable, value.split("\n")))


def _breakable(text: str) -> Markup:
    """A word of the engine's may go on in the next line behind its low lines, where any may."""
    return escape(str(_seen(text))).replace("_", Markup("_<wbr>"))


def _digests_short(text: str) -> str:
    """In a sentence; in full they stand with the runs."""
    return _DIGEST.sub(r"\1…", text)


def _own(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704  # our own file


def _source(text: str) -> str:
    """The source expression of an inline element (W3C, Content Security Policy Level 3, 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
