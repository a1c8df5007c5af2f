"""Cautions at the top of the report, e.g. about a weak SFT policy or ineffective turn credit."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd

from hgrpo.evaluation.cautions import dead_caution, far_from_expert, one_method, poor_expert
from hgrpo.report.arms import Arms
from hgrpo.report.inputs import Inputs
from hgrpo.report.tables import IMITATED
from hgrpo.report.words import listing

_CREDIT = {"credit", "alpha", "turn_norm"}
_MORE = 1.2
# Written by workflow_scripts/publish.py from docs/tables.
PUBLISHED = Path(__file__).with_name("published_spread.json")


def cautions(inputs: Inputs, scripted: pd.DataFrame) -> list[str]:
    """Cautions about the expert, the SFT policy, and the round with the most dead groups.

    `scripted` is from `tables.scripted_players`.
    """
    arms, table, logs = inputs.arms, inputs.comparison.methods, inputs.logs
    sft = table.loc[table["method"] == arms.untrained, ["success", "mean_return"]]
    expert = scripted.loc[scripted["label"] == IMITATED, ["success", "score"]]
    logged = logs.dropna(subset=["dead_groups", "n_groups", "success_rate"])
    rounds = sorted(
        logged.groupby(["round", "method"]),
        key=lambda each: -each[1]["dead_groups"].sum() / max(1, each[1]["n_groups"].sum()),
    )
    dead = [
        dead_caution(arms.label(method), number, rows.to_dict("records"))
        for (number, method), rows in rounds
    ]
    pairs = zip(sft.head(1).to_numpy(), expert.to_numpy(), strict=False)
    lines = [poor_expert(rate) for rate in expert["success"]]
    lines += [far_from_expert(*pair) for pair in pairs] + list(filter(None, dead))[:1]
    return list(filter(None, lines))


def arm_cautions(arms: Arms, rounds: Sequence[Mapping]) -> list[str]:
    """Cautions about arms whose turn credit had no effect, and about arms with equal final weights.

    `rounds` are the contents of every round's summary.json.
    """
    played = Counter(row["method"] for row in rounds)
    idle = Counter((row["method"], row.get("credit_caution")) for row in rounds)
    named = defaultdict(list)
    for (name, text), number in idle.items():
        named[text].append(f"{arms.label(name)} ({number} of {played[name]} rounds)")
    cautions = [f"{listing(labels)}: {text}." for text, labels in named.items() if text]
    last = {(row["seed"], row["method"]): row for row in sorted(rounds, key=lambda r: r["round"])}
    ends, equal = defaultdict(set), defaultdict(list)
    for (seed, name), row in last.items():
        ends[seed, row["policy"]].add(arms.label(name))
        if arms.untrained:
            ends[seed, row["parents"]["sft"]].add(arms.label(arms.untrained))
    for (seed, _), labels in ends.items():
        equal[tuple(sorted(labels))].append(str(seed))
    return cautions + [
        f"{listing(list(labels))} are the same arm in seed {', '.join(seeds)}: their final weights "
        "are bit-identical."
        for labels, seeds in equal.items()
        if len(labels) > 1
    ]


def twin_cautions(folder: Path | None) -> list[str]:
    """One caution per pair of arms in twins.csv; empty before `credit_agreement` has run."""
    path = folder / "twins.csv" if folder else None
    if path is None or not path.is_file():
        return []
    return [one_method(row) for row in pd.read_csv(path).to_dict("records")]


def confounded(arms: Arms, snapshots: Sequence[Mapping]) -> list[str]:
    """Caution about arms that differ from the reference in credit and also in other settings.

    `snapshots` are the contents of every round's config.yaml.
    """
    settings = {row["method"]["name"]: row for row in snapshots}
    reference, differ = settings.pop(arms.reference, None), defaultdict(list)
    for name, row in settings.items() if reference else ():
        method, other = row["method"], reference["method"]
        changed = {key for key, value in method.items() if value != other.get(key)}
        if not changed & _CREDIT:
            continue
        keys = list(changed - _CREDIT - {"name", "label", "stream", "training"})
        keys += [
            f"training.{key}"
            for key, value in row["training"].items()
            if value != reference["training"].get(key)
        ]
        differ[listing(sorted(keys))].append(arms.label(name))
    return [
        f"{listing(labels)} {'differs' if len(labels) == 1 else 'differ'} from "
        f"{arms.label(arms.reference)} not only in credit, but also in {keys}."
        for keys, labels in differ.items()
        if keys
    ]


def more_play(arms: Arms, rounds: Sequence[Mapping]) -> list[str]:
    """Caution about arms that played over 20 % more turns than the reference.

    Turns of continuations count as well. `rounds` are the contents of every round's summary.json.
    """
    turns: dict[str, Counter] = defaultdict(Counter)
    for row in rounds:
        turns[row["method"]][row["seed"]] += row.get("all_play", {}).get("replies", 0)
    reference = turns.pop(arms.reference, Counter())
    more = []
    for name, of_seed in turns.items():
        seeds = of_seed.keys() & reference.keys()
        base = sum(reference[seed] for seed in seeds)
        ratio = sum(of_seed[seed] for seed in seeds) / base if base else 1.0
        if ratio > _MORE:
            more.append(f"{arms.label(name)} ({ratio:.2g} times)")
    return [f"{listing(more)} played more turns than {arms.label(arms.reference)}."] if more else []


def published_spread(study: str, overridden: Collection[str], reference: str) -> str:
    """A sentence on the standard deviation over the study's published seeds.

    Empty if the study has no published seeds, or if those seeds were run with other settings.
    """
    row = json.loads(PUBLISHED.read_text(encoding="utf-8")).get(study)
    if row is None or not set(overridden) <= {"seeds", "methods", "mine", "description"}:
        return ""
    read = "after the last round " if row["endpoint"] == "last_round" else ""
    return (
        f"Over the {row['seeds']} published seeds of this study, a single seed's difference from "
        f"{reference} {read}has a standard deviation of {100 * row['deviation']:.1f} points."
    )
