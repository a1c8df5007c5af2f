"""Pages as the original shows them, piece by piece."""

from hgrpo.games.webshop import pages
from hgrpo.games.webshop.records import Item, Product

MUG = Item(
    3,
    Product(
        asin="B0MUG",
        title="Steel Mug <1 l>",
        description="",
        bullet_points=("keeps warm ", "", "dishwasher"),
        prices=(11.07, 13.5),
        category="kitchen",
        query="mugs",
        product_category="Kitchen \u203a Mugs",
        options={"color": ("red", "blue"), "size": ("1 l | big",)},
        attributes=("leak proof",),
    ),
    12.0,
    ("mug",),
)
BOX = Item(
    4, Product("B0BOX", " ", "Dry\nplace.", ("x",), (5.0,), "k", "q", "p", {}, ("a",)), 5.0, ()
)


def test_search_page():
    page = pages.index("find me a mug")
    assert pages.text(page) == "WebShop [SEP] Instruction: [SEP] find me a mug [SEP] Search"
    assert pages.rich(page, {}, ()) == (
        "WebShop\nInstruction: \nfind me a mug\n[button] Search [button_]\n"
    )
    assert list(pages.clickables(page)) == ["search"]


def test_first_page_of_results():
    page = pages.results("go", 1, 12, [MUG, BOX])
    # A title of a blank is a blank piece; a product without a range has one price.
    assert pages.text(page) == (
        "Instruction: [SEP] go [SEP] Back to Search [SEP] Page 1 (Total results: 12) [SEP] Next > "
        "[SEP] B0MUG [SEP] Steel Mug <1 l> [SEP] $11.07 to $13.5 [SEP] B0BOX [SEP]  [SEP] $5.0"
    )
    assert list(pages.clickables(page)) == ["back to search", "next >", "b0mug", "b0box"]


def test_later_pages_of_results_have_a_way_back_and_always_a_next_page():
    page = pages.results("go", 7, 12, [])
    assert pages.text(page) == (
        "Instruction: [SEP] go [SEP] Back to Search [SEP] Page 7 (Total results: 12) [SEP] "
        "< Prev [SEP] Next >"
    )


def test_opened_products_are_marked():
    page = pages.results("go", 1, 1, [MUG])
    assert "\n\n[clicked button] B0MUG [clicked button_]\nSteel Mug" in pages.rich(
        page, {}, {"B0MUG"}
    )
    assert "\n\n[button] B0MUG [button_]\nSteel Mug" in pages.rich(page, {}, ())


def test_product_page():
    page = pages.item_page("go", MUG, show_attributes=False)
    assert pages.text(page) == (
        "Instruction: [SEP] go [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] blue "
        "[SEP] size [SEP] 1 l | big [SEP] Steel Mug <1 l> [SEP] Price: $11.07 to $13.5 [SEP] "
        "Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert list(pages.clickables(page)) == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("red", "blue", "1 l | big"),
    ]
    text = pages.text(pages.item_page("go", MUG, show_attributes=True))
    assert text.endswith("Reviews [SEP] Attributes [SEP] Buy Now")


def test_chosen_options_are_named_at_the_top_last_first():
    page = pages.item_page("go", MUG, show_attributes=False)
    rich = pages.rich(page, {"color": "blue", "size": "1 l | big"}, ())
    assert rich.startswith(
        "You have clicked 1 l | big.\nYou have clicked blue.\nInstruction:\ngo\n"
    )
    assert "  [button] red [button_]\n  [clicked button] blue [clicked button_]\n" in rich


def test_choices_are_marked_as_the_original_marks_them():
    """It looks for the quoted value in its URL, where JSON escapes quotes and what is not ASCII."""
    options = {"color": ("caf\u00e9", '5"', "red"), "red": ("large", "color")}
    item = Item(0, Product("B0", "t", "", (), (1.0,), "", "", "", options, ()), 1.0, ())
    page = pages.item_page("go", item, show_attributes=False)

    def marked(**chosen):
        lines = pages.rich(page, chosen, ()).splitlines()
        return [line.split("] ")[1].split(" [")[0] for line in lines if "[clicked" in line]

    assert marked(color="red") == ["red", "color"]
    assert marked(red="large") == ["red", "large"]
    assert marked(color="caf\u00e9") == ["color"]
    assert marked(color='5"') == ["color"]
    assert marked() == []


