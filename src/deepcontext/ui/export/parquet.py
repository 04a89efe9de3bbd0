"""Parquet: a row for each metric of each call path, of one process or of all processes of a host.

The columns are the same as in the table `costs` (`deepcontext.ui.sql.tables`), so DuckDB, Polars,
Spark and `deepcontext query` use the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.profiler.format.writing import FileKind
from deepcontext.ui.export.formats import Format

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deepcontext.profiler.model.profile import Profile

_MAGIC: Final = b"PAR1"
# The text of the first column, which stands uncompressed in the first page.
_MADE_BY: Final = "deepcontext costs 1"
_FIRST_PAGE_BYTES: Final = 256


def of_processes(profiles: Iterable[Profile]) -> bytes:
    """Return a file with the costs of several processes.

    Args:
        profiles: read one after the other, so that an iterator need not hold them all.

    Raises:
        EnvironmentProblem: the package duckdb is not installed.
    """
    from deepcontext.ui.sql.database import Database  # noqa: PLC0415  an extra
    from deepcontext.ui.sql.tables import Tables  # noqa: PLC0415

    with Database() as database:
        tables = Tables(database)
        for profile in profiles:
            tables.add(profile)
        return database.parquet(
            f"SELECT '{_MADE_BY}' AS format, * FROM costs"  # noqa: S608
        )


def _matches(head: bytes, name: str) -> bool:
    del name
    return head.startswith(_MAGIC) and _MADE_BY.encode() in head[:_FIRST_PAGE_BYTES]


FORMAT: Final = Format(
    None,
    ".parquet",
    FileKind("a Parquet file of deepcontext", _matches),
    opened_by="duckdb -c \"SUMMARIZE FROM '{}'\"",
    of_profile=lambda profile: of_processes([profile]),
    of_processes=of_processes,
)
