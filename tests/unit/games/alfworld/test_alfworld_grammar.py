"""The grammar is parsed, and what is not in use is refused, never run."""

import pytest
from household import household

from hgrpo.errors import UserError
from hgrpo.games.alfworld.gamefile import compile_game
from hgrpo.games.alfworld.grammar import (
    Alternative,
    Attribute,
    Each,
    Literal,
    RuleCall,
    parse_grammar,
    parse_query,
    parse_symbols,
)
from hgrpo.games.alfworld.native import CompiledGame, NativeGame

NAME = ((Attribute("o", "name"),),)
INSIDE = (Literal("inreceptacle", (("o", "object"), ("r", "receptacle"))),)


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("", ()),
        ("You see it.", ("You see it.",)),
        ("#a.feedback#, #over(o, r)#", (RuleCall("a.feedback"), ", ", RuleCall("over(o, r)"))),
        ("{o.name}", (Each(NAME, ()),)),
        ("{o}", (Each(NAME, ()),)),
        (
            "a [{o.name | inreceptacle(o:object, r:receptacle)}].",
            ("a ", Each(NAME, INSIDE, listed=True), "."),
        ),
        ("{#over(o)# | p(o)}", (Each(RuleCall("over(o)"), (Literal("p", (("o", "o"),)),)),)),
        (
            "{o.indefinite + ' ' + o.id}",
            (Each(((Attribute("o", "indefinite"), " ", Attribute("o", "id")),), ()),),
        ),
        (
            "{o.name or o.definite}",
            (Each(((Attribute("o", "name"),), (Attribute("o", "definite"),)), ()),),
        ),
        # The official parser drops white space before the first symbol, and what follows a `;`.
        ("\n  Available:\n  look", ("Available:\n  look",)),
        ("{o.name}\n  tail", (Each(NAME, ()), "\n  tail")),
        ("before; after", ("before",)),
        ("{o.name} (in it)} tail", (Each(NAME, ()), " (in it)")),
    ],
)
def test_right_hand_sides(text, symbols):
    assert parse_symbols(text) == symbols


@pytest.mark.parametrize(
    "expression",
    [
        "{__import__('os').system('touch /tmp/hgrpo-was-here')}",
        "{o.__class__}",
        "{o.name.upper()}",
        "{open('x').read()}",
        "{o.name if o else o}",
        "{o.desc}",
        "[{o.name}",
    ],
)
def test_expressions_that_are_not_in_use_are_refused_by_name(expression):
    with pytest.raises(UserError, match=r"unsupported expression"):
        parse_symbols(f"You see {expression}")
    data = household()
    data["grammar"] = data["grammar"].replace("You close the {r.name}.", f"So {expression}")
    with pytest.raises(UserError) as error:
        compile_game(data, "trial/game.tw-pddl")
    assert str(error.value).startswith("trial/game.tw-pddl: rule 'CloseObject.feedback': ")
    assert expression[:5] in str(error.value)


def test_a_hostile_grammar_is_refused_wherever_it_stands(tmp_path):
    mark = tmp_path / "ran"
    attack = f"{{open('{mark}', 'w').close()}}"
    places = {
        "template": ('template :: "open {r}"', f'template :: "open {attack}"'),
        "feedback": ('feedback :: "#OpenObject.feedback#"', f'feedback :: "{attack}"'),
        "task": ("put a mug on desk", f"put {attack}"),
        "an unused rule": ('"list_empty"', f'"unused": [{{"rhs": "{attack}"}}], "list_empty"'),
        "query": ("| holds(a:agent, o:object)", "| open('x') & holds(a:agent, o:object)"),
    }
    for place, (old, new) in places.items():
        data = household()
        assert old in data["grammar"], place
        data["grammar"] = data["grammar"].replace(old, new)
        with pytest.raises(UserError, match="unsupported"):
            CompiledGame(data)
    assert not mark.exists()


def test_queries():
    assert parse_query("p(a: agent, l:location) & not_q( l : location )") == (
        Literal("p", (("a", "agent"), ("l", "location"))),
        Literal("not_q", (("l", "location"),)),
    )
    assert parse_query(" ") == ()
    for text in ("p(a", "p(a) | q(a)", "p(a) & ", "not p(a)", "p('a')"):
        with pytest.raises(UserError, match="unsupported condition"):
            parse_query(text)


def test_file_with_comments_rules_and_actions():
    grammar = parse_grammar(
        """
        # a comment
        grammar :: \"\"\"{"one": [{"condition": "p(o)", "rhs": "a"}, {"rhs": "b"}]}\"\"\";
        action DoThing {
            feedback :: "#one#";
            template :: "do it";
            grammar :: \"\"\"
              # another comment
              {"one": [{"rhs": "c"}], "two": []}
            \"\"\";
        }
        """
    )
    assert grammar.actions["dothing"].template == ("do it",)
    assert grammar.actions["dothing"].feedback == (RuleCall("one"),)
    # A later block replaces a rule of the same name.
    assert grammar.rules == {"one": [Alternative((), ("c",))], "two": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("action A { template :: \"x\"; }", "action A: template and feedback are required"),
        ("nonsense", "cannot parse the grammar at 'nonsense'"),
        ('grammar :: """{"a": 1}"""', "malformed grammar rules"),
    ],
)  # fmt: skip
def test_malformed_files_are_named(text, message):
    with pytest.raises(UserError, match=message):
        parse_grammar(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#OpenObject.feedback#", "#missing#", "no rule 'missing'"),
        ("You close the {r.name}.", "#CloseObject.feedback#", "calls itself"),
        ("You close the {r.name}.", "{nobody.name}", "unknown variable 'nobody'"),
        ("action help", "action aid", "no text for action 'help'"),
        ("| holds(a:agent, o:object)", "| holds(a:agent, o:agent)", "domain declares object"),
        # The planner derives these in ways of its own, and no text of ALFRED's reads them.
        ('"iscool(o:object)"', '"not_iscool(o:object)"', "uses 'not_iscool', which this engine"),
        ("& istoggled(o:object)", "& ison(o:object)", "uses 'ison', which this engine does not"),
    ],
)
def test_what_the_grammar_refers_to_must_exist(old, new, message):
    data = household()
    assert old in data["grammar"]
    data["grammar"] = data["grammar"].replace(old, new)
    with pytest.raises(UserError, match=message):
        CompiledGame(data)


def test_goal_sentences_do_not_need_a_new_program():
    one, other = household(), household()
    other["grammar"] = other["grammar"].replace("put a mug on desk", 'put the "mug" away')
    other["grammar"] = other["grammar"].replace('"mug"', '\\"mug\\"')
    games = [CompiledGame(one), CompiledGame(other)]
    assert games[0].program is games[1].program
    # The official parser drops double quotes.
    assert NativeGame(games[1]).reset().endswith("Your task is to: put the mug away.")
