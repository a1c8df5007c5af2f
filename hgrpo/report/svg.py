"""Makes SVG for the page: figures in the page's theme, and small interval marks for tables."""

import html
import re

from markupsafe import Markup

from hgrpo.report.style import GRID, INK, MUTED, PAPER

_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}
_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
# A figure's style rule would apply to the whole page. `inline` removes it; report.css has the rule.
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", re.DOTALL)
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_FONT = re.compile(r"'DejaVu Sans'(?:, [^;\"]*)?")
_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW = re.compile(r'viewBox="([^"]+)"')


def inline(svg: str, name: str, alt: str) -> Markup:
    """Prepare a figure's SVG for HTML, with theme colours and the alternative text `alt`.

    `name` becomes the prefix of every id, so each figure of the page needs another name.
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


def whisker(
    lower: float, mean: float, upper: float, limit: float, colour: str, decided: bool
) -> Markup:
    """SVG of a mark for a difference and its interval, on a scale from -limit to +limit.

    Screen readers skip the mark, because the numbers stand beside it.
    """
    width, height, edge = 120, 18, 6

    def place(value: float) -> float:
        inside = max(-limit, min(limit, value))
        return round(edge + (inside + limit) / (2 * limit) * (width - 2 * edge), 2)

    fill = colour if decided else "var(--paper)"
    middle = height / 2
    return Markup(
        f'<svg class="whisker" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true"><line x1="{place(0)}" y1="1" x2="{place(0)}" y2="{height - 1}" '
        f'stroke="var(--muted)"/><line x1="{place(lower)}" y1="{middle}" x2="{place(upper)}" '
        f'y2="{middle}" stroke="{colour}" stroke-width="2.5"/><circle cx="{place(mean)}" '
        f'cy="{middle}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="2"/></svg>'
    )
