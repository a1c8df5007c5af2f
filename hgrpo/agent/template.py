"""Splits a chat template into the fixed texts between messages.

Sampled tokens are never rendered again, so a template must be append-only. To check this, trial
conversations are rendered and compared with the concatenation of fixed texts and messages.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hgrpo.errors import UserError, one_line
from hgrpo.games.user_path import user_text

_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token")
# Placeholder messages. They show where a template puts messages, as no template contains them.
_SYSTEM, _OBSERVATIONS, _REPLIES = (
    "the-system-says",
    ("first-seen", "then-seen"),
    ("first-done", "then-done"),
)
# Trial conversations: tested property -> (observations, replies).
_TRIALS = {
    "plain messages": (("a hall", "a door", "a coin"), ("go", "open door 1", "take coin")),
    "spaces and line ends around the messages": (
        (" a hall \n", "\n\na door", "\ta coin \t"),
        (" go\n", "open  door\n\n", " take "),
    ),
    "thoughts in the replies": (
        ("a hall", "a door", "a coin"),
        ("<think>\nwhere?\n</think>\n\ngo", "<think>why?</think>open", "take</think>coin"),
    ),
    "letters of all kinds": (
        ("Straße \uff21\ufb01", "e\u0301 {{ x }} {% y %}", "<b>&amp;</b>\r\n'q' \"r\""),
        ("Go NORTH", "ÖFFNE \\n", "naïve ½"),
    ),
    "many turns, and long ones": (
        tuple(f"hall {turn}. " + "A door leads on. " * 40 * (turn % 3) for turn in range(24)),
        tuple(f"go {turn}" + " and then on" * 20 * (turn % 2) for turn in range(24)),
    ),
}


@dataclass(frozen=True)
class Pieces:
    """The fixed texts of a chat template.

    A finished conversation has the order head, observation, ask, reply, answer, ..., reply, tail.

    Attributes:
        head: text before the first observation. With a system message, three texts: the text before
            the message, the message, and the text after it.
        ask: text after an observation and before the reply; rendered even if there is no reply yet.
        answer: text after a reply and before the next observation.
        tail: text after the last reply of a finished conversation.
    """

    head: tuple[str, ...]
    ask: str
    answer: str
    tail: str


# Maps a model family in configs/chat_templates to strings that all templates of this family have.
_STAND_INS = {
    "llama3": {"<|start_header_id|>"},
    "gemma": {"<start_of_turn>"},
    "qwen3": {"<|im_start|>", "</think>"},
}
# Errors that jinja2 can raise when it parses or renders a template. Possible causes are a mistake
# in the template, deep recursion, too much text, or an access that the sandbox rejects.
_MISTAKES = (
    *(TemplateError, ArithmeticError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)


class ChatTemplate:
    """The chat template in a model's folder; UserError if it is missing or cannot be parsed.

    The rendered text is that of `apply_chat_template` in transformers. The only exception is that
    templates cannot read the clock: prompts with the current date would not be reproducible.
    """

    def __init__(self, folder: Path):
        self.path, self.source, self._variables = _read(Path(folder))
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        # Replace the `tojson` of jinja2, which escapes characters for HTML.
        environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
        environment.globals["raise_exception"] = _refuse
        try:
            tree = environment.parse(self.source)
            self._template = environment.from_string(self.source)
        except _MISTAKES as error:
            raise UserError(f"{self.path}: not a chat template ({one_line(error)})") from None
        constants = {node.value for node in tree.find_all(nodes.Const)}
        texts = {node.data for node in tree.find_all(nodes.TemplateData)}
        self.literals = {text for text in constants | texts if isinstance(text, str)}

    @property
    def help(self) -> str:
        """Advice at the end of error messages on how to replace an unsupported template."""
        known = (k for k, marks in _STAND_INS.items() if all(m in self.source for m in marks))
        family = next(known, None)
        put = f"copy configs/chat_templates/{family}.jinja" if family else "write another template"
        instead = self.path.with_name("chat_template.jinja")
        return f"; {put} to {instead}; see docs/models.md, Chat templates that are refused"

    def render(
        self, observations: Sequence[str], replies: Sequence[str], system: str | None = None
    ) -> str:
        """Render a conversation as text; UserError if the template fails.

        If the last observation has no reply yet, the text ends where that reply would begin.
        """
        messages = [] if system is None else [{"role": "system", "content": system}]
        for index, text in enumerate(observations):
            messages.append({"role": "user", "content": text})
            if index < len(replies):
                messages.append({"role": "assistant", "content": replies[index]})
        values = {"messages": messages, "add_generation_prompt": len(replies) < len(observations)}
        try:
            return self._template.render(values, tools=None, documents=None, **self._variables)
        except _MISTAKES as error:
            raise UserError(
                f"{self.path}: the chat template cannot render a conversation ({one_line(error)})"
                f"{self.help}"
            ) from None

    def pieces(self, system: str | None = None) -> Pieces:
        """Extract the fixed texts; if `system` is None, the template chooses the system message.

        Raises UserError if the template does more than insert messages between fixed texts, e.g.
        trims messages, removes thoughts from earlier replies, or moves the system prompt.
        """
        text = self.render(_OBSERVATIONS, _REPLIES, None if system is None else _SYSTEM)
        marks = [] if system is None else [_SYSTEM]
        cut = []
        for mark in [*marks, _OBSERVATIONS[0], _REPLIES[0], _OBSERVATIONS[1], _REPLIES[1]]:
            before, separator, text = text.partition(mark)
            if not separator or mark in text:
                raise UserError(
                    f"{self.path}: the chat template must render every message exactly once "
                    f"and in order (looked for {mark!r}){self.help}"
                )
            cut.append(before)
        *head, ask, answer, again = cut
        if system is not None:
            head.insert(1, system)
        pieces = Pieces(tuple(head), ask, answer, text)
        if again != ask:
            raise UserError(
                f"{self.path}: the chat template puts {ask!r} before the first reply, but "
                f"{again!r} before the second; templates must be append-only{self.help}"
            )
        self._try(pieces, system)
        return pieces

    def _try(self, pieces: Pieces, system: str | None) -> None:
        for name, (observations, replies) in _TRIALS.items():
            for turns in range(1, len(observations) + 1):
                for answered in (turns - 1, turns):
                    messages = observations[:turns], replies[:answered]
                    expected = together(pieces, *messages)
                    rendered = self.render(*messages, system)
                    if rendered != expected:
                        at = first_difference(expected, rendered)
                        around = slice(max(0, at - 20), at + 20)
                        raise UserError(
                            f"{self.path}: the chat template is not append-only: with {name}, "
                            f"expected {expected[around]!r}, got {rendered[around]!r}{self.help}"
                        )


def together(pieces: Pieces, observations: Sequence[str], replies: Sequence[str]) -> str:
    """Concatenate the fixed texts and messages of a conversation."""
    text = "".join(pieces.head)
    for index, observation in enumerate(observations):
        text += (pieces.answer if index else "") + observation + pieces.ask
        text += replies[index] if index < len(replies) else ""
    return text + (pieces.tail if len(replies) == len(observations) else "")


class _Generation(Extension):
    """Jinja extension that ignores `{% generation %}` tags, which mark replies for loss masks."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def _read(folder: Path) -> tuple[Path, str, dict[str, str]]:
    """Return the template's path, its source, and its variables, such as `bos_token`."""
    path, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    settings = _json(folder / "special_tokens_map.json") | _json(config)
    if path.is_file():
        source = user_text(path)
    else:
        path, source = config, settings.get("chat_template")
        if isinstance(source, list):
            named = {each.get("name"): each.get("template") for each in source}
            source = named.get("default")
    if not isinstance(source, str):
        raise UserError(
            f"{folder}: no chat template in chat_template.jinja or under `chat_template` in "
            f"{config.name}; use a chat model, e.g. one whose name ends in -Instruct"
        )
    tokens = {name: settings.get(name) for name in _NAMED_TOKENS}
    tokens = {n: t.get("content") if isinstance(t, Mapping) else t for n, t in tokens.items()}
    return path, source, {name: token for name, token in tokens.items() if token is not None}


def _json(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        loaded = json.loads(user_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: the file is damaged ({error})") from None
    return loaded if isinstance(loaded, dict) else {}


def _refuse(message: str) -> None:
    raise TemplateError(message)


def first_difference(one: Sequence, other: Sequence) -> int:
    """The first index at which two sequences differ, or the length of the shorter one."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
