"""Which encoding a file has, and that its bytes survive."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tui_agent.text_files.encodings import (
    Encoding,
    declared_encoding,
    detect,
    settings_text,
    user_text,
)

GUESSED = (
    ("cp1252", "price = “5 €”\n"),
    ("cp1252", "Größe\nnaïve café\n"),
    ("cp1252", "it’s © 2020, 20°C ± 1, « où »\n"),
    ("cp932", "これはテストです。日本語の文章\n"),
    ("euc_jp", "これはテストです。日本語の文章\n"),
    ("gb18030", "这是一个测试文件，里面有中文。\n"),
    ("big5", "這是一個測試檔案，裡面有中文。\n"),
    ("cp949", "이것은 한국어 텍스트입니다.\n"),
    ("cp1251", "Это проверка русского текста в старой кодировке.\n"),
    ("koi8_r", "Это проверка русского текста в старой кодировке.\n"),
    ("cp1250", "Zażółć gęślą jaźń, proszę bardzo\n"),
    ("cp1253", "Αυτό είναι ένα τεστ\n"),
)
DECLARED = (
    (b"# -*- coding: latin-1 -*-\nx = 1\n", "iso8859-1"),
    (b"#!/usr/bin/env ruby\n# encoding: shift_jis\n", "cp932"),
    (b";; -*- mode: lisp; coding: euc-jp-unix -*-\n", "euc_jp"),
    (b"# vim: set fileencoding=koi8-r :\n", "koi8-r"),
    (b'<?xml version="1.0" encoding="ISO-8859-2"?>\n<a/>\n', "iso8859-2"),
    (b'<!DOCTYPE html>\n<meta charset="iso-8859-1">\n', "cp1252"),
    (
        b'<html><meta http-equiv="Content-Type" content="text/html; charset=windows-1251">\n',
        "cp1251",
    ),
    (b'@charset "iso-8859-15";\n', "iso8859-15"),
    (b"# -*- coding: utf-16 -*-\n", "utf-8"),
    (b"# coding: rot13\n", "utf-8"),
    (b"# coding: nothing-known\n", "utf-8"),
)
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
}


@pytest.mark.parametrize(("name", "text"), GUESSED)
def test_text_in_an_older_encoding_is_read_as_it_was_written(name: str, text: str) -> None:
    found = detect(text.encode(name))
    assert found is not None
    assert found.decode(text.encode(name)) == text


@pytest.mark.parametrize(("data", "name"), DECLARED)
def test_a_declared_encoding_counts_while_the_file_is_not_utf_8(data: bytes, name: str) -> None:
    assert detect(data) == Encoding(name)
    assert detect(data + "é→\n".encode()) == Encoding()


def test_one_odd_byte_does_not_change_how_the_rest_is_read() -> None:
    data = "Zoé".encode() + b" \xff\n"
    assert detect(data) == Encoding()
    assert detect(b"raw \xff\n") == Encoding()
    assert user_text(data) == "Zoé \ufffd\n"


@pytest.mark.parametrize(
    "data", [b"\0\1\2", b"\x89PNG\r\n\x1a\n\0\0", bytes(range(1, 32)) * 4 + b"\xff\xfe\xfd"]
)
def test_other_bytes_are_no_text(data: bytes) -> None:
    assert detect(data) is None


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=300).map(lambda data: data.replace(b"\0", b"")))
def test_odd_bytes_in_utf_8_are_carried(data: bytes) -> None:
    assert Encoding().encode(Encoding().decode(data)) == data


@pytest.mark.parametrize(("mark", "name"), MARKS.items())
def test_settings_and_instructions_are_read_with_any_mark(mark: bytes, name: str) -> None:
    data = mark + "key = 'wörld'\r\n".encode(name)
    assert settings_text(data) == user_text(data) == "key = 'wörld'\r\n"


def test_settings_with_odd_bytes_are_refused_with_the_line() -> None:
    with pytest.raises(ValueError, match="line 2 has bytes that are not text"):
        settings_text(b"a = 'Zo\xc3\xa9'\nb = '\xff'\n")


@pytest.mark.parametrize(
    ("text", "charset", "data"),
    [
        ("x = 'é'\n", "", "x = 'é'\n".encode()),
        ("x = 'é'\n", "latin1", b"x = '\xe9'\n"),
        ("x = 'é'\n", "utf-8-bom", b"\xef\xbb\xbfx = '\xc3\xa9'\n"),
        ("é\n", "utf-16be", b"\xfe\xff\0\xe9\0\n"),
        ("# coding: latin-1\nx = 'é'\n", "", b"# coding: latin-1\nx = '\xe9'\n"),
        ("é\n", "unheard-of", "é\n".encode()),
    ],
)
def test_a_new_file_is_written_as_it_is_declared(text: str, charset: str, data: bytes) -> None:
    assert declared_encoding(text, charset).encode(text) == data


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_known_by_its_zeros(name: str) -> None:
    text = "Windows Registry – Ünïcode\r\n[HKEY]\r\n"
    assert detect(text.encode(name)) == Encoding(name)
    assert detect(text.encode(name)[:-1], whole=False) == Encoding(name)
    assert detect(b"\x01\0\x02\0\x03\0\x04\0\x05\0\x06\0") is None
    assert detect(b"a log with one \0 in it\n") is None
