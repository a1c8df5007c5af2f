"""The arms of a study as the report shows them: order, label, colour, marker."""

from collections.abc import Mapping
from dataclasses import dataclass

from hgrpo.errors import UserError

# After Okabe and Ito: apart for the common kinds of colour blindness, readable on light and dark.
UNTRAINED_COLOUR = "#80868f"
REFERENCE_COLOUR = "#3a86c8"
COLOURS = ("#e07b00", "#009e73", "#c864a0", "#b8a000", "#d5482f", "#4fb3e8", "#8c6bd1", "#8a6a4f")
MARKERS = ("s", "^", "D", "v", "P", "X", "*", "<")


@dataclass(frozen=True)
class Arm:
    """One method of the study, as drawn everywhere."""

    name: str
    label: str
    trained: bool
    credit: str
    colour: str
    marker: str


@dataclass(frozen=True)
class Arms:
    """All arms in display order, by name, and which of them is the reference."""

    by_name: Mapping[str, Arm]
    reference: str

    def __getitem__(self, name: str) -> Arm:
        return self.by_name[name]

    @property
    def names(self) -> list[str]:
        """Every arm: the untrained one, the reference, then the others as the config has them."""
        return list(self.by_name)

    @property
    def trained(self) -> list[str]:
        """The arms that reinforcement learning changed."""
        return [name for name, arm in self.by_name.items() if arm.trained]

    @property
    def untrained(self) -> str | None:
        """The supervised policy's arm, if the study has one."""
        return next((name for name, arm in self.by_name.items() if not arm.trained), None)

    def label(self, name: str) -> str:
        """What people read."""
        return self.by_name[name].label


def read_arms(config: Mapping) -> Arms:
    """Arms from the report stage's settings: `methods` (name -> label, train, credit) and so on.

    Raises:
        UserError: a key is missing, or more than one arm is untrained.
    """
    for key in ("methods", "reference"):
        if key not in config:
            raise UserError(f"--config: key {key!r} is missing")
    colours, markers = iter(_repeat(COLOURS)), iter(_repeat(MARKERS))
    arms = {}
    for name, method in sorted(config["methods"].items(), key=lambda item: _rank(item, config)):
        trained = bool(method.get("train", True))
        if not trained:
            colour, marker = UNTRAINED_COLOUR, "o"
        elif name == config["reference"]:
            colour, marker = REFERENCE_COLOUR, "o"
        else:
            colour, marker = next(colours), next(markers)
        credit = (method.get("credit") or {}).get("kind", "")
        arms[name] = Arm(name, method.get("label") or name, trained, credit, colour, marker)
    untrained = [name for name, arm in arms.items() if not arm.trained]
    if len(untrained) > 1:
        raise UserError(f"--config: more than one untrained arm: {', '.join(untrained)}")
    return Arms(arms, config["reference"])


def _rank(item: tuple[str, Mapping], config: Mapping) -> int:
    name, method = item
    return 0 if not method.get("train", True) else 1 if name == config["reference"] else 2


def _repeat(values: tuple):
    while True:
        yield from values
