"""OpenAI's list prices, so that a method file only has to name a model.

The list holds models that accept a temperature and a strict JSON schema, under their undated names.
A dated snapshot may have another price.
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
    """The price of a model at an address, or None if it is unknown.

    The list holds at OpenAI's address only. The offline rubric is free at every address.
    """
    if model == rubric.MODEL:
        return Price(0.0, 0.0)
    return AT_OPENAI.get(model) if base_url == OPENAI else None
