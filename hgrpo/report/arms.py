"""Order, labels, colours, markers and line styles of a study's arms in the report."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.colors import LinearSegmentedColormap, to_hex

from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.settings import CreditSettings
from hgrpo.errors import UserError
from hgrpo.evaluation.designs import alpha_sweep

# Okabe-Ito palette, which is safe for colour-blind readers on light and dark pages.
UNTRAINED_COLOUR = "#80868f"
REFERENCE_COLOUR = "#3a86c8"
COLOURS = ("#e07b00", "#009e73", "#c864a0", "#b8a000", "#d5482f", "#4fb3e8", "#8c6bd1", "#8a6a4f")
MARKERS = ("s", "^", "D", "v", "P", "X", "*", "<")
# Colours repeat after eight arms. A repeated colour has a different line style and marker.
LINES = ("-", "--", "-.")
# Colour map for the arms of an alpha sweep. Its colours are visible on light and dark pages.
BLEND = LinearSegmentedColormap.from_list(
    "alpha", ["#8a5cc9", "#3a86c8", "#17a08a", "#7f9f1f", "#c98f00"]
)


@dataclass(frozen=True)
class Arm:
    """One method of the study, with its style in all figures and tables."""

    name: str
    label: str
    trained: bool
    credit: CreditSettings
    colour: str
    marker: str
    line: str

    @property
    def look(self) -> dict[str, str]:
        """Keyword arguments for `Axes.plot`."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


@dataclass(frozen=True)
class Arms:
    """All arms of a study.

    Attributes:
        by_name: arms in display order.
        reference: name of the reference arm, which is not in `by_name` if it was not run.
        twins, mine: names of the A/A twins of the reference, and names of the user's own arms.
    """

    by_name: Mapping[str, Arm]
    reference: str
    twins: frozenset[str] = frozenset()
    mine: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Arm:
        return self.by_name[name]

    @property
    def names(self) -> list[str]:
        """All arms: the untrained one, the reference, then the others in the config's order."""
        return list(self.by_name)

    @property
    def trained(self) -> list[str]:
        return [name for name, arm in self.by_name.items() if arm.trained]

    @property
    def has_reference(self) -> bool:
        return self.reference in self.by_name

    @property
    def untrained(self) -> str | None:
        """The supervised policy's arm, if the study has one."""
        return next((name for name, arm in self.by_name.items() if not arm.trained), None)

    def with_figure(self, figure: str) -> list[str]:
        """The trained arms whose credit assigner lists this figure in its `figures`."""
        return [name for name in self.trained if figure in self.by_name[name].credit.figures]

    @property
    def fitted(self) -> list[str]:
        """The trained arms whose credit assigner learns between rounds."""
        return [name for name in self.trained if self.by_name[name].credit.fits]

    def is_control(self, name: str) -> bool:
        """Whether an arm is a control: it has altered or oracle credit, or is an A/A twin."""
        credit = self.by_name[name].credit
        known = credit.is_control or credit.correlation_with_oracle is not None
        return known or name in self.twins

    def label(self, name: str) -> str:
        """The label of an arm; for a reference that was not run, its name."""
        return self.by_name[name].label if name in self.by_name else name


def read_arms(config: Mapping) -> Arms:
    """Read the arms from the settings of `hgrpo.stages.comparison.comparison`.

    Raises UserError if `methods` or `reference` is missing, or if more than one arm is untrained.
    """
    for key in ("methods", "reference"):
        if key not in config:
            raise UserError(f"--config: missing key {key!r}")
    methods = {name: config["methods"][name] for name in config.get("order", config["methods"])}
    reference, sweep = config["reference"], alpha_sweep(methods)
    arms, others = {}, 0
    for name in sorted(methods, key=lambda name: (methods[name]["train"], name != reference)):
        method = methods[name]
        trained = method["train"]
        if not trained:
            colour, marker, line = UNTRAINED_COLOUR, "o", "-"
        elif name == reference:
            colour, marker, line = REFERENCE_COLOUR, "o", "-"
        else:
            colour, marker, line = _look(others)
            others += 1
        if name in sweep:
            colour, line = _blend_colour(sweep[name], sweep), "-"
        credit = CreditConfig(**method["credit"]).declared
        arms[name] = Arm(name, method["label"] or name, trained, credit, colour, marker, line)
    untrained = [name for name, arm in arms.items() if not arm.trained]
    if len(untrained) > 1:
        raise UserError(f"--config: more than one untrained arm: {', '.join(untrained)}")
    twins = {name for name in arms if _is_twin(methods[name], methods.get(reference))}
    return Arms(arms, reference, frozenset(twins), frozenset(config.get("mine", ())))


def _is_twin(method: Mapping, other: Mapping | None) -> bool:
    """Whether two arms differ only in their random numbers."""
    unread = dict.fromkeys(("name", "label", "stream"))
    alike = other is not None and {**method, **unread} == {**other, **unread}
    return alike and method.get("stream") != other.get("stream")


def _look(index: int) -> tuple[str, str, str]:
    """Colour, marker and line style of the arm at `index` in the list without the reference."""
    turn, place = divmod(index, len(COLOURS))
    return COLOURS[place], MARKERS[(place + turn) % len(MARKERS)], LINES[turn % len(LINES)]


def _blend_colour(alpha: float, sweep: Mapping[str, float]) -> str:
    low, high = min(sweep.values()), max(sweep.values())
    return to_hex(BLEND((alpha - low) / (high - low)))
