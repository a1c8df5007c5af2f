"""Vocabulary of a generated shop: the product types of each department, and descriptive words.

Three properties, which are tested, ensure that the reward distinguishes right from wrong choices:

- No two product types share a noun.
- The reward's fuzzy comparison distinguishes all attributes and option values of a product.
- No option value is used for two option names.

Every attribute consists of two words that can be used both before a noun and after "is".
"""

from typing import NamedTuple


class ProductType(NamedTuple):
    """A type of product, which belongs to a group within its department.

    `prices` is the price range (low, high) in dollars. `options` are three (name, values) pairs.
    """

    name: str
    group: str
    prices: tuple[float, float]
    options: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def plural(self) -> str:
        """The plural that is used in searches, such as `travel mugs`."""
        if self.name.endswith(("s", "sh", "ch", "x")):
            return f"{self.name}es"
        if self.name.endswith("y") and self.name[-2] not in "aeiou":
            return f"{self.name[:-1]}ies"
        return f"{self.name}s"

    @property
    def nouns(self) -> tuple[str, ...]:
        """The nouns of the name, in order."""
        return tuple(word for word in self.name.split() if word not in _ADJECTIVES)


class Department(NamedTuple):
    """A department of the shop. Each of `uses` consists of two words that fit "good for ..."."""

    types: tuple[ProductType, ...]
    attributes: tuple[str, ...]
    uses: tuple[str, ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


_ADJECTIVES = frozenset({"cordless", "herbal", "solar", "sticky", "whistling", "wireless"})

BRANDS = _list(
    "Abeldo, Brintor, Cavoro, Dulmera, Elbrino, Fendaro, Gosvela, Hanubo, Ilmoreta, Jasketo, "
    "Kelvoro, Lumeta, Mordavi, Nuvelto, Orbisal, Pelkano, Quorvel, Rindova, Saltemi, Tavorel, "
    "Ulmenko, Vastero, Wendiro, Xandoli, Yorvena, Zelmaro, Arvolta, Bostiva, Cresmond, Dorvika, "
    "Estuvio, Falmeri, Grentol, Holvaro, Istrano, Jorbela, Kundevo, Lorvisto"
)

# Values of each option. A key is `<option name>` or `<option name>/<kind of product>`.
_OPTIONS = {
    "color": _list("red, blue, green, black, white, grey, pink, purple, yellow, brown, navy, teal"),
    "size/worn": _list("small, medium, large, petite, tall"),
    "size/shoe": _list("6, 7, 8, 9, 10, 11"),
    "size/thing": _list("mini, compact, midsize, large, jumbo"),
    "size/volume": _list("4 oz, 8 oz, 12 oz, 20 oz, 32 oz"),
    "size/length": _list("3 ft, 6 ft, 9 ft, 15 ft, 24 ft"),
    "size/width": _list("4 inch, 6 inch, 9 inch, 12 inch, 30 inch"),
    "size/storage": _list("16 gb, 32 gb, 64 gb, 128 gb, 256 gb"),
    "size/paper": _list("a4, a5, letter, legal, pocket"),
    "size/food": _list("snack, regular, family, party, pantry"),
    "flavor name/sweet": _list("vanilla, cocoa, honey, cherry, maple, caramel, banana"),
    "flavor name/savory": _list("garlic, pepper, tomato, smoked, onion, paprika"),
    "flavor name/pet": _list("chicken, beef, turkey, salmon, lamb, duck"),
    "scent": _list("lavender, rose, cedar, citrus, jasmine, eucalyptus, ocean"),
    "material/cloth": _list("cotton, linen, wool, bamboo, fleece"),
    "material/tough": _list("nylon, canvas, leather, polyester, rubber"),
    "material/hard": _list("steel, oak, ceramic, acrylic, silicone"),
    "material/metal": _list("steel, iron, copper, brass, chrome"),
    "material/sheet": _list("rubber, cork, foam, vinyl, jute"),
    "style/pattern": _list("plain, striped, dotted, floral, checked"),
    "style/shape": _list("round, square, oval, curved, slim"),
    "style/look": _list("classic, modern, retro, vintage, minimal"),
    "style/theme": _list("farm, space, jungle, castle, robot"),
    "style/cut": _list("ground, whole, sliced, chopped, blended"),
    "pack": _list("single, two pack, four pack, six pack, ten pack"),
}


def _type(name: str, group: str, low: float, high: float, options: str) -> ProductType:
    kinds = tuple((kind.partition("/")[0], _OPTIONS[kind]) for kind in _list(options))
    return ProductType(name, group, (low, high), kinds)


def _department(*types: ProductType, attributes: str, uses: str) -> Department:
    return Department(types, _list(attributes), _list(uses))


DEPARTMENTS: dict[str, Department] = {
    "kitchen": _department(
        _type("travel mug", "Drinkware", 8, 40, "color, size/volume, material/hard"),
        _type("whistling kettle", "Drinkware", 15, 80, "color, size/volume, style/look"),
        _type("frying pan", "Cookware", 12, 90, "color, size/width, material/metal"),
        _type("mixing bowl", "Cookware", 8, 45, "color, size/thing, material/hard"),
        _type("cutting board", "Storage", 10, 60, "size/width, material/hard, style/shape"),
        _type("spice jar", "Storage", 5, 25, "size/volume, style/shape, pack"),
        _type("bread bin", "Storage", 15, 70, "color, size/thing, style/look"),
        _type("oven mitt", "Cookware", 6, 25, "color, style/pattern, pack"),
        attributes="easy clean, heat resistant, dishwasher safe, bpa free, non toxic, food grade, "
        "scratch proof, stain proof, rust free, space saving, non slip, hand made, odor free, "
        "heavy duty, long lasting",
        uses="home cooks, busy mornings, family meals, tiny flats, dinner guests",
    ),
    "garden": _department(
        _type("flower pot", "Planting", 6, 45, "color, size/width, style/shape"),
        _type("seed tray", "Planting", 5, 30, "color, size/thing, pack"),
        _type("hand trowel", "Planting", 6, 30, "color, size/thing, material/metal"),
        _type("garden hose", "Outdoor", 15, 80, "color, size/length, style/pattern"),
        _type("bird feeder", "Outdoor", 10, 55, "color, size/thing, style/look"),
        _type("patio chair", "Outdoor", 30, 180, "color, material/tough, style/look"),
        _type("solar lantern", "Outdoor", 10, 60, "color, style/look, pack"),
        attributes="weather proof, rust free, uv resistant, easy assemble, heavy duty, "
        "frost proof, quick drain, hand painted, eco friendly, long lasting, wind safe, fade free, "
        "easy carry, non toxic, pet safe",
        uses="back yards, sunny porches, spring days, new gardeners, city balconies",
    ),
    "beauty": _department(
        _type("face cream", "Skin", 8, 60, "size/volume, scent, pack"),
        _type("body lotion", "Skin", 6, 40, "size/volume, scent, pack"),
        _type("bath bomb", "Skin", 5, 30, "color, scent, pack"),
        _type("hair serum", "Hair", 8, 55, "size/volume, scent, pack"),
        _type("scalp shampoo", "Hair", 6, 35, "size/volume, scent, pack"),
        _type("lip balm", "Makeup", 4, 20, "color, scent, pack"),
        _type("nail polish", "Makeup", 5, 25, "color, style/look, pack"),
        _type("makeup brush", "Makeup", 6, 45, "color, style/shape, pack"),
        attributes="cruelty free, paraben free, sulfate free, alcohol free, oil free, skin tested, "
        "long lasting, quick dry, plant based, non greasy, deep hydrating, travel ready, "
        "vitamin rich, small batch, tear proof",
        uses="daily care, dry days, quiet evenings, gift baskets, winter weather",
    ),
    "grocery": _department(
        _type("granola bar", "Snacks", 4, 25, "flavor name/sweet, size/food, pack"),
        _type("rice cracker", "Snacks", 3, 20, "flavor name/savory, size/food, pack"),
        _type("trail mix", "Snacks", 5, 30, "flavor name/sweet, size/food, pack"),
        _type("herbal tea", "Drinks", 4, 25, "flavor name/sweet, style/cut, pack"),
        _type("coffee bean", "Drinks", 8, 45, "flavor name/sweet, style/cut, pack"),
        _type("protein shake", "Drinks", 10, 60, "flavor name/sweet, size/food, pack"),
        _type("pasta sauce", "Pantry", 4, 20, "flavor name/savory, size/volume, pack"),
        _type("peanut spread", "Pantry", 4, 20, "flavor name/sweet, size/volume, pack"),
        attributes="gluten free, sugar free, dairy free, soy free, fat free, low sodium, "
        "high fiber, plant based, certified organic, non gmo, fair trade, slow roasted, sun dried, "
        "hand picked, shelf stable",
        uses="school lunches, long hikes, quick breakfasts, hungry friends, movie nights",
    ),
    "electronics": _department(
        _type("phone charger", "Power", 8, 50, "color, size/length, pack"),
        _type("power cable", "Power", 5, 30, "color, size/length, pack"),
        _type("bluetooth speaker", "Audio", 20, 150, "color, size/thing, style/shape"),
        _type("studio headphone", "Audio", 25, 200, "color, size/worn, style/look"),
        _type("wireless keyboard", "Computers", 20, 120, "color, size/thing, style/look"),
        _type("memory card", "Computers", 8, 70, "color, size/storage, pack"),
        _type("laptop sleeve", "Computers", 10, 50, "color, material/tough, style/pattern"),
        _type("tablet stand", "Computers", 10, 60, "color, size/thing, material/hard"),
        attributes="fast working, noise reducing, long lasting, easy install, water resistant, "
        "shock proof, dust free, energy saving, high speed, touch friendly, tangle free, "
        "light weight, glare free, scratch proof, quick pairing",
        uses="home offices, train rides, video calls, small desks, music lovers",
    ),
    "fashion": _department(
        _type("rain jacket", "Clothing", 25, 140, "color, size/worn, style/pattern"),
        _type("polo shirt", "Clothing", 12, 60, "color, size/worn, material/cloth"),
        _type("denim skirt", "Clothing", 15, 70, "color, size/worn, style/pattern"),
        _type("ankle boot", "Shoes", 30, 160, "color, size/shoe, material/tough"),
        _type("running sneaker", "Shoes", 30, 150, "color, size/shoe, style/look"),
        _type("bucket hat", "Accessories", 8, 40, "color, size/worn, material/cloth"),
        _type("waist belt", "Accessories", 8, 45, "color, size/worn, material/tough"),
        _type("crew sock", "Accessories", 5, 25, "color, size/worn, pack"),
        attributes="machine washable, slim fit, quick dry, water proof, moisture wicking, "
        "wrinkle free, stretch knit, hand sewn, soft lined, fade free, wind safe, light weight, "
        "non slip, easy care, double stitched",
        uses="casual days, rainy walks, office wear, weekend trips, cool evenings",
    ),
    "toys": _department(
        _type("building block", "Building", 10, 60, "color, style/theme, pack"),
        _type("jigsaw puzzle", "Building", 8, 35, "size/thing, style/theme, pack"),
        _type("toy train", "Building", 12, 80, "color, size/thing, style/theme"),
        _type("plush bear", "Dolls", 8, 45, "color, size/width, style/pattern"),
        _type("rag doll", "Dolls", 8, 40, "color, size/width, style/pattern"),
        _type("finger puppet", "Dolls", 5, 25, "color, style/theme, pack"),
        _type("dice game", "Outdoor Play", 6, 35, "color, style/theme, pack"),
        _type("stunt kite", "Outdoor Play", 10, 60, "color, size/length, style/theme"),
        attributes="child safe, non toxic, battery free, hand painted, easy clean, award winning, "
        "screen free, splinter free, bpa free, well balanced, long lasting, beginner friendly, "
        "machine washable, travel ready, mess free",
        uses="curious kids, rainy afternoons, birthday gifts, family fun, young builders",
    ),
    "sports": _department(
        _type("yoga mat", "Fitness", 12, 80, "color, size/thing, material/sheet"),
        _type("jump rope", "Fitness", 6, 30, "color, size/length, material/tough"),
        _type("resistance band", "Fitness", 8, 40, "color, size/thing, pack"),
        _type("gym towel", "Fitness", 6, 30, "color, material/cloth, pack"),
        _type("tennis racket", "Games", 25, 180, "color, size/thing, style/look"),
        _type("soccer ball", "Games", 10, 60, "color, size/thing, style/pattern"),
        _type("bike helmet", "Outdoor", 20, 120, "color, size/worn, style/pattern"),
        _type("swim cap", "Outdoor", 5, 25, "color, size/worn, style/pattern"),
        attributes="non slip, sweat proof, quick dry, light weight, shock absorbing, "
        "tear resistant, well balanced, odor free, latex free, extra thick, easy carry, "
        "double stitched, beginner friendly, league approved, fade free",
        uses="home workouts, team practice, early runs, summer camps, new players",
    ),
    "office": _department(
        _type("gel pen", "Writing", 4, 25, "color, style/shape, pack"),
        _type("spiral notebook", "Writing", 4, 25, "color, size/paper, style/pattern"),
        _type("sticky note", "Writing", 3, 18, "color, style/shape, pack"),
        _type("desk lamp", "Furnishing", 15, 90, "color, material/metal, style/look"),
        _type("wall calendar", "Furnishing", 6, 30, "color, size/paper, style/pattern"),
        _type("file folder", "Filing", 5, 30, "color, size/paper, pack"),
        _type("paper clip", "Filing", 3, 15, "color, size/thing, pack"),
        attributes="acid free, smudge proof, quick dry, bleed proof, refill ready, eco friendly, "
        "space saving, non slip, hand finished, fade free, tear resistant, glare free, "
        "light weight, long lasting, school approved",
        uses="busy teachers, tidy desks, exam weeks, team meetings, home study",
    ),
    "pets": _department(
        _type("dog leash", "Walking", 8, 40, "color, size/length, material/tough"),
        _type("pet carrier", "Walking", 20, 110, "color, size/thing, style/pattern"),
        _type("cat tree", "Comfort", 30, 180, "color, size/thing, style/look"),
        _type("cushion bed", "Comfort", 15, 90, "color, size/thing, material/cloth"),
        _type("chew bone", "Feeding", 4, 25, "flavor name/pet, size/thing, pack"),
        _type("puppy treat", "Feeding", 4, 25, "flavor name/pet, size/food, pack"),
        _type("litter box", "Cages", 15, 80, "color, size/thing, style/shape"),
        _type("fish tank", "Cages", 25, 200, "color, size/width, style/shape"),
        attributes="chew proof, easy clean, odor free, machine washable, non toxic, pet safe, "
        "vet approved, non slip, tangle free, heavy duty, water proof, scratch resistant, "
        "hand made, easy assemble, soft lined",
        uses="playful pups, older animals, long walks, lazy naps, first owners",
    ),
    "tools": _department(
        _type("claw hammer", "Hand Tools", 10, 50, "color, size/thing, material/metal"),
        _type("tape measure", "Hand Tools", 6, 30, "color, size/length, style/shape"),
        _type("socket wrench", "Hand Tools", 10, 60, "color, size/width, pack"),
        _type("coping saw", "Hand Tools", 10, 50, "color, size/width, style/look"),
        _type("cordless drill", "Workshop", 40, 220, "color, size/thing, style/look"),
        _type("step ladder", "Workshop", 30, 200, "color, size/length, style/look"),
        _type("work glove", "Workshop", 6, 35, "color, size/worn, material/tough"),
        _type("paint roller", "Workshop", 5, 30, "color, size/width, pack"),
        attributes="rust free, shock absorbing, heavy duty, non slip, heat treated, well balanced, "
        "impact resistant, drop tested, quick release, precision made, spark free, dust proof, "
        "easy store, long lasting, trade approved",
        uses="home repairs, weekend projects, first flats, busy workshops, odd jobs",
    ),
    "travel": _department(
        _type("cabin suitcase", "Luggage", 40, 220, "color, size/thing, style/pattern"),
        _type("hiking backpack", "Luggage", 25, 160, "color, size/thing, material/tough"),
        _type("toiletry pouch", "Luggage", 8, 40, "color, size/thing, material/tough"),
        _type("luggage tag", "Accessories", 4, 20, "color, material/tough, pack"),
        _type("passport wallet", "Accessories", 8, 45, "color, material/tough, style/pattern"),
        _type("pocket umbrella", "Accessories", 10, 50, "color, size/thing, style/pattern"),
        _type("neck pillow", "Sleeping", 10, 50, "color, material/cloth, style/pattern"),
        _type("eye mask", "Sleeping", 5, 25, "color, material/cloth, style/pattern"),
        attributes="water proof, light weight, tear resistant, theft proof, easy carry, "
        "cabin approved, machine washable, quick dry, crush proof, wrinkle free, space saving, "
        "odor free, scratch resistant, soft lined, wind safe",
        uses="long flights, beach weeks, short trips, night trains, light packers",
    ),
}
