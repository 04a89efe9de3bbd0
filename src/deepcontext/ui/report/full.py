"""The report with every section, in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.ui.report import account, arithmetic, between, findings, header, sections
from deepcontext.ui.report.overview import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.ui.report.sections import View
    from deepcontext.ui.report.text_layout import TextLayout

# What the full report shows in place of a section of the overview.
_IN_FULL: Final = {
    "floating-point operations": (
        arithmetic.print_arithmetic,
        arithmetic.print_arithmetic_by_shapes,
        arithmetic.print_efficiency,
    ),
    "phases": (sections.print_phases,),
    "modules": (sections.print_modules, sections.print_scopes),
    "time between operators": (between.print_between,),
}


def print_full(layout: TextLayout, view: View, warnings: Sequence[str]) -> None:
    """Print all sections of a profile, with `view.limit` rows in each table."""
    header.print_header(layout, view)
    account.print_verdicts(layout, view)
    header.print_all_warnings(layout, warnings)
    account.print_account(layout, view)
    findings.print_summary(layout, view)
    for name, (print_short, _) in SECTIONS.items():
        for print_section in _IN_FULL.get(name, (print_short,)):
            print_section(layout, view)
    header.print_trust(layout, view.profile.trust)
    layout.line()
