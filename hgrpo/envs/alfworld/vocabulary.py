"""Receptacle and object types of generated games: where they occur, and what can be done to them.

The facts are ALFRED's: which receptacle holds what, and what can be cleaned, heated or cooled.
"""

from typing import NamedTuple

LAMP = "DeskLamp"
TOOLS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
# The predicate that says whether an object can be changed so.
ABILITIES = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
# The command that puts an object into a receptacle, in each language of the games.
PUT = {"move": "move {} to {}", "put": "put {} in/on {}"}


class ReceptacleType(NamedTuple):
    """`repeats`: a house may have several. `holds`: object types that it can hold."""

    rooms: frozenset[str]
    openable: bool
    repeats: bool
    holds: frozenset[str]


class ObjectType(NamedTuple):
    """`changes`: which of clean, heat and cool can be done to it."""

    rooms: frozenset[str]
    changes: frozenset[str]
    pickupable: bool = True


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FOOD = _words("Apple Bread Egg Lettuce Potato Tomato")
_DISHES = _words("Bowl Cup Mug Plate")
_CUTLERY = _words("Fork Spoon Spatula")
_COOKWARE = _words("Kettle Pan Pot")
_SMALL = _words("CD CellPhone CreditCard KeyChain Watch")
_WRITING = _words("Book Pen Pencil")
_BATH = _words("Candle Cloth HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper")
_LAMP = frozenset({LAMP})

_TABLE = _FOOD | _DISHES | _CUTLERY | _COOKWARE | _SMALL | _WRITING | _BATH | _LAMP
_TABLE |= _words("AlarmClock Laptop")
_DESK = _DISHES | _SMALL | _WRITING | _LAMP | _words("AlarmClock Candle Cloth Laptop TissueBox")
_DESK |= _words("SprayBottle ToiletPaper")
_CHAIR = _words("Book CellPhone Cloth CreditCard KeyChain Laptop Pillow")

_KITCHEN, _BEDROOM, _BATHROOM = _words("kitchen"), _words("bedroom"), _words("bathroom")
_ALL = _KITCHEN | _BEDROOM | _BATHROOM

RECEPTACLES = {
    "ArmChair": ReceptacleType(_BEDROOM, False, False, _CHAIR),
    "BathtubBasin": ReceptacleType(_BATHROOM, False, False, _words("Cloth HandTowel SoapBar")),
    "Bed": ReceptacleType(_BEDROOM, False, False, _words("Book CellPhone Laptop Pillow")),
    "Cabinet": ReceptacleType(
        _KITCHEN | _BATHROOM,
        True,
        True,
        _DISHES | _COOKWARE | _BATH | _words("Book CD"),
    ),
    "CoffeeMachine": ReceptacleType(_KITCHEN, False, False, _words("Mug")),
    "CounterTop": ReceptacleType(_KITCHEN | _BATHROOM, False, True, _TABLE),
    "Desk": ReceptacleType(_BEDROOM, False, False, _DESK | _words("SoapBottle")),
    "DiningTable": ReceptacleType(_KITCHEN, False, False, _TABLE),
    "Drawer": ReceptacleType(_ALL, True, True, _CUTLERY | _SMALL | _WRITING | _BATH),
    "Dresser": ReceptacleType(_BEDROOM, False, False, _DESK),
    "Fridge": ReceptacleType(_KITCHEN, True, False, _FOOD | _DISHES | _words("Pan Pot")),
    "GarbageCan": ReceptacleType(
        _ALL,
        False,
        False,
        (_FOOD | _BATH | _words("CD Pen Pencil")) - _words("Candle"),
    ),
    "Microwave": ReceptacleType(_KITCHEN, True, False, (_FOOD | _DISHES) - _words("Lettuce")),
    "Safe": ReceptacleType(_BEDROOM, True, False, _SMALL),
    "Shelf": ReceptacleType(
        _ALL,
        False,
        True,
        _DISHES | _SMALL | _WRITING | _BATH | _LAMP | _words("AlarmClock Kettle Pot"),
    ),
    "SideTable": ReceptacleType(_BEDROOM, False, True, _TABLE),
    "SinkBasin": ReceptacleType(
        _KITCHEN | _BATHROOM,
        False,
        False,
        (_FOOD | _DISHES | _CUTLERY | _COOKWARE | _words("Cloth HandTowel SoapBar"))
        - _words("Bread"),
    ),
    "StoveBurner": ReceptacleType(_KITCHEN, False, True, _COOKWARE),
    "Toilet": ReceptacleType(_BATHROOM, False, False, _BATH),
}

_CLEAN, _CLEAN_COOL = _words("clean"), _words("clean cool")
_HEAT_COOL, _EVERY, _NONE = _words("heat cool"), _words("clean heat cool"), frozenset()

OBJECTS = {
    "AlarmClock": ObjectType(_BEDROOM, _NONE),
    "Apple": ObjectType(_KITCHEN, _EVERY),
    "Book": ObjectType(_BEDROOM, _NONE),
    "Bowl": ObjectType(_KITCHEN, _CLEAN_COOL),
    "Bread": ObjectType(_KITCHEN, _HEAT_COOL),
    "CD": ObjectType(_BEDROOM, _NONE),
    "Candle": ObjectType(_BATHROOM, _NONE),
    "CellPhone": ObjectType(_BEDROOM, _NONE),
    "Cloth": ObjectType(_BATHROOM, _CLEAN),
    "CreditCard": ObjectType(_BEDROOM, _NONE),
    "Cup": ObjectType(_KITCHEN, _EVERY),
    LAMP: ObjectType(_BEDROOM, _NONE, pickupable=False),
    "Egg": ObjectType(_KITCHEN, _EVERY),
    "Fork": ObjectType(_KITCHEN, _CLEAN),
    "HandTowel": ObjectType(_BATHROOM, _NONE),
    "Kettle": ObjectType(_KITCHEN, _CLEAN),
    "KeyChain": ObjectType(_BEDROOM, _NONE),
    "Laptop": ObjectType(_BEDROOM, _NONE),
    "Lettuce": ObjectType(_KITCHEN, _CLEAN_COOL),
    "Mug": ObjectType(_KITCHEN | _BEDROOM, _EVERY),
    "Pan": ObjectType(_KITCHEN, _CLEAN_COOL),
    "Pen": ObjectType(_BEDROOM, _NONE),
    "Pencil": ObjectType(_BEDROOM, _NONE),
    "Pillow": ObjectType(_BEDROOM, _NONE),
    "Plate": ObjectType(_KITCHEN, _EVERY),
    "Pot": ObjectType(_KITCHEN, _CLEAN_COOL),
    "Potato": ObjectType(_KITCHEN, _EVERY),
    "SoapBar": ObjectType(_BATHROOM, _CLEAN),
    "SoapBottle": ObjectType(_BATHROOM, _NONE),
    "Spatula": ObjectType(_KITCHEN, _CLEAN),
    "Spoon": ObjectType(_KITCHEN, _CLEAN),
    "SprayBottle": ObjectType(_BATHROOM, _NONE),
    "TissueBox": ObjectType(_BATHROOM, _NONE),
    "ToiletPaper": ObjectType(_BATHROOM, _NONE),
    "Tomato": ObjectType(_KITCHEN, _EVERY),
    "Watch": ObjectType(_BEDROOM, _NONE),
}
