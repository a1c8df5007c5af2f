"""Sentences about arms that are not what their names promise."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from hgrpo.report.arms import Arms
from hgrpo.report.words import listing


def arm_cautions(arms: Arms, rounds: Sequence[Mapping]) -> list[str]:
    """Arms whose turn credit had no effect, and arms whose final weights are equal.

    `rounds` are the contents of every round's summary.json.
    """
    played = Counter(row["method"] for row in rounds)
    idle = Counter((row["method"], row.get("credit_caution")) for row in rounds)
    cautions = [
        f"{arms.label(name)}: {text} ({number} of {played[name]} rounds)."
        for (name, text), number in idle.items()
        if text
    ]
    last = {(row["seed"], row["method"]): row for row in sorted(rounds, key=lambda r: r["round"])}
    ends, equal = defaultdict(set), defaultdict(list)
    for (seed, name), row in last.items():
        ends[seed, row["policy"]].add(arms.label(name))
        if arms.untrained:
            ends[seed, row["parents"]["sft"]].add(arms.label(arms.untrained))
    for (seed, _), labels in ends.items():
        equal[tuple(sorted(labels))].append(str(seed))
    return cautions + [
        f"{listing(list(labels))} are one arm: their final weights are equal bit for bit (seed "
        f"{', '.join(seeds)})."
        for labels, seeds in equal.items()
        if len(labels) > 1
    ]
