"""Makes parts of pages: Jinja's environment, figures in the page's theme, and interval marks."""

import html
import re
from collections.abc import Iterable

import jinja2
from markupsafe import Markup

from hgrpo.report.style import GRID, INK, MUTED, PAPER
from hgrpo.report.words import points

_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}
_PROLOGUE = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
# A figure's style rule would apply to the whole page. `inline` removes it; report.css has the rule.
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>\s*", re.DOTALL)
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_FONT = re.compile(r"'DejaVu Sans'(?:, [^;\"]*)?")
_OPENING = re.compile(r"<svg\b[^>]*>")
_WIDTH, _EDGE = 150, 6  # width and margin of a mark in a table, in pixels
_LIMITS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75)
_VIEW = re.compile(r'viewBox="([^"]+)"')


def page_environment() -> jinja2.Environment:
    """Jinja's environment of this package: text is escaped, and a missing name is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hgrpo.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def inline(svg: str, name: str, alt: str) -> Markup:
    """Prepare a figure's SVG for HTML, with theme colours and the alternative text `alt`.

    `name` becomes the prefix of every id, so each figure of the page needs a name of its own.
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


def scale(ends: Iterable[float]) -> float:
    """The limit of a scale from -limit to +limit that holds all `ends`: a round fraction."""
    furthest = max(map(abs, ends), default=0)
    return next((limit for limit in _LIMITS if limit >= furthest), 1)


def axis(limit: float) -> Markup:
    """SVG of the axis of `whisker` marks, with percentage points at both ends and at zero."""
    labels = ((-limit, "start"), (0, "middle"), (limit, "end"))
    texts = [
        f'<text x="{_place(value, limit) + shift}" y="10" text-anchor="{anchor}" font-size="11" '
        f'fill="var(--muted)">{points(value, 0) if value else 0}</text>'
        for (value, anchor), shift in zip(labels, (-_EDGE, 0, _EDGE), strict=True)
    ]
    return Markup(f"{_opening(14)}{''.join(texts)}</svg>")


def whisker(
    lower: float, mean: float, upper: float, limit: float, colour: str, decided: bool
) -> Markup:
    """SVG of a mark for a difference and its interval, on a scale from -limit to +limit.

    Screen readers skip the mark, because the numbers stand beside it.
    """
    if not lower <= upper:  # one seed has no interval
        lower = upper = mean
    height = 18
    middle = height / 2

    def place(value: float) -> float:
        return _place(value, limit)

    fill = colour if decided else "var(--paper)"
    ends = "".join(
        f'<line x1="{place(value)}" y1="5" x2="{place(value)}" y2="13" stroke="var(--grid)"/>'
        for value in (-limit, limit)
    )
    return Markup(
        f'{_opening(height)}<line x1="{place(-limit)}" y1="{middle}" x2="{place(limit)}" '
        f'y2="{middle}" stroke="var(--grid)"/>{ends}'
        f'<line x1="{place(0)}" y1="1" x2="{place(0)}" y2="{height - 1}" '
        f'stroke="var(--muted)"/><line x1="{place(lower)}" y1="{middle}" x2="{place(upper)}" '
        f'y2="{middle}" stroke="{colour}" stroke-width="2.5"/><circle cx="{place(mean)}" '
        f'cy="{middle}" r="4.5" fill="{fill}" stroke="{colour}" stroke-width="2"/></svg>'
    )


def _opening(height: int) -> str:
    return (
        f'<svg class="whisker" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" aria-hidden="true">'
    )


def _place(value: float, limit: float) -> float:
    """Where a value stands on a scale from -limit to +limit, in pixels from the left."""
    inside = max(-limit, min(limit, value))
    return round(_EDGE + (inside + limit) / (2 * limit) * (_WIDTH - 2 * _EDGE), 2)
