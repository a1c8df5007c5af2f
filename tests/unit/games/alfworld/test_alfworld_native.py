"""The native engine on a household small enough to know every answer."""

import random
from copy import copy

import pytest
from household import household
from hypothesis import given, settings
from hypothesis import strategies as st

from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.facts import Facts, Vocabulary
from hgrpo.games.alfworld.matching import FormulaCompiler, Slots
from hgrpo.games.alfworld.native import CompiledGame, NativeGame
from hgrpo.games.alfworld.text import display_names

ELSEWHERE = [f"go to {name} 1" for name in ("desk", "drawer", "fridge", "microwave", "shelf")]


def started(**changes) -> NativeGame:
    play = NativeGame(CompiledGame(household(**changes)))
    play.reset()
    return play


def accepts(play: NativeGame, command: str) -> bool:
    """Whether `command` is admissible; found by carrying it out on a copy of the play."""
    other = copy(play)
    other.facts = play.facts.copy()
    return other.act(command)[1]


def test_opening_text_lists_receptacles_in_the_order_of_their_ids():
    play = NativeGame(CompiledGame(household()))
    assert play.reset() == (
        "-= Welcome to TextWorld, ALFRED! =-\n\n"
        "You are in the middle of a room. Looking quickly around you, you see a desk 1, "
        "a drawer 1, a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.\n\n"
        "Your task is to: put a mug on desk."
    )
    assert not play.won


def test_commands_of_every_place_and_state():
    play = started()
    everywhere = [*ELSEWHERE, "go to sinkbasin 1", "help", "inventory", "look"]
    assert play.admissible_commands() == everywhere
    # `look` binds the start's spot, where nothing stands.
    assert play.step("look") == (
        "You are in the middle of a room. Looking quickly around you, you see nothing."
    )
    assert play.step("go to shelf 1") == (
        "You arrive at shelf 1. On the shelf 1, you see a mug 2, and a mug 1."
    )
    # The drawer is at the same spot: no way to go there, and it can be opened from here.
    assert play.admissible_commands() == [
        "examine drawer 1",
        "examine shelf 1",
        "go to desk 1",
        "go to fridge 1",
        "go to microwave 1",
        "go to sinkbasin 1",
        "help",
        "inventory",
        "look",
        "open drawer 1",
        "take mug 1 from shelf 1",
        "take mug 2 from shelf 1",
    ]
    assert play.step("open drawer 1") == (
        "You open the drawer 1. The drawer 1 is open. In it, you see a pen 1."
    )
    assert "take pen 1 from drawer 1" in play.admissible_commands()
    assert play.step("close drawer 1") == "You close the drawer 1."
    assert play.step("examine drawer 1") == "The drawer 1 is closed."
    assert play.step("take pen 1 from drawer 1") == "Nothing happens."


def test_taking_changing_and_putting_until_won():
    play = started(goal="heat")
    answers = [
        play.step(command)
        for command in [
            "go to shelf 1",
            "take mug 1 from shelf 1",
            "inventory",
            "examine mug 1",
            "go to fridge 1",
            "cool mug 1 with fridge 1",
            "examine mug 1",
            "go to sinkbasin 1",
            "clean mug 1 with sinkbasin 1",
            "examine mug 1",
            "go to microwave 1",
            "heat mug 1 with microwave 1",
            "examine mug 1",
            "go to desk 1",
            "use desklamp 1",
        ]
    ]
    assert answers[1:] == [
        "You pick up the mug 1 from the shelf 1.",
        "You are carrying: a mug 1.",
        "There's nothing special about mug 1.",
        "You arrive at fridge 1. The fridge 1 is closed.",
        "You cool the mug 1 using the fridge 1.",
        "This is a cold mug 1.",
        "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.",
        "You clean the mug 1 using the sinkbasin 1.",
        "This is a cool and clean mug 1.",
        "You arrive at microwave 1. The microwave 1 is closed.",
        "You heat the mug 1 using the microwave 1.",
        "This is a hot and clean mug 1.",
        "You arrive at desk 1. On the desk 1, you see a desklamp 1.",
        "You turn on the desklamp 1.",
    ]
    assert not play.won
    assert play.step("move mug 1 to desk 1") == "You move the mug 1 to the desk 1."
    assert play.won


