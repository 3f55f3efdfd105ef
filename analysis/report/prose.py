"""Findings as HTML: CommonMark with tables, and each claim a link to its trace.

Invariant: raw HTML in the text stays text (markdown-it's `html: False`), and no link leads anywhere
but to a trace on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from analysis.report.model import ClaimView, Html

_CLAIM = "claim:"
_CLAIMS, _ENDS = "claims", "ends"


def prose(text: str, claims: Mapping[str, ClaimView], level: int) -> Html:
    """One text as HTML. `claims`: those with a trace on the page, by id.

    `level`: what a heading of the second level becomes, to fit in below its section.
    """
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    markdown.enable("table").disable("image")
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + level - 2)}"
    env: EnvType = {_CLAIMS: claims, _ENDS: []}
    made = markdown.renderer.render(tokens, markdown.options, env)
    return Markup(made)  # noqa: S704  # escaped by markdown-it, which takes no HTML


class _Renderer(RendererHTML):
    """Its methods are the rules for the tokens of their names (markdown_it/renderer.py)."""

    def link_open(
        self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType
    ) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        claim = env[_CLAIMS].get(href.removeprefix(_CLAIM)) if href.startswith(_CLAIM) else None
        if claim is None:
            env[_ENDS].append("</span>")
            return f'<span title="{escape(href)}">'
        env[_ENDS].append(f'</a><sup class="endnote" aria-hidden="true">{claim.number}</sup>')
        return f'<a class="n" href="#{escape(claim.anchor)}">'

    def link_close(
        self, _tokens: Sequence[Token], _idx: int, _options: OptionsDict, env: EnvType
    ) -> str:
        return str(env[_ENDS].pop())

    def table_open(self, *_: object) -> str:
        return '<div class="scroll"><table class="plain">'

    def table_close(self, *_: object) -> str:
        return "</table></div>\n"

    def th_open(self, *_: object) -> str:
        return '<th scope="col">'