def test_a_value_in_quotes_in_the_search_counts_as_clicked():
    """The original's URL contains the search, with "+" for its spaces."""
    options = {"color": ("red", "dark red", "dark+red", "caf\u00e9")}
    item = Item(0, Product("B0", "t", "", (), (1.0,), "", "", "", options, ()), 1.0, ())
    page = pages.item_page("go", item, show_attributes=False)

    def marked(query, **chosen):
        lines = pages.rich(page, chosen, (), query).splitlines()
        return [line.split("] ")[1].split(" [")[0] for line in lines if "[clicked" in line]

    assert marked("red mug") == []
    assert marked('"red" mug') == ["red"]
    assert marked('"dark red"') == ["dark+red"]
    # JSON escapes chosen values, but nothing escapes the search.
    assert marked('"caf\u00e9"') == ["caf\u00e9"]
    assert marked('"red"', color="dark red") == ["red", "dark red"]
    assert pages.rich(page, {"color": "dark red"}, (), '"red"').startswith(
        "You have clicked dark red.\nYou have clicked red.\nInstruction:\n"
    )


def test_an_empty_value_prints_nothing():
    options = {"color": ("", "red"), "size": ("",)}
    item = Item(0, Product("B0", "t", "", (), (1.0,), "", "", "", options, ()), 1.0, ())
    page = pages.item_page("go", item, show_attributes=False)
    assert pages.text(page) == (
        "Instruction: [SEP] go [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] size "
        "[SEP] t [SEP] Price: $1.0 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] "
        "Reviews [SEP] Buy Now"
    )
    assert "\ncolor\n  [button] red [button_]\nsize\nt\n" in pages.rich(page, {}, ())


def test_blank_text_is_ascii_space():
    head = pages.text(pages.sub_page("go", BOX, "Reviews"))
    item = Item(
        0, Product("B0", "t", "", ("\u00a0", "\n", ""), (1.0,), "", "", "", {}, ()), 1.0, ()
    )
    page = pages.sub_page("go", item, "Features")
    # One space stands before each point; with the line break it is dropped.
    assert [piece.text for piece in page[4:]] == [" \u00a0", " "]
    assert pages.text(page) == f"{head} [SEP]  [SEP] "


def test_sub_pages():
    head = "Instruction: [SEP] go [SEP] Back to Search [SEP] < Prev"

    def text(item, tab):
        return pages.text(pages.sub_page("go", item, tab))

    assert text(MUG, "Description") == head
    assert text(BOX, "Description") == f"{head} [SEP] Dry\nplace."
    # The empty point is a blank between its tags.
    assert text(MUG, "Features") == f"{head} [SEP] keeps warm [SEP]  [SEP] dishwasher"
    assert text(MUG, "Reviews") == head
    assert text(MUG, "Attributes") == (
        f"{head} [SEP] leak proof [SEP] kitchen [SEP] mugs [SEP] Kitchen \u203a Mugs"
    )


def test_a_value_under_two_names_belongs_to_the_second():
    twice = Item(
        0, Product("B0", "t", "", (), (1.0,), "", "", "", {"a": ("x",), "b": ("x",)}, ()), 1.0, ()
    )
    page = pages.item_page("go", twice, show_attributes=False)
    assert pages.clickables(page)["x"].option == "b"
    assert list(pages.clickables(page)).count("x") == 1


def test_page_after_the_purchase():
    page = pages.done("B0MUG", {"size": "5' <é>", "color": "red"}, 0.75)
    assert pages.text(page) == (
        "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] (Paste it in your MTurk "
        "interface.) [SEP] Purchased [SEP] asin [SEP] B0MUG [SEP] options [SEP] "
        r'{"color": "red", "size": "5\u0027 \u003c\u00e9\u003e"} '
        "[SEP] attrs [SEP] None [SEP] category [SEP] None [SEP] query [SEP] None [SEP] product "
        "category [SEP] None [SEP] Target [SEP] asin [SEP] options [SEP] attrs [SEP] price upper "
        "[SEP] instuction text [SEP] category [SEP] product category [SEP] query [SEP] Goal [SEP] "
        "None [SEP] Reward [SEP] Your score (min 0.0, max 1.0) [SEP] 0.75 [SEP] Reward Details "
        "[SEP] None"
    )
    assert pages.clickables(page) == {}
