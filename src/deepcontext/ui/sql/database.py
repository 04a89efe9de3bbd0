"""A database in memory; `tables.py` fills it.

The database cannot access files, the network or extensions, whatever the SQL contains.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from deepcontext.errors import EnvironmentProblem, QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MISSING: Final = (
    "SQL needs the package duckdb, which is not installed; run "
    "'pip install \"deepcontext-profiler[sql]\"'"
)
# Without a folder for temporary files, rows that do not fit into memory are an error.
_SETTINGS: Final = (
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
)


class Database:
    """A connection to a database in memory; a context manager that closes it.

    Raises:
        EnvironmentProblem: the package duckdb is not installed.
    """

    def __init__(self) -> None:
        try:
            import duckdb  # noqa: PLC0415  an extra
        except ImportError as error:
            raise EnvironmentProblem(_MISSING) from error
        self._error: type[Exception] = duckdb.Error
        self._memory_error: type[Exception] = duckdb.OutOfMemoryException
        self._connection: Any = duckdb.connect()
        for statement in _SETTINGS:
            self._connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self, sql: str, values: Sequence[object] = ()) -> None:
        """Run a statement of the profiler.

        Raises:
            EnvironmentProblem: the memory is exhausted.
        """
        try:
            self._connection.execute(sql, list(values))
        except self._error as error:
            raise self._exhausted(error) from error

    def insert(self, table: str, columns: dict[str, Any]) -> None:
        """Append rows to a table.

        Args:
            table: its name.
            columns: one array for each column, all of one length, in the order of the table.
        """
        self._connection.register("added", columns)
        self.run(f"INSERT INTO {table} SELECT * FROM added")  # noqa: S608
        self._connection.unregister("added")

    def parquet(self, sql: str) -> bytes:
        """Return the rows of a query as a Parquet file."""
        with tempfile.TemporaryDirectory(prefix="deepcontext-") as folder:
            path = Path(folder, "rows.parquet")
            quoted = str(path).replace("'", "''")
            self.run(f"COPY ({sql}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
            return path.read_bytes()

    def _exhausted(self, error: Exception) -> Exception:
        """Return the error for a statement of the profiler that failed."""
        if not isinstance(error, self._memory_error):
            return error
        return EnvironmentProblem(
            f"the tables do not fit into memory ({_one_line(str(error))}); name fewer profiles, or "
            "write Parquet files with 'deepcontext export' and query them in DuckDB"
        )

    def ask(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns, and the rows, of a user's query.

        Raises:
            QueryError: the database refuses the SQL.
        """
        for statement in (
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(statement)
        try:
            answer = self._connection.execute(sql)
            names = [str(column[0]) for column in answer.description or ()]
            return names, answer.fetchall()
        except self._error as error:
            raise QueryError(f"cannot run the SQL: {_one_line(str(error))}") from error


def _one_line(message: str) -> str:
    """Return a message of DuckDB without the marked SQL line, which takes several lines."""
    text, _, _ = message.partition("\n\nLINE ")
    return " ".join(text.split()).rstrip(".!")