def test_a_thing_moved_within_a_spot_is_seen_next_to_it():
    # Once taken from the shelf, "not in the shelf" stays a fact; the official text lists it.
    play = started()
    for command in (
        "go to shelf 1",
        "open drawer 1",
        "take mug 1 from shelf 1",
        "move mug 1 to drawer 1",
    ):
        play.step(command)
    assert play.step("look") == (
        "You are facing the drawer 1, and shelf 1. Next to it, you see a mug 1."
    )


@pytest.mark.parametrize(
    "command",
    ["", "Look", "go to shelf 2", "go  to shelf 1", "take mug 1 from desk 1", "look\nlook"],
)
def test_what_is_not_admissible_changes_nothing(command):
    play = started()
    play.step("go to shelf 1")
    before = (play.facts.copy().sets, play.admissible_commands())
    assert play.act(command) == ("Nothing happens.", False)
    assert (play.facts.sets, play.admissible_commands()) == before


def test_plays_of_one_game_share_nothing():
    game = CompiledGame(household())
    one, other = NativeGame(game), NativeGame(game)
    opening = one.reset(), other.reset()
    one.step("go to shelf 1")
    one.step("take mug 1 from shelf 1")
    assert other.step("go to shelf 1").endswith("you see a mug 2, and a mug 1.")
    assert one.reset() == opening[0]
    assert one.step("go to shelf 1").endswith("you see a mug 2, and a mug 1.")


@given(st.integers(0, 2**32), st.sampled_from(["move", "put"]))
@settings(max_examples=12)
def test_one_command_is_admissible_exactly_when_it_is_listed(seed, language):
    rng = random.Random(seed)
    play = started(language=language)
    seen = set()
    for _ in range(40):
        listed = play.admissible_commands()
        assert listed == sorted(set(listed))
        seen.update(listed)
        assert {command for command in seen if accepts(play, command)} == set(listed)
        assert play.step(rng.choice(listed)) != "Nothing happens."


def test_actions_with_one_text_run_in_the_planners_order():
    data = household()
    data["grammar"] = data["grammar"].replace('"close {r}"', '"examine {r}"')
    play = NativeGame(CompiledGame(data))
    play.reset()
    play.step("go to fridge 1")
    play.step("open fridge 1")
    assert play.admissible_commands().count("examine fridge 1") == 1
    assert play.step("examine fridge 1") == "The fridge 1 is open. In it, you see nothing."


def test_templates_that_list_things_are_found_by_their_text():
    data = household()
    template = "inventory [{o.name | holds(a:agent, o:object)}]"
    data["grammar"] = data["grammar"].replace(
        'template :: "inventory"', f'template :: "{template}"'
    )
    play = NativeGame(CompiledGame(data))
    play.reset()
    assert play.step("inventory nothing") == "You are not carrying anything."
    play.step("go to shelf 1")
    play.step("take mug 2 from shelf 1")
    assert play.step("inventory nothing") == "Nothing happens."
    assert play.step("inventory mug 2") == "You are carrying: a mug 2."


def test_display_names_count_down_and_spell_basins():
    basin = "sink_bar_1_bar_sinkbasin"
    ids = ["mug_bar_b", "mug_bar_a", basin, "sink_bar_1", "loc_bar__minus_3", "a1"]
    assert display_names(ids) == {
        "a1": "a1 ",
        "loc_bar__minus_3": "loc 1",
        "mug_bar_a": "mug 2",
        "mug_bar_b": "mug 1",
        "sink_bar_1": "sink 1",
        basin: "sinkbasin 1",
    }


# Queries against brute force.

DOMAIN = pddl.Domain(
    types={"thing": "object", "place": "object"},
    predicates={"p": ("object",), "q": ("thing", "place"), "s": ("thing", "thing"), "t": ()},
    constants=(),
    actions=(),
)
KINDS = {"a": "thing", "b": "thing", "x": "place", "y": "place"}
VARIABLES = {"?a": "thing", "?x": "place"}


