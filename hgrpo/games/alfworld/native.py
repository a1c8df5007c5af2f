"""The native engine, which compiles a game file once and executes commands in microseconds.

Opening texts, feedback, admissible commands and wins are the same as in TextWorld 1.7 with
alfworld's wrapper, which renames entities.
"""

import json
import re
from collections.abc import Iterable
from copy import copy
from functools import lru_cache

from hgrpo.errors import UserError
from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.actions import Action, Arguments
from hgrpo.games.alfworld.facts import Facts, Vocabulary
from hgrpo.games.alfworld.grammar import Grammar, RuleCall, parse_grammar, parse_symbols
from hgrpo.games.alfworld.matching import FormulaCompiler, Slots, Step, succeed, type_predicate
from hgrpo.games.alfworld.potential import View
from hgrpo.games.alfworld.text import NEGATION, Entities, TextCompiler, display_names

NOTHING = "Nothing happens."
_MEMO = 20_000
_TASK = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*("(?:[^"\\]|\\.)*")\s*\}\s*\]\s*,?')


class Program:
    """A compiled domain and grammar, shared by all games in which these two texts are equal.

    Attributes:
        fluent: indices of the predicates that actions change.
        order: indices of the actions, in the planner's order (by `Action.conditions`, then by
            name). If several actions have the same command, the first one is executed.

    Raises:
        UserError: an action has no text, or a text uses a predicate that this engine does not
            support in texts. Neither occurs in ALFRED.
    """

    def __init__(self, domain: pddl.Domain, grammar_text: str, sizes: dict[str, int]) -> None:
        self.domain = domain
        self.sizes = sizes
        self._goals: dict[pddl.Formula, tuple[Slots, list[Step]]] = {}
        self.vocabulary = Vocabulary()
        grammar = parse_grammar(grammar_text)
        for name in domain.predicates:
            self.vocabulary.predicate(name)
        effects = [(schema, effect) for schema in domain.actions for effect in schema.effects]
        self._conditional = {e.atom.predicate for _, e in effects if e.condition is not None}
        changing = {effect.atom.predicate for _, effect in effects}
        # An action may delete facts of these predicates that its precondition does not require.
        self._unsure = {
            effect.atom.predicate
            for schema, effect in effects
            if effect.negated and not _requires(schema.precondition, effect.atom)
        }
        self.negations: dict[int, int] = {}
        self.actions: list[Action] = []
        for schema in domain.actions:
            if schema.name not in grammar.actions:
                raise UserError(f"the grammar has no text for action {schema.name!r}")
            text = grammar.actions[schema.name]
            self.actions.append(Action(schema, text, self._texts(grammar), changing))
        writers = self._texts(grammar)
        self.intro = writers.symbols((RuleCall("intro"),), {})
        self.intro_slots = writers.slots
        for action in self.actions:
            compiler = FormulaCompiler(action.slots, self.vocabulary, sizes, domain)
            action.finish(compiler, self.negations)
        self.fluent = set(map(self.vocabulary.predicate, changing))
        self.fluent |= {self.negations[number] for number in self.fluent & set(self.negations)}
        ranks = [
            (action.conditions, action.schema.name, i) for i, action in enumerate(self.actions)
        ]
        self.order = [i for _, _, i in sorted(ranks)]

    def goal(self, formula: pddl.Formula) -> tuple[Slots, list[Step]]:
        """Compile a goal; return the frame layout, and the steps that test the goal.

        The goal is satisfied if at least one step returns True.
        """
        if formula not in self._goals:
            slots = Slots()
            compiler = FormulaCompiler(slots, self.vocabulary, self.sizes, self.domain)
            self._goals[formula] = slots, compiler.find(formula, {}, {}, succeed)
        return self._goals[formula]

    def _texts(self, grammar: Grammar) -> TextCompiler:
        return TextCompiler(grammar, Slots(), self.vocabulary, self.domain, self._text_predicate)

    def _text_predicate(self, name: str) -> int:
        """Index of a predicate that a text uses. Negated predicates are added to `negations`."""
        base = name.removeprefix(NEGATION)
        if base in self._conditional or (base != name and base in self._unsure):
            raise UserError(f"a text uses {name!r}, which this engine does not support")
        number = self.vocabulary.predicate(base)
        if base == name:
            return number
        self.negations[number] = self.vocabulary.predicate(name)
        return self.negations[number]


def _requires(formula: pddl.Formula, atom: pddl.Atom) -> bool:
    if isinstance(formula, pddl.And):
        return any(_requires(part, atom) for part in formula.parts)
    return formula == atom


_domain = lru_cache(maxsize=16)(pddl.parse_domain)
_programs: dict[tuple[str, str], Program] = {}


def _program(domain_text: str, grammar_text: str, sizes: dict[str, int]) -> Program:
    key = (domain_text, grammar_text)
    if key not in _programs:
        _programs[key] = Program(_domain(domain_text), grammar_text, sizes)
    return _programs[key]


