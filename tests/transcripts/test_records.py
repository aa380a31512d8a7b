"""What is JSON, what is damage, and that damage is named while the rest is read."""

import json

import pytest

from osmia_memory.errors import TranscriptError
from osmia_memory.transcripts.records import MAX_RECORD_BYTES, Skips, decode, take_apart

A, B, C = b'{"n": 1, "x": "a"}', b'{"n": 2, "x": "b"}', b'{"n": 3, "x": "c"}'


def numbers(data: bytes) -> tuple[list[tuple[int, int]], list[tuple[str, str]]]:
    """((line, n) of the objects read, the skips) of a JSONL file."""
    skips = Skips("f")
    content = take_apart(data, "f")
    return [(r.number, r.value["n"]) for r in decode(content.lines, skips)], [tuple(s) for s in skips.result()]


def test_every_line_is_a_record_with_its_line_number():
    """Empty lines count as lines and give no record."""
    assert numbers(b"\n".join((A, b"", B, C, b""))) == ([(0, 1), (2, 2), (3, 3)], [])


def test_glued_objects_are_two_records_of_one_line():
    """Two objects without a newline between them are both read, and nothing is lost by it."""
    assert numbers(b"\n".join((A, B + C))) == ([(0, 1), (1, 2), (1, 3)], [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"n": 9, "x": "cut', "record cut off at the end of the file"),
        (b'["n"]', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"npm warn something", "record cut off at the end of the file"),
    ],
)
def test_a_last_line_that_is_no_object_is_named(line: bytes, reason: str):
    """The last line of a file being written may end anywhere."""
    read, skipped = numbers(b"\n".join((A, B, line)))
    assert read == [(0, 1), (1, 2)]
    assert skipped == [("f:2", reason)]


@pytest.mark.parametrize(("line", "reason"), [(b'{"n": 9,', "invalid JSON"), (b"npm warn something", "not a JSON record")])
def test_damage_in_the_middle_does_not_end_the_file(line: bytes, reason: str):
    """What follows a damaged line is read."""
    read, skipped = numbers(b"\n".join((A, line, C)))
    assert read == [(0, 1), (2, 3)]
    assert skipped == [("f:1", reason)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\0\0\0" + B, "NUL bytes removed"),
        (b'{"n": 2, "x": "\xff\xfe"}', "invalid UTF-8 replaced"),
        (b'{"n": 2, "x": "\\ud83d"}', "lone surrogates replaced"),
    ],
)
def test_bad_bytes_are_mended_and_named(line: bytes, reason: str):
    """A record with NUL bytes, broken UTF-8 or half a surrogate pair is read, and it is said that it was mended."""
    read, skipped = numbers(b"\n".join((A, line, C)))
    assert read == [(0, 1), (1, 2), (2, 3)]
    assert skipped == [("f:1", reason)]


def test_mended_text_can_be_encoded():
    """A lone surrogate would make every later write of the text fail."""
    (record,) = decode([b'{"x": "\\ud83d and \\ud83d\\ude00"}'], Skips("f"))
    assert record.value["x"].encode() == "� and 😀".encode()


def test_a_record_over_the_limit_is_skipped_unparsed():
    """One huge record costs itself only."""
    huge = b'{"n": 2, "x": "' + b"y" * MAX_RECORD_BYTES + b'"}'
    read, skipped = numbers(b"\n".join((A, huge, C)))
    assert read == [(0, 1), (2, 3)]
    assert skipped == [("f:1", "record of 34 MB (the limit is 32 MiB)")]


def test_many_skips_of_one_kind_are_counted_not_listed():
    """A thousand bad lines are five names and a number."""
    skips = Skips("f")
    for number in range(1000):
        skips.add(number, "invalid JSON")
    assert [tuple(s) for s in skips.result()][-2:] == [("f:4", "invalid JSON"), ("f", "995 more: invalid JSON")]


def test_ignored_prefixes_are_not_parsed_unless_something_is_glued_to_them():
    """Housekeeping is passed over fast, but an object glued behind it is not lost."""
    lines = [b'{"type":"mode"}', b'{"type":"mode"}{"n":5}', A]
    assert [r.value.get("n") for r in decode(lines, Skips("f"), (b'{"type":"mode"',))] == [None, 5, 1]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\0\0\0", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error_that_says_so(data: bytes):
    """Nothing to read is not the same as nothing recognised."""
    with pytest.raises(TranscriptError, match="f: the file is empty"):
        take_apart(data, "f")


def test_binary_and_text_are_told_apart():
    """The message says what the file looks like."""
    with pytest.raises(TranscriptError, match="binary data"):
        take_apart(bytes(range(256)) * 9, "f")
    with pytest.raises(TranscriptError, match="text that is no JSON"):
        take_apart(b"# Notes\nSome words.\n", "f")


@pytest.mark.parametrize("text", ['{"a": {"b": 1}, "c": [1, 2]}', '[{"a": 1}, {"b": 2}]'])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_one_value_whatever_its_layout(text: str, indent: int | None):
    """Pretty-printed or on one line."""
    value = json.loads(text)
    assert take_apart(json.dumps(value, indent=indent).encode(), "f").documents == [value]


def test_two_documents_in_one_file_are_both_read():
    """Concatenated pretty-printed documents are no JSONL and no single document."""
    data = b"\n".join(json.dumps({"n": n, "list": [1, 2]}, indent=2).encode() for n in (1, 2))
    assert [d["n"] for d in take_apart(data, "f").documents] == [1, 2]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_cut_document_gives_its_whole_members_and_items(indent: int | None):
    """Of a document that ends too early, what was complete is read."""
    text = json.dumps({"info": {"a": 1}, "messages": [{"m": n, "t": "x" * 40} for n in range(9)]}, indent=indent)
    content = take_apart(text[: text.index('"m": 5') + 20].encode(), "f")
    assert content.cut
    assert content.documents[0]["info"] == {"a": 1}
    assert [m["m"] for m in content.documents[0]["messages"]] == [0, 1, 2, 3, 4]


def test_a_byte_order_mark_and_utf_16_are_no_obstacle():
    """Files that went through another system's shell."""
    for data in (b"\xef\xbb\xbf" + A + b"\n" + B, (A + b"\n" + B).decode().encode("utf-16")):
        assert [n for _, n in numbers(data)[0]] == [1, 2]
