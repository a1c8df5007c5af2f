"""OpenAI's list prices, so that a method file only has to name a model.

All of these models accept a temperature and a strict JSON schema. Dated snapshots of a model may
cost more or less.
"""

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