class CompiledGame:
    """A compiled game, shared by any number of `NativeGame` episodes.

    Args:
        data: the game file's mapping with `pddl_domain`, `grammar` and `pddl_problem`.

    Raises:
        UserError: the PDDL or the grammar is malformed. The message does not contain the file name,
            so callers should add it.
    """

    def __init__(self, data: dict[str, str]) -> None:
        domain = _domain(data["pddl_domain"])
        problem = pddl.parse_problem(data["pddl_problem"], domain)
        rows: dict[str, list[tuple[str, ...]]] = {}
        for atom in problem.init:
            rows.setdefault(atom[0], []).append(atom[1:])
        task, grammar_text = _split_task(data["grammar"])
        sizes = {name: len(rows.get(name, ())) for name in domain.predicates}
        self.program = program = _program(data["pddl_domain"], grammar_text, sizes)
        ids = sorted(problem.objects)
        self.goal_formula = problem.goal
        self.number = {name: i for i, name in enumerate(ids)}
        self.entities = Entities(_names(problem, rows.values()), ids, task)
        slots, self._goal = program.goal(problem.goal)
        self._goal_frame = slots.frame(self.number)
        self.start = Facts(program.vocabulary, self._numbers(rows, problem.objects), program.fluent)
        self.frames = [action.slots.frame(self.number) for action in program.actions]
        self.intro = program.intro(
            self.start, program.intro_slots.frame(self.number), self.entities
        )
        self._texts: list[dict[object, str]] = [{} for _ in program.actions]
        self._listed: list[dict[tuple, dict[str, Arguments]]] = [{} for _ in program.actions]

    def _numbers(
        self, rows: dict[str, list[tuple[str, ...]]], objects: dict[str, str]
    ) -> dict[int, list]:
        program, number = self.program, self.number
        facts: dict[int, list] = {}
        for name, atoms in rows.items():
            bare = len(atoms[0]) == 1
            facts[program.vocabulary.predicate(name)] = [
                number[atom[0]] if bare else tuple([number[arg] for arg in atom]) for atom in atoms
            ]
        for name, listing in program.vocabulary.predicates.items():
            if name.startswith(type_predicate("")):
                kind = name.removeprefix(type_predicate(""))
                is_a = program.domain.is_a
                facts[listing] = [number[n] for n, k in objects.items() if is_a(k, kind)]
        return facts

    def view(self, facts: Facts) -> View:
        """Return a function that maps a predicate's name to its facts (none for unknown names)."""
        number = self.program.vocabulary.predicates
        return lambda name: facts.sets[number[name]] if name in number else set()

    def is_won(self, facts: Facts) -> bool:
        frame = self._goal_frame[:]
        return any(step(facts, frame) for step in self._goal)

    def _command(self, facts: Facts, index: int, args: Arguments) -> str:
        action, texts = self.program.actions[index], self._texts[index]
        key = None if action.named is None else action.named(args)
        if key is not None and key in texts:
            return texts[key]
        frame = self.frames[index][:]
        frame[: action.arity] = args
        text = action.command(facts, frame, self.entities)
        if key is not None:
            texts[key] = text
        return text

    def commands(self, facts: Facts, index: int) -> dict[str, Arguments]:
        """Map each applicable command to the smallest argument tuple that yields the command."""
        action = self.program.actions[index]
        memo, key = self._listed[index], None
        if action.watches is not None:
            key = tuple([facts.index[number].get((), ()) for number in action.watches])
            if key in memo:
                return memo[key]
        applicable = sorted(action.applicable(facts, self.frames[index][:]), reverse=True)
        commands = {self._command(facts, index, args): args for args in applicable}
        if key is not None:
            if len(memo) >= _MEMO:
                memo.clear()
            memo[key] = commands
        return commands


def _names(problem: pddl.Problem, rows: Iterable[list[tuple[str, ...]]]) -> list[str]:
    """Display names in the order of the ids.

    An entity that does not occur in any fact is displayed as its id.
    """
    used = {name for facts in rows for fact in facts for name in fact}
    used |= {name for fact in problem.numeric if fact[0] != "total-cost" for name in fact[1:-1]}
    names = display_names(used)
    return [names.get(name, name) for name in sorted(problem.objects)]


def _split_task(grammar_text: str) -> tuple[str, str]:
    """Split a grammar into its task sentence and the rest.

    Return ("", whole grammar) unless there is exactly one plain task sentence.
    """
    match = _TASK.search(grammar_text)
    if match is not None and len(_TASK.findall(grammar_text)) == 1:
        symbols = parse_symbols(json.loads(match[1]))
        if all(isinstance(symbol, str) for symbol in symbols):
            return "".join(symbols), grammar_text[: match.start()] + grammar_text[match.end() :]
    return "", grammar_text


class NativeGame:
    """One episode of a compiled game. `won` is True if the goal is satisfied."""

    def __init__(self, game: CompiledGame) -> None:
        self.game = game
        self.reset()

    def reset(self) -> str:
        """Restart the episode and return the opening text."""
        self.facts = self.game.start.copy()
        self.won = self.game.is_won(self.facts)
        self._listed: dict[int, dict[str, Arguments]] = {}
        return self.game.intro

    def fork(self) -> "NativeGame":
        twin = copy(self)
        twin.facts, twin._listed = self.facts.copy(), self._listed.copy()
        return twin

    def step(self, command: str) -> str:
        """Execute `command` and return the feedback."""
        return self.act(command)[0]

    def act(self, command: str) -> tuple[str, bool]:
        """Execute `command`; return the feedback and whether the command was admissible."""
        game, facts, command = self.game, self.facts, command.strip()
        # If several actions have this command, the first one is executed, as in the planner.
        index = next((i for i in game.program.order if command in self._commands(i)), None)
        if index is None:
            return NOTHING, False
        action = game.program.actions[index]
        frame = game.frames[index][:]
        frame[: action.arity] = self._commands(index)[command]
        action.apply(facts, frame)
        self._listed.clear()
        self.won = game.is_won(facts)
        return action.feedback(facts, frame, game.entities), True

    def admissible_commands(self) -> list[str]:
        """All applicable commands, sorted and without duplicates."""
        return sorted(set().union(*map(self._commands, self.game.program.order)))

    def _commands(self, index: int) -> dict[str, Arguments]:
        if index not in self._listed:
            self._listed[index] = self.game.commands(self.facts, index)
        return self._listed[index]
