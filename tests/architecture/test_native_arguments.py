"""No call of C++ has two arguments of which one changes what the other reads.

Their order is unspecified. `-Wsequence-point` and `-Wunsequenced` see scalars (`f(i++, i)`), not objects, and
no check of clang-tidy does.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
# Members that change their object. A reader's `u32()` or `text()` moves on, too.
_CHANGES = (
    r"emplace\w*|push\w*|insert\w*|pop\w*|erase|clear|resize|assign|append|swap|release|reset|extract|"
    r"read\w*|next\w*|take\w*|skip\w*|u8|u16|u32|u64|varint|bytes"
)
_CHANGE = re.compile(rf"\b(\w+(?:(?:\.|->)\w+)*?)(?:\.|->)(?:{_CHANGES})\(")
_OPENING, _CLOSING = "([{", ")]}"


def _without_noise(text: str) -> str:
    """Strings, characters, comments and directives as blanks, so that brackets balance."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^\s*#(?:\\\n|[^\n])*'
    return re.sub(
        pattern,
        lambda found: re.sub(r"[^\n]", " ", found[0]),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def _calls(text: str) -> list[tuple[int, list[str]]]:
    """Position and arguments of each pair of round brackets behind a name."""
    found, open_brackets = [], []
    for place, letter in enumerate(text):
        if letter in _OPENING:
            open_brackets.append((place, letter, [place + 1]))
        elif letter in _CLOSING and open_brackets:
            start, kind, cuts = open_brackets.pop()
            name = re.search(r"(\w+)>?\s*$", text[max(0, start - 60) : start])
            if kind == "(" and name and name[1] not in {"for", "if", "while", "switch", "return"}:
                ends = [cut - 1 for cut in cuts[1:]] + [place]
                found.append((start, [text[a:b] for a, b in zip(cuts, ends, strict=True)]))
        elif letter == "," and open_brackets:
            open_brackets[-1][2].append(place + 1)
    return found


def unsequenced(text: str) -> list[str]:
    """The line and the object of each call whose arguments depend on their order."""
    text = _without_noise(text)
    told = []
    for place, all_arguments in _calls(text):
        line = text.count("\n", 0, place) + 1
        # What a lambda does, it does when it is called.
        arguments = [each for each in all_arguments if not each.lstrip().startswith("[")]
        for number, argument in enumerate(arguments):
            others = " ".join(arguments[:number] + arguments[number + 1 :])
            changed = {found[1] for found in _CHANGE.finditer(argument)}
            uses = (rf"(?<![\w.>]){re.escape(name)}\b(?!\()" for name in changed)
            told += [f"{line}: {use}" for use in uses if re.search(use, others)]
    return told


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("std::iota(groups.emplace_back(n).begin(), groups[0].end(), 0);", True),
        ("make(in.u32(), in.u32());", True),
        ("f(this->list.push(1), this->list.size());", True),
        ("Pair{in.u32(), in.u32()};", False),  # braces are in order
        ("f(g(list.push(1)), other);", False),
        ('say("f(list.push(1), list)");', False),
        ("for (x; list.pop(); list) {}", False),
        ("visit(list, [&] { list.push(1); });", False),
    ],
)
def test_the_lint_itself(text: str, *, is_told: bool) -> None:
    assert bool(unsequenced(text)) == is_told


def test_no_argument_changes_what_another_reads() -> None:
    told = {
        f"{path.relative_to(NATIVE)}:{each}"
        for path in sorted([*NATIVE.rglob("*.cpp"), *NATIVE.rglob("*.h")])
        for each in unsequenced(path.read_text(encoding="utf-8"))
    }
    assert told == set()
