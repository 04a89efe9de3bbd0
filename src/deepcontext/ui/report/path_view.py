"""Print call paths as an indented tree; `paths.py` chooses the paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.ui.format import (
    elide,
    format_count,
    format_share,
    frame_label,
)
from deepcontext.ui.report.paths import exclusive_paths, inclusive_paths
from deepcontext.ui.sections.table import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.ui.report.paths import PathRow, PathTree
    from deepcontext.ui.report.text_layout import TextLayout
    from deepcontext.ui.sections.view import View

_KIND_STYLES: Final = {
    FrameKind.MODULE: "green",
    FrameKind.OPERATOR: "yellow",
    FrameKind.SCOPE: "magenta",
    FrameKind.RANK: "dim",
    FrameKind.THREAD: "dim",
    FrameKind.MARKER: "dim",
}
_LEAST_LABEL: Final = 24
_LEAST_LAST: Final = 20
_BETWEEN: Final = " > "


def print_paths(layout: TextLayout, view: View) -> None:
    """Print the call paths to the nodes with the largest exclusive values."""
    tree = exclusive_paths(view.profile, view.metric, view.limit)
    if not tree.rows:
        return
    layout.title("Call paths", f"to the {view.limit} largest by self; libraries are not named")
    printer = _TreePrinter(layout, view)
    printer.print_rows(tree)
    printer.print_hidden(tree)


def print_total_paths(layout: TextLayout, view: View, title: str = "Call paths by total") -> bool:
    """Print the costliest call paths from the top; return whether there are any."""
    tree = inclusive_paths(view.profile, view.metric, 2 * view.limit)
    if not tree.rows:
        return False
    share = format_share(tree.threshold)
    layout.title(title, f"of at least {share}; frames of libraries are not named")
    printer = _TreePrinter(layout, view)
    printer.print_rows(tree)
    printer.print_hidden(tree)
    return True


def print_tree(layout: TextLayout, view: View) -> None:
    """Print the costliest call paths without a title, in at most about twice `view.limit` rows."""
    printer = _TreePrinter(layout, view)
    tree = inclusive_paths(view.profile, view.metric, 2 * view.limit)
    printer.print_rows(tree)
    printer.print_hidden(tree)


class _TreePrinter:
    """Prints rows of nodes with their costs."""

    def __init__(self, layout: TextLayout, view: View) -> None:
        profile = view.profile
        self._layout = layout
        self._view = view
        self._exclusive = profile.exclusive(view.metric)
        self._inclusive = profile.inclusive(view.metric)
        self._total = int(self._inclusive[0])
        # Frames inside a library say little about the program and make paths long.
        python = profile.frames.kind == FrameKind.PYTHON
        self._is_unnamed = python & ~profile.is_user_code()

    def print_rows(self, tree: PathTree) -> None:
        """Print the rows under a heading."""
        layout = self._layout
        layout.line(Text(f"{'share':>9}{'total':>10}{'self':>10}  path", "dim"))
        for row in tree.rows:
            numbers = self._numbers(row)
            rails = _rails(layout, row, layout.width - len(numbers) - _LEAST_LABEL)
            label = self._chain(row.nodes, layout.width - len(numbers) - len(rails))
            layout.line(Text.assemble(numbers, (rails, "dim"), label))

    def print_hidden(self, tree: PathTree) -> None:
        """Print how much the rows leave out."""
        if not tree.hidden_nodes:
            return
        text = f"  not shown: {format_count(tree.hidden_nodes)} smaller path"
        text += "" if tree.hidden_nodes == 1 else "s"
        # With a threshold, hidden values are part of a shown path's total, so only their count helps.
        if not tree.threshold:
            value = self._view.text_of(tree.hidden_value, Unit.METRIC)
            text += f", {value} self, {format_share(tree.hidden_value / self._total)}"
        self._layout.line(text, "dim")

    def _numbers(self, row: PathRow) -> str:
        """Return the costs of a row's last node, because a row is about the node it leads to."""
        total = int(self._inclusive[row.nodes[-1]])
        exclusive = int(self._exclusive[row.nodes[-1]])
        return (
            f"{format_share(total / self._total):>9}{self._view.text_of(total, Unit.METRIC):>10}"
            f"{self._view.text_of(exclusive, Unit.METRIC):>10}  "
        )

    def _chain(self, nodes: Sequence[int], room: int) -> Text:
        """Return the frames of a row from top to bottom; frames that do not fit are counted.

        The last frames are the most informative, so they stay longest; the first frame stays too,
        because it shows where the row begins.
        """
        frame_of = self._view.profile.tree.frame
        named = [node for node in nodes if not self._is_unnamed[frame_of[node]]] or nodes[-1:]
        tail = self._fitting_tail(named, room)
        if len(tail) == len(named):
            return Text(_BETWEEN).join(tail)
        first = self._label(named[0])
        for kept in range(min(len(tail), len(named) - 2), 0, -1):
            text = self._joined(first, len(named) - 1 - kept, tail[-kept:])
            if text.cell_len <= room:
                return text
        return self._squeezed(first, self._label(named[-1]), len(named), room)

    def _fitting_tail(self, nodes: Sequence[int], room: int) -> list[Text]:
        """Return the labels of as many of the last nodes as fit side by side."""
        tail: list[Text] = []
        taken = -len(_BETWEEN)
        # From the end, stopping at the width, because a chain may be thousands of frames long.
        for node in reversed(nodes):
            label = self._label(node)
            taken += len(_BETWEEN) + label.cell_len
            if taken > room:
                break
            tail.append(label)
        return tail[::-1]

    def _squeezed(self, first: Text, last: Text, count: int, room: int) -> Text:
        """Return the first and last of `count` frames, with the last shortened to fit."""
        glyphs = self._layout.glyphs
        head = Text()
        if count > 1:
            head = self._joined(first, count - 2, [Text()])
            if room - head.cell_len < min(_LEAST_LAST, last.cell_len):
                head = self._joined(None, count - 1, [Text()])
        return head.append(elide(last.plain, max(room - head.cell_len, 4), glyphs), last.style)

    def _joined(self, first: Text | None, missing: int, tail: Sequence[Text]) -> Text:
        """Return labels with the number of labels left out between them."""
        gap = Text(f"{self._layout.glyphs.ellipsis} {missing} more", "dim")
        head = [] if first is None else [first]
        return Text(_BETWEEN).join([*head, *([gap] if missing else []), *tail])

    def _label(self, node: int) -> Text:
        frame = self._view.profile.frame(node)
        return Text(self._layout.clean(frame_label(frame)), _KIND_STYLES.get(frame.kind, ""))


def _rails(layout: TextLayout, row: PathRow, room: int) -> str:
    """Return the lines that lead from a row's parent to the row; outer lines are cut first."""
    if not row.rails:
        return ""
    glyphs = layout.glyphs
    outer = "".join(glyphs.trunk if more_follow else "  " for more_follow in row.rails[:-1])
    branch = glyphs.branch if row.rails[-1] else glyphs.last_branch
    if len(outer) + len(branch) <= max(room, len(branch)):
        return outer + branch
    kept = max(room - len(branch) - len(glyphs.ellipsis), 0) // 2 * 2
    return glyphs.ellipsis + outer[len(outer) - kept :] + branch
