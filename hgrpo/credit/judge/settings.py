"""What a method's `credit:` section may say beside `kind: judge`."""

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, model_validator

from hgrpo.config.strict import Strict

SERVICE = "service"

Variant = Literal["trajectory", "group"]
Normalisation = Literal["centred", "share"]


class Settings(Strict):
    """The judge: who is asked, how, at what price, and when to give up.

    Caps and counts belong to one process, that is to one run of one round. `max_calls: 0` allows
    nothing beyond the cache; null lifts a cap.
    """

    # Whoever puts a key where its name belongs should not read it again in an error message.
    model_config = ConfigDict(hide_input_in_errors=True)

    model: str = Field(min_length=1, description="`offline-rubric` is hgrpo.cli.judge_server")
    base_url: str = Field(
        "https://api.openai.com/v1", description="`service`: an offline judge of its own"
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
    concurrency: int = Field(8, gt=0, description="calls under way at once")
    max_calls: int | None = Field(5000, ge=0, description="requests sent, retries included")
    max_dollars: float | None = Field(5.0, ge=0)
    dollars_per_million_input: float = Field(ge=0, description="price of a million input tokens")
    dollars_per_million_output: float = Field(ge=0, description="price of a million output tokens")
    thinking_tokens: int = Field(
        0, ge=0, description="room in the answer for a model that thinks before it answers"
    )
    fallback_limit: float = Field(
        0.1, ge=0, le=1, description="share of trajectories without a judgement that fails a run"
    )

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
