"""docs/keys.md: it is what the code says, and says what every key means."""

from typing import Annotated, Literal

import keys_page
import pytest
from pydantic import BaseModel, Field, create_model

from hgrpo.credit.kinds import CreditConfig


def test_the_page_in_the_tree_is_that_of_the_code(project):
    assert (project / "docs/keys.md").read_text(encoding="utf-8") == keys_page.page(), (
        "run `make schema`"
    )


def test_every_key_has_a_meaning():
    sections = keys_page.sections()
    silent = [
        f"{section.model.__module__}.{section.model.__name__}.{name}"
        for section in sections
        for name, field in section.model.model_fields.items()
        if not field.description
    ]
    assert silent == []
    assert {section.file for section in sections} >= {
        "Study",
        "Method",
        "Model",
        "Environment alfworld",
    }


@pytest.mark.parametrize(
    ("kind", "field", "words", "default"),
    [
        (int, Field(gt=0, description="it"), "whole number from 1", "required"),
        (float, Field(0.5, gt=0, lt=1, description="it"), "number above 0, below 1", "`0.5`"),
        (float | None, Field(None, ge=0, description="it"), "number from 0, or `null`", "`null`"),
        (bool, Field(True, description="it"), "true or false", "`true`"),
        (str, Field(description="text; default: the other"), "text", "see meaning"),
        (
            tuple[Literal["a", "b", "c"], ...],
            Field(("a", "b", "c"), description="it"),
            "list: one of `a`, `b`, `c`",
            "all of them",
        ),
        (
            list[Annotated[int, Field(ge=0)]],
            Field([11], description="it"),
            "list: whole number from 0",
            "`[11]`",
        ),
        (dict[str, int], Field(default_factory=dict, description="it"), "section", "none"),
        (
            CreditConfig,
            Field(default_factory=CreditConfig, description="it"),
            "section",
            '`kind: "flat"`',
        ),
    ],
)
def test_types_and_defaults_in_words(kind, field, words, default):
    model: type[BaseModel] = create_model("Model", key=(kind, field))
    assert keys_page.described(model.model_fields["key"]) == [words, default, field.description]