def terms(kind: str, names: dict[str, str]) -> list[str]:
    return [n for n, k in (names | {"b": "thing", "y": "place"}).items() if kind in (k, "object")]


def for_all(variables: tuple, part: pddl.Formula) -> pddl.Formula:
    return pddl.Not(pddl.Exists(variables, pddl.Not(part)))


def formulas(names: dict[str, str], depth: int) -> st.SearchStrategy:
    atoms = [
        st.tuples(*(st.sampled_from(terms(kind, names)) for kind in kinds)).map(
            lambda args, name=name: pddl.Atom(name, args)
        )
        for name, kinds in (*DOMAIN.predicates.items(), ("=", ("object", "object")))
    ]
    if depth == 0:
        return st.one_of(atoms)
    inner = formulas(names, depth - 1)
    variable = st.sampled_from([(f"?v{depth}", "thing"), (f"?v{depth}", "place"), ("?a", "thing")])
    quantified = variable.flatmap(
        lambda v: st.tuples(
            st.sampled_from([pddl.Exists, for_all]), formulas(names | {v[0]: v[1]}, depth - 1)
        ).map(lambda pair: pair[0]((v,), pair[1]))
    )
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        *atoms, inner.map(pddl.Not), several.map(pddl.And), several.map(pddl.Or), quantified
    )


def truth(formula: pddl.Formula, facts: set, env: dict[str, str]) -> bool:
    if isinstance(formula, pddl.Atom):
        args = tuple(env.get(arg, arg) for arg in formula.args)
        return (
            args[0] == args[1] if formula.predicate == "=" else (formula.predicate, *args) in facts
        )
    if isinstance(formula, pddl.Not):
        return not truth(formula.part, facts, env)
    if isinstance(formula, pddl.And):
        return all(truth(part, facts, env) for part in formula.parts)
    if isinstance(formula, pddl.Or):
        return any(truth(part, facts, env) for part in formula.parts)
    ((name, kind),) = formula.variables
    return any(truth(formula.part, facts, env | {name: n}) for n, k in KINDS.items() if k == kind)


ATOMS = [
    ("t",), *[("p", n) for n in KINDS], *[("s", m, n) for m in "ab" for n in "ab"],
    *[("q", m, n) for m in "ab" for n in "xy"],
]  # fmt: skip


@given(formulas(VARIABLES, 3), st.sets(st.sampled_from(ATOMS)), st.booleans())
@settings(max_examples=100)
def test_compiled_formulas_agree_with_brute_force(formula, atoms, given_place):
    number = {name: i for i, name in enumerate(sorted(KINDS))}
    vocabulary, slots = Vocabulary(), Slots()
    for name in DOMAIN.predicates:
        vocabulary.predicate(name)
    scope = {name: slots.variable(name) for name in VARIABLES}
    solutions = []
    compiler = FormulaCompiler(slots, vocabulary, {}, DOMAIN)
    bound = {"?x"} if given_place else set()
    steps = [
        compiler.run(clause, bound, lambda _, frame: bool(solutions.append(tuple(frame[:2]))))
        for clause in compiler.clauses(formula, scope, VARIABLES)
    ]
    rows = {vocabulary.predicate(name): [] for name in DOMAIN.predicates}
    for name, *args in atoms:
        fact = tuple(number[arg] for arg in args)
        rows[vocabulary.predicate(name)].append(fact[0] if len(fact) == 1 else fact)
    for name, listing in vocabulary.predicates.items():
        if name.startswith("@"):
            rows[listing] = [number[n] for n, k in KINDS.items() if DOMAIN.is_a(k, name[1:])]
    facts = Facts(vocabulary, rows, set())
    frame = slots.frame(number)
    if given_place:
        frame[scope["?x"]] = number["y"]
    for step in steps:
        step(facts, frame)
    expected = {
        (number[a], number[x])
        for a in "ab"
        for x in ("y" if given_place else "xy")
        if truth(formula, atoms, {"?a": a, "?x": x})
    }
    assert set(solutions) == expected
