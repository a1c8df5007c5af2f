"""The YAML keys that a method's `credit:` section may have beside `kind: judge`."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from hgrpo.credit.settings import SumsTo
from hgrpo.credit.to_go import ToGoSettings

# OpenAI's list prices, so that a method file only has to name a model. All of these models accept a
# temperature and a strict JSON schema. Dated snapshots of a model may cost more or less.
OPENAI = "https://api.openai.com/v1"
AS_OF = "2026-08"

# Model -> (dollars per million input tokens, dollars per million output tokens).
AT_OPENAI = {
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-4o": (2.50, 10.00),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1": (2.00, 8.00),
}

RUBRIC = "offline-rubric"
SERVICE = "service"
MAX_PAID_CALLS = 50_000

_ADDRESS = r"https?://(\[[\da-fA-F:.]+\]|[^][\s:/?#@]+)(:\d+)?(/[^\s?#@]*)?"
_PRICES = ("dollars_per_million_input", "dollars_per_million_output")

Variant = Literal["trajectory", "group"]
Normalisation = Literal["centred", "share"]


class Settings(ToGoSettings):
    """The judge: its model, calls, prices, caps and limits.

    A cap limits a whole study's calls to one model at one address. All seeds, rounds and methods
    share it, also after a resume. Answers from the cache do not count. `max_calls: 0` allows only
    the cache, and null removes a cap.
    """

    # Errors show no values, since a user may put the API key itself into `api_key_env`.
    model_config = ConfigDict(hide_input_in_errors=True)

    uses = ("judge_text",)
    extras = ("judge",)
    may_be_unreachable = True
    # The judge gets the prompts of up to this many groups together.
    fallback_column = "judge_fallbacks"

    model: str = Field(
        min_length=1,
        description="language model; `offline-rubric`: rules without a language model",
    )
    base_url: str = Field(
        OPENAI,
        description="address of its server; `service`: the offline rubric in this process; part of "
        "the cache's key",
    )
    api_key_env: str | None = Field(
        "OPENAI_API_KEY",
        description="environment variable that holds the key; null if the server needs none",
    )
    variant: Variant = Field("trajectory", description="what one call scores")
    normalisation: Normalisation = Field(
        "centred",
        description="centred: (score - group mean) / 10; share: score * return / sum of scores",
    )
    temperature: float = Field(0.0, ge=0, le=2, description="sampling temperature of the judge")
    timeout_s: float = Field(
        30.0, gt=0, description="limit for connecting, and for waiting for the answer"
    )
    retries: int = Field(3, ge=0, description="further attempts after the first")
    backoff_s: float = Field(1.0, ge=0, description="first pause; doubles with every attempt")
    concurrency: int = Field(8, gt=0, description="calls at once, in each job")
    max_calls: int | None = Field(
        ge=0,
        description="most requests of the whole study to this model at this address, with retries; "
        f"default: {MAX_PAID_CALLS}, or null if calls are free",
    )
    max_dollars: float | None = Field(
        5.0,
        ge=0,
        description="most dollars of the whole study for this model at this address; calls without "
        "an answer count at a high estimate",
    )
    dollars_per_million_input: float = Field(
        ge=0,
        description="price of a million input tokens; default: OpenAI's list price, 0 for "
        "`offline-rubric`",
    )
    dollars_per_million_output: float = Field(
        ge=0, description="price of a million output tokens; default: as for input"
    )
    thinking_tokens: int = Field(
        0, ge=0, description="extra output tokens for a model that thinks before it answers"
    )
    fallback_limit: float = Field(
        0.1,
        ge=0,
        le=1,
        description="largest share of a step's trajectories without a judgement; a round fails "
        "above it",
    )

    @property
    def label_remark(self) -> str:
        """The remark "(offline rubric)" if the rubric is the judge."""
        return "(offline rubric)" if self.model == RUBRIC else ""

    @property
    def sums_to(self) -> SumsTo:
        """The return with normalisation `share`; "" with `centred`, or if later turns are added."""
        return "return" if self.normalisation == "share" and self.to_go is None else ""

    @property
    def environment_variables(self) -> Mapping[str, str]:
        """Map the API key's variable to the error if it is not set; empty if no key is needed."""
        if self.base_url == SERVICE or self.api_key_env is None:
            return {}
        return {
            self.api_key_env: f"the key of the judge {self.model} at {self.base_url} is missing: "
            f"set the environment variable {self.api_key_env} (or credit.api_key_env, null where "
            "no key is needed)"
        }

    def outside_calls(self, groups: int, rollouts: int) -> str:
        """Number of calls, without retries, that may leave this process, with the caps."""
        if self.base_url == SERVICE:
            return ""
        calls = groups * (rollouts if self.variant == "trajectory" else 1)
        limits = {"max_calls": self.max_calls, "max_dollars": self.max_dollars}
        caps = ", ".join(f"{name} {cap}" for name, cap in limits.items() if cap is not None)
        few = self.max_calls is not None and self.max_calls < calls
        return (
            f"up to {calls:,} calls to {self.model} at {self.base_url}, without repeats; known "
            "answers are not asked for again"
            + (f"; caps of the study: {caps}" if caps else "")
            + ("; CAUTION: max_calls may end the run" if few else "")
        )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, section: Any) -> Any:
        """Fill in prices and the call cap from the model and its address."""
        if not isinstance(section, Mapping):
            return section
        model, base_url = section.get("model"), section.get("base_url", OPENAI)
        if not isinstance(model, str) or not isinstance(base_url, str):
            # The fields' own checks report this mistake, so do not also report missing prices.
            return dict.fromkeys(_PRICES, 0.0) | {"max_calls": None} | dict(section)
        if base_url == SERVICE and model != RUBRIC:
            raise ValueError(
                f"base_url `{SERVICE}` serves only {RUBRIC}; OpenAI's address is {OPENAI}"
            )
        filled = dict(section)
        known = {RUBRIC: (0.0, 0.0)}  # free at every address
        if base_url.rstrip("/") == OPENAI:
            known |= AT_OPENAI
        if model in known:
            filled = dict(zip(_PRICES, known[model], strict=True)) | filled
        missing = [name for name in _PRICES if name not in filled]
        if missing:
            raise ValueError(
                f"the price of this model at this address is unknown: give {' and '.join(missing)} "
                f"(known at {OPENAI}, as of {AS_OF}: {', '.join(AT_OPENAI)})"
            )
        free = all(filled[name] == 0 for name in _PRICES)
        return {"max_calls": None if free else MAX_PAID_CALLS} | filled

    @field_validator("base_url")
    @classmethod
    def _one_spelling(cls, text: str) -> str:
        return text.rstrip("/")

    # These messages contain no values: `api_key_env` and `base_url` may hold secrets.
    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env):
            raise ValueError("api_key_env must be the name of an environment variable")
        if self.base_url == SERVICE:
            return self
        if not re.fullmatch(_ADDRESS, self.base_url):
            raise ValueError(
                "base_url must be `service` or an http(s) address without a user, a password, a "
                "query or a fragment"
            )
        return self
