"""Values of a large JSON file are the same wherever a read cuts the file."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgrpo.errors import UserError
from hgrpo.games.webshop import json_stream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=8,
)


@pytest.fixture(params=[1, 1000])
def path(request, tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", request.param)
    return tmp_path / "file.json"


@pytest.mark.parametrize("chunk", [1, 7])
@settings(max_examples=40)
@given(values=st.lists(VALUES), indent=st.sampled_from([None, 2]), plain=st.booleans())
def test_every_value_of_an_array_comes_whole(tmp_path_factory, chunk, values, indent, plain):
    path = tmp_path_factory.getbasetemp() / "array.json"
    path.write_text(json.dumps(values, indent=indent, ensure_ascii=plain), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", chunk)
        assert list(json_stream.elements(path, b"[")) == values


def test_the_pairs_of_an_object(path):
    path.write_text('{"a": -12345.5e3,"b" :[1, NaN, -Infinity], "a": {}\n} ', encoding="utf-8")
    assert repr(list(json_stream.elements(path, b"{"))) == (
        "[('a', -12345500.0), ('b', [1, nan, -inf]), ('a', {})]"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a" 1}', "after entry 0 (expected ':', not '1')"),
        ("{1: 2}", "after entry 0 (expected a string as key)"),
        ('{"a": 1, "b": tru}', "after entry 1 (Expecting value)"),
        ('{"a": "no end, ', "after entry 0 (Unterminated string starting at)"),
        ('{"a": 1} {', "after entry 1 (extra data after the closing '}')"),
    ],
)
def test_a_broken_object_is_one_line(path, text, message):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        list(json_stream.elements(path, b"{"))
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1 2]", "after entry 1 (expected ',', not '2')"),
        ("[1,]", "after entry 1 (expected a value before ']')"),
        ("[1", "after entry 1 (unexpected end)"),
    ],
)
def test_a_broken_array_is_one_line(path, text, message):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        list(json_stream.elements(path, b"["))
    assert str(caught.value).endswith(message)
