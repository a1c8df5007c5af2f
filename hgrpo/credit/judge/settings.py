"""What a method's `credit:` section may say beside `kind: judge`."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator, model_validator

from hgrpo.credit.judge import rubric
from hgrpo.credit.judge.prices import AS_OF, AT_OPENAI, OPENAI, known_price
from hgrpo.credit.settings import CreditSettings, SumsTo

SERVICE = "service"
MAX_PAID_CALLS = 50_000

_PRICES = ("dollars_per_million_input", "dollars_per_million_output")

Variant = Literal["trajectory", "group"]
Normalisation = Literal["centred", "share"]


class Settings(CreditSettings):
    """The judge: who is asked, how, at what price, and when to give up.

    Caps hold for a study: what all seeds, rounds and methods, resumed ones too, ask of one model at
    one address. An answer from the cache counts nothing. `max_calls: 0` allows nothing beyond the
    cache; null lifts a cap.
    """

    # Whoever puts a key where its name belongs should not read it again in an error message.
    model_config = ConfigDict(hide_input_in_errors=True)

    uses = ("judge_text",)
    may_be_unreachable = True
    # Calls of several groups are under way together.
    groups_at_once = 16
    fallback_column = "judge_fallbacks"

    model: str = Field(min_length=1, description="`offline-rubric` is hgrpo.cli.judge_server")
    base_url: str = Field(
        OPENAI, description="`service`: an offline judge of its own; part of the cache's key"
    )
    api_key_env: str | None = Field(
        "OPENAI_API_KEY",
        description="environment variable that holds the key; null: none is needed",
    )
    variant: Variant = Field("trajectory", description="what one call shows and scores")
    normalisation: Normalisation = Field(
        "centred",
        description="centred: (score - group mean) / 10; share: score * return / sum of scores",
    )
    temperature: float = Field(0.0, ge=0, le=2)
    timeout_s: float = Field(30.0, gt=0, description="to connect, and to wait for the answer")
    retries: int = Field(3, ge=0, description="further attempts after the first")
    backoff_s: float = Field(1.0, ge=0, description="first pause; doubles with every attempt")
    concurrency: int = Field(8, gt=0, description="calls under way at once, in each job")
    max_calls: int | None = Field(
        ge=0,
        description="requests sent by the whole study to this model at this address, retries "
        f"included; left out: {MAX_PAID_CALLS}, or null where calls are free",
    )
    max_dollars: float | None = Field(
        5.0,
        ge=0,
        description="spent by the whole study on this model at this address, calls under way and "
        "calls whose price is not known for sure at an estimate on the safe side",
    )
    dollars_per_million_input: float = Field(
        ge=0,
        description="price of a million input tokens; left out: the list price of OpenAI's "
        "(prices.py), 0 for `offline-rubric`",
    )
    dollars_per_million_output: float = Field(
        ge=0, description="price of a million output tokens; left out: as for input"
    )
    thinking_tokens: int = Field(
        0, ge=0, description="room in the answer for a model that thinks before it answers"
    )
    fallback_limit: float = Field(
        0.1,
        ge=0,
        le=1,
        description="share of a step's trajectories without a judgement above which its round "
        "fails",
    )

    @property
    def label_remark(self) -> str:
        """What must stand beside the arm's label wherever its numbers do.

        Only our own server answers to the rubric's name, and it answers to no other.
        """
        return "(offline rubric)" if self.model == rubric.MODEL else ""

    @property
    def sums_to(self) -> SumsTo:
        """Shares of the return sum to it; centred scores do not sum to anything known."""
        return "return" if self.normalisation == "share" else ""

    @property
    def environment_variables(self) -> Mapping[str, str]:
        """The variable that holds the key, if the judge needs one."""
        if self.base_url == SERVICE or self.api_key_env is None:
            return {}
        return {
            self.api_key_env: f"the key of its judge, {self.model} at {self.base_url}, is missing: "
            f"set the environment variable {self.api_key_env} (or credit.api_key_env, null where "
            "no key is needed)"
        }

    def outside_calls(self, groups: int, rollouts: int) -> str:
        """Most calls to a judge that is not the offline one, and the study's caps on them."""
        if self.base_url == SERVICE:
            return ""
        calls = groups * (rollouts if self.variant == "trajectory" else 1)
        given = {"max_calls": self.max_calls, "max_dollars": self.max_dollars}
        caps = ", ".join(f"{name} {cap}" for name, cap in given.items() if cap is not None)
        return (
            f"up to {calls:,} calls to {self.model} at {self.base_url}, without repeats; known "
            "answers are not asked for again" + (f"; caps of the study: {caps}" if caps else "")
        )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Prices and the call cap, where they are left out, follow from who is asked."""
        if not isinstance(given, Mapping):
            return given
        model, base_url = given.get("model"), given.get("base_url", OPENAI)
        if not isinstance(model, str) or not isinstance(base_url, str):
            # Named by the fields' own checks; what would follow from them is not missed as well.
            return dict.fromkeys(_PRICES, 0.0) | {"max_calls": None} | dict(given)
        if base_url == SERVICE and model != rubric.MODEL:
            raise ValueError(
                f"base_url `{SERVICE}` answers as {rubric.MODEL} alone; OpenAI's is {OPENAI}"
            )
        filled = dict(given)
        price = known_price(model, base_url.rstrip("/"))
        if price is not None:
            filled = dict(zip(_PRICES, price, strict=True)) | filled
        missing = [name for name in _PRICES if name not in filled]
        if missing:
            raise ValueError(
                f"no price is known of this model at this address: give {' and '.join(missing)} "
                f"(known are, of {AS_OF} and at {OPENAI}: {', '.join(AT_OPENAI)})"
            )
        free = all(filled[name] == 0 for name in _PRICES)
        return {"max_calls": None if free else MAX_PAID_CALLS} | filled

    @field_validator("base_url")
    @classmethod
    def _one_spelling(cls, text: str) -> str:
        return text.rstrip("/")

    # After the fields, so that the error shows no value: it may be, or hold, a key.
    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env):
            raise ValueError("api_key_env must be the name of an environment variable")
        if self.base_url != SERVICE:
            _check_url(self.base_url)
        return self


def _check_url(text: str) -> None:
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if not host or url.scheme not in {"http", "https"}:
        raise ValueError("base_url must be `service` or an http(s) address")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("base_url must hold no user, password, query or fragment")
