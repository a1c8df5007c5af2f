"""Creates the Jinja environment of the pages, and embeds figures in a page's HTML."""

import html
import re

import jinja2
from markupsafe import Markup

from hgrpo.report.style import GRID, INK, MUTED, PAPER

_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}
_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
# `inline` removes the style rule of a figure, because it would apply to the whole page. The rule is
# in report.css.
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", re.DOTALL)
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_FONT = re.compile(r"'DejaVu Sans'(?:, [^;\"]*)?")
_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW = re.compile(r'viewBox="([^"]+)"')


def page_environment() -> jinja2.Environment:
    """Jinja environment of this package, with autoescaping and strict undefined names."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hgrpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def inline(svg: str, name: str, alt: str) -> Markup:
    """Prepare a figure's SVG for HTML, with theme colours and the alternative text `alt`.

    `name` is the prefix of every id, so it must be unique on the page.
    """
    body = _STYLE.sub("", _METADATA.sub("", _PROLOGUE.sub("", svg)))
    body = _ID.sub(lambda match: f"{match.group(1)}{name}-", body)
    for colour, variable in _THEME.items():
        body = body.replace(colour, variable)
    body = _FONT.sub("system-ui, sans-serif", body)
    view = _VIEW.search(body).group(1)
    opening = (
        f'<svg class="plot" viewBox="{view}" role="img" aria-labelledby="{name}-alt" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<title id="{name}-alt">{html.escape(alt)}</title>'
    )
    return Markup(_OPENING.sub(lambda _: opening, body, count=1))
