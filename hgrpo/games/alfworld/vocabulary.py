"""Lists the types of receptacles and objects in generated games.

As in ALFRED, each type of receptacle can contain certain types of objects, and each type of object
supports certain changes (clean, heat, cool).
"""

from typing import NamedTuple

LAMP = "DeskLamp"
TOOLS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
# Maps a change to its precondition, a predicate that the object must satisfy.
ABILITIES = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
# Maps a language to the command that puts an object into a receptacle.
PUT = {"move": "move {} to {}", "put": "put {} in/on {}"}


class ReceptacleType(NamedTuple):
    """A type of receptacle. `holds` contains the types of objects that the receptacle can hold.

    If `repeats` is True, a house may have several receptacles of this type.
    """

    rooms: frozenset[str]
    holds: frozenset[str]
    openable: bool = False
    repeats: bool = False


class ObjectType(NamedTuple):
    """A type of object. `changes` contains the supported changes (clean, heat, cool)."""

    rooms: frozenset[str]
    changes: frozenset[str] = frozenset()
    pickupable: bool = True


def kind_of(name: str) -> str:
    """The type in a display name: "mug" in "mug 1"."""
    return name.partition(" ")[0]


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

_SINK = _FOOD | _DISHES | _CUTLERY | _COOKWARE | _words("Cloth HandTowel SoapBar")
_CABINET = _DISHES | _COOKWARE | _BATH | _words("Book CD")
_DRAWER = _CUTLERY | _SMALL | _WRITING | _BATH
_SHELF = _DISHES | _SMALL | _WRITING | _BATH | _LAMP | _words("AlarmClock Kettle Pot")

RECEPTACLES = {
    "ArmChair": ReceptacleType(_BEDROOM, _CHAIR),
    "BathtubBasin": ReceptacleType(_BATHROOM, _words("Cloth HandTowel SoapBar")),
    "Bed": ReceptacleType(_BEDROOM, _words("Book CellPhone Laptop Pillow")),
    "Cabinet": ReceptacleType(_KITCHEN | _BATHROOM, _CABINET, openable=True, repeats=True),
    "CoffeeMachine": ReceptacleType(_KITCHEN, _words("Mug")),
    "CounterTop": ReceptacleType(_KITCHEN | _BATHROOM, _TABLE, repeats=True),
    "Desk": ReceptacleType(_BEDROOM, _DESK | _words("SoapBottle")),
    "DiningTable": ReceptacleType(_KITCHEN, _TABLE),
    "Drawer": ReceptacleType(_ALL, _DRAWER, openable=True, repeats=True),
    "Dresser": ReceptacleType(_BEDROOM, _DESK),
    "Fridge": ReceptacleType(_KITCHEN, _FOOD | _DISHES | _words("Pan Pot"), openable=True),
    "GarbageCan": ReceptacleType(_ALL, (_FOOD | _BATH | _words("CD Pen Pencil")) - {"Candle"}),
    "Microwave": ReceptacleType(_KITCHEN, (_FOOD | _DISHES) - {"Lettuce"}, openable=True),
    "Safe": ReceptacleType(_BEDROOM, _SMALL, openable=True),
    "Shelf": ReceptacleType(_ALL, _SHELF, repeats=True),
    "SideTable": ReceptacleType(_BEDROOM, _TABLE, repeats=True),
    "SinkBasin": ReceptacleType(_KITCHEN | _BATHROOM, _SINK - {"Bread"}),
    "StoveBurner": ReceptacleType(_KITCHEN, _COOKWARE, repeats=True),
    "Toilet": ReceptacleType(_BATHROOM, _BATH),
}

_CLEAN, _CLEAN_COOL = _words("clean"), _words("clean cool")
_HEAT_COOL, _EVERY = _words("heat cool"), _words("clean heat cool")

OBJECTS = {LAMP: ObjectType(_BEDROOM, pickupable=False)} | {
    name: ObjectType(rooms, changes)
    for rooms, changes, names in (
        (_KITCHEN, _EVERY, _words("Apple Cup Egg Plate Potato Tomato")),
        (_KITCHEN, _CLEAN_COOL, _words("Bowl Lettuce Pan Pot")),
        (_KITCHEN, _HEAT_COOL, _words("Bread")),
        (_KITCHEN, _CLEAN, _CUTLERY | {"Kettle"}),
        (_KITCHEN | _BEDROOM, _EVERY, _words("Mug")),
        (_BEDROOM, frozenset(), _SMALL | _WRITING | _words("AlarmClock Laptop Pillow")),
        (_BATHROOM, _CLEAN, _words("Cloth SoapBar")),
        (_BATHROOM, frozenset(), _BATH - {"Cloth", "SoapBar"}),
    )
    for name in names
}
