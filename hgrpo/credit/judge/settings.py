"""Settings of the judge, in a method's `credit:` section."""

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from hgrpo.credit.settings import SumsTo
from hgrpo.credit.to_go import ToGoSettings

# OpenAI's list prices, so that a method file only has to set the model. All models in this list
# support a temperature and a strict JSON schema. Dated snapshots may have different prices.
OPENAI = "https://api.openai.com/v1"
AS_OF = "2026-08"

# Maps a model to its prices, in dollars per million input tokens and per million output tokens.
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
    """Model and server of the judge, and limits on calls and cost.

    The caps `max_calls` and `max_dollars` apply to the calls of a study to one model at one
    address, summed over seeds, rounds, methods and resumed runs. Answers from the cache do not
    count. `max_calls: 0` allows only cached answers, and null means no cap.
    """

    # Hide values in errors, because a user may put the API key itself into `api_key_env`.
    model_config = ConfigDict(hide_input_in_errors=True)

    uses = ("judge_text",)
    extras = ("judge",)
    may_be_unreachable = True
    fallback_column = "judge_fallbacks"

    model: str = Field(
        min_length=1,
        description="name of the language model; `offline-rubric`: scores by rules, without a "
        "language model",
    )
    base_url: str = Field(
        OPENAI,
        description="base URL of the server; `service`: run the offline rubric in this process. "
        "Cached answers are reused only for the same URL",
    )
    api_key_env: str | None = Field(
        "OPENAI_API_KEY",
        description="environment variable with the API key; null: the server requires no key",
    )
    variant: Variant = Field("trajectory", description="what one call to the model scores")
    normalisation: Normalisation = Field(
        "centred",
        description="credit from scores. centred: (score - group mean) / 10; share: score * "
        "return / sum of scores",
    )
    temperature: float = Field(0.0, ge=0, le=2, description="sampling temperature of the judge")
    timeout_s: float = Field(
        30.0, gt=0, description="timeout in seconds of the connection, and of each read"
    )
    retries: int = Field(3, ge=0, description="maximum retries after the first attempt")
    backoff_s: float = Field(
        1.0,
        ge=0,
        description="pause before the first retry, in seconds; doubled for each further retry",
    )
    concurrency: int = Field(8, gt=0, description="maximum concurrent calls per job")
    max_calls: int | None = Field(
        ge=0,
        description="maximum requests per study to this model at this address, including retries; "
        f"default: {MAX_PAID_CALLS}, or null if calls are free",
    )
    max_dollars: float | None = Field(
        5.0,
        ge=0,
        description="maximum cost per study of this model at this address, in dollars; if an "
        "answer reports no token usage, its cost is overestimated",
    )
    dollars_per_million_input: float = Field(
        ge=0,
        description="price per million input tokens; default: OpenAI's list price, or 0 for "
        "`offline-rubric`",
    )
    dollars_per_million_output: float = Field(
        ge=0, description="price per million output tokens; default as for input tokens"
    )
    thinking_tokens: int = Field(
        0, ge=0, description="additional output tokens allowed for reasoning"
    )
    fallback_limit: float = Field(
        0.1,
        ge=0,
        le=1,
        description="the round fails if a larger share of a step's trajectories has no judgement",
    )

    @property
    def label_remark(self) -> str:
        """ "(offline rubric)" if the rubric is the judge, else ""."""
        return "(offline rubric)" if self.model == RUBRIC else ""

    @property
    def sums_to(self) -> SumsTo:
        """Credit sums to the return if `normalisation` is `share` and `to_go` is not set."""
        return "return" if self.normalisation == "share" and self.to_go is None else ""

    @property
    def environment_variables(self) -> Mapping[str, str]:
        """The variable of the API key, if one is required, and the error message if it is unset."""
        if self.base_url == SERVICE or self.api_key_env is None:
            return {}
        return {
            self.api_key_env: f"the API key of judge {self.model} at {self.base_url} is missing: "
            f"set the environment variable {self.api_key_env} (or set `credit.api_key_env` to "
            "another variable, or to null if the server requires no key)"
        }

    def outside_calls(self, groups: int, rollouts: int) -> str:
        """Describe the caps, and the maximum number of calls, not counting retries."""
        if self.base_url == SERVICE:
            return ""
        calls = groups * (rollouts if self.variant == "trajectory" else 1)
        limits = {"max_calls": self.max_calls, "max_dollars": self.max_dollars}
        caps = ", ".join(f"{name} {cap}" for name, cap in limits.items() if cap is not None)
        few = self.max_calls is not None and self.max_calls < calls
        return (
            f"up to {calls:,} calls to {self.model} at {self.base_url}, not counting retries; "
            "no calls for cached answers"
            + (f"; caps of the study: {caps}" if caps else "")
            + ("; CAUTION: the run may stop at max_calls" if few else "")
        )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, section: Any) -> Any:
        if not isinstance(section, Mapping):
            return section
        model, base_url = section.get("model"), section.get("base_url", OPENAI)
        if not isinstance(model, str) or not isinstance(base_url, str):
            # Validation will report the wrong type. Prices of 0 avoid further errors about prices.
            return dict.fromkeys(_PRICES, 0.0) | {"max_calls": None} | dict(section)
        if base_url == SERVICE and model != RUBRIC:
            raise ValueError(
                f"`base_url: {SERVICE}` requires `model: {RUBRIC}`; OpenAI's address is {OPENAI}"
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
                f"the price of this model at this address is unknown; set {' and '.join(missing)} "
                f"(models with known prices at {OPENAI}, as of {AS_OF}: {', '.join(AT_OPENAI)})"
            )
        free = all(filled[name] == 0 for name in _PRICES)
        return {"max_calls": None if free else MAX_PAID_CALLS} | filled

    @field_validator("base_url")
    @classmethod
    def _one_spelling(cls, text: str) -> str:
        return text.rstrip("/")

    # Messages must not contain values, because `api_key_env` and `base_url` may contain secrets.
    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env):
            raise ValueError("`api_key_env` must be the name of an environment variable")
        if self.base_url == SERVICE:
            return self
        if not re.fullmatch(_ADDRESS, self.base_url):
            raise ValueError(
                "`base_url` must be `service`, or an http(s) address without user, password, query "
                "or fragment"
            )
        return self
