"""List prices, so that a method file names a model and no more.

Only models that take what the client sends (a temperature, a strict JSON schema) are listed, under
the names that OpenAI moves along; a dated snapshot may cost something else.
"""

from typing import NamedTuple

from hgrpo.credit.judge import rubric

OPENAI = "https://api.openai.com/v1"
AS_OF = "2026-08"


class Price(NamedTuple):
    """Dollars per million tokens."""

    input: float
    output: float


AT_OPENAI = {
    "gpt-4o-mini": Price(0.15, 0.60),
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4.1-nano": Price(0.10, 0.40),
    "gpt-4.1-mini": Price(0.40, 1.60),
    "gpt-4.1": Price(2.00, 8.00),
}


def known_price(model: str, base_url: str) -> Price | None:
    """What a model costs at an address; None where that is not known.

    The same name may have another price at another address, so the list holds for OpenAI's alone.
    The offline rubric is free wherever it runs.
    """
    if model == rubric.MODEL:
        return Price(0.0, 0.0)
    return AT_OPENAI.get(model) if base_url == OPENAI else None
