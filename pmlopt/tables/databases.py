"""Tables and queries of databases as data, by ADBC: PostgreSQL, SQLite and DuckDB.

All reads of a release are in one transaction, and so see the same rows. The released rows may be written back
as a new table by the same transaction. Draws are made outside of the database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from pmlopt.core.failures import hide_passwords
from pmlopt.core.lazy_imports import import_optional, parquet, pyarrow
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.cells import get_plain_type
from pmlopt.tables.frame_tables import quote_name
from pmlopt.tables.table import Table, TableBatch, make_no_people_error


class Database:
    """A table or a query of a database, whose rows are read in one snapshot.

    Its connection is open within a `with` block.

    Args:
        url: `postgresql://...` as libpq has it, `sqlite:///FILE` or `duckdb:///FILE`.
        table: its name, with that of the schema and a dot in front where it is in another one.
        query: the SQL that selects the rows, in place of a table.

    Raises:
        InputError: the database is another one, or not one of table and query is given.

    Examples:
        >>> Database("postgresql://ann:secret@db.example:5432/census", table="people")
        <Database postgresql://db.example:5432/census, table people>
        >>> Database("mysql://db/census", table="people")
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: mysql://db/census: give a database as postgresql://, sqlite:///FILE or duckdb:///FILE
    """

    def __init__(self, url: str, *, table: str | None = None, query: str | None = None) -> None:
        self._url = url
        self._scheme = url.partition("://")[0].lower()
        shown = hide_passwords(url)
        if self._scheme not in _CONNECTORS:
            raise InputError(
                f"{shown}: give a database as postgresql://, sqlite:///FILE or duckdb:///FILE"
            )
        if (table is None) == (query is None):
            raise InputError(f"{_name_place(url)}: give --table NAME or --query SQL, one of them")
        if query is not None:
            query = _strip_query(query)
            if not query or ";" in _SQL_TEXTS.sub("", query):
                # drivers run the first or the last one, or all
                raise InputError(f"{_name_place(url)}: give --query one statement of SQL, a SELECT")
        self._table = table
        self._query = query
        self.name = f"{_name_place(url)}, {'the query' if table is None else f'table {table}'}"
        self._connection: Any = None

    def __repr__(self) -> str:
        """Return the place and the table, without user and password."""
        return f"<Database {self.name}>"

    def __enter__(self) -> Self:
        with self._errors():
            self._connection = _CONNECTORS[self._scheme](self._url)
            for statement in _SNAPSHOTS.get(self._scheme, ()):
                self._execute(statement)
        return self

    def __exit__(self, *_: object) -> None:
        # what fails here was not committed, and is not
        with suppress(FileFormatError), self._errors():
            self._connection.rollback()
            self._connection.close()

    def _execute(self, statement: str) -> None:
        """Execute a statement without an answer."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what a driver raises as an error that names the database, without its password."""
        manager = import_optional("adbc_driver_manager", "databases")
        try:
            yield
        except (manager.Error, OSError) as cause:
            said = str(cause).partition("\n")[0]
            for secret in _list_secrets(self._url):
                said = said.replace(secret, "***")
            if "Type mismatch" in said:
                said += ": give a --query that casts the column to one type"
            raise FileFormatError(f"{self.name}: {hide_passwords(said)}") from None

    def open_table(self) -> DatabaseTable:
        """Return the table, which begins to read its rows."""
        orders = self._find_enumerations()
        select = self._query or " ".join(("SELECT * FROM", _quote_names(str(self._table))))
        with self._errors(), ExitStack() as opened:
            cursor = opened.enter_context(self._connection.cursor())
            cursor.adbc_statement.set_options(**_OPTIONS.get(self._scheme, {}))
            cursor.execute(select)
            table = DatabaseTable(self.name, cursor, self._errors, orders)
            opened.pop_all()  # the table closes it
            return table

    def _find_enumerations(self) -> Mapping[str, tuple[str, ...]]:
        """Return the values of the enumerations of PostgreSQL, in their order, by the type."""
        if not self._scheme.startswith("postgres"):
            return {}
        found: dict[str, list[str]] = {}
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(_ENUMERATIONS)
            for name, label in cursor.fetchall():
                found.setdefault(name, []).append(label)
        return {name: tuple(labels) for name, labels in found.items()}

    def reserve_table(self, name: str) -> None:
        """Make a new table, of which nobody sees anything before it is filled.

        Raises:
            FileFormatError: there is one of that name, or none may be made.
        """
        with self._errors():
            # what is made within this transaction shows that the name is free and may be taken
            self._execute(f"CREATE TABLE {_quote_names(name)} (reserved INTEGER)")

    def fill_table(self, name: str, path: str | os.PathLike[str]) -> int:
        """Fill the reserved table with the rows of a Parquet file, and commit; return their number.

        Raises:
            FileFormatError: the database refuses; then it has no such table.
        """
        schema, _, own = name.rpartition(".")
        with self._errors(), parquet.ParquetFile(path) as file:
            plain = pyarrow.schema(
                [(one.name, get_plain_type(one.type, one.name)) for one in file.schema_arrow]
            )
            batches = (one.cast(plain) for one in file.iter_batches())
            self._execute(f"DROP TABLE {_quote_names(name)}")
            with self._connection.cursor() as cursor:
                cursor.adbc_ingest(
                    own, pyarrow.RecordBatchReader.from_batches(plain, batches), mode="create",
                    db_schema_name=schema or None,
                )  # fmt: skip
            self._connection.commit()
            return int(file.metadata.num_rows)


class DatabaseTable(Table):
    """The rows of a database, read once, in no order.

    Args:
        where: the database, for messages.
        cursor: that has executed the query.
        errors: converts those of the driver.
        orders: the values of enumerations in their order, by the type.
    """

    is_ordered = False

    def __init__(
        self, where: str, cursor: Any, errors: Any, orders: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.where = where
        self._cursor = cursor
        self._errors = errors
        self._reader = cursor.fetch_record_batch()
        schema = self._reader.schema
        self.names = list(schema.names)
        self.types = [_choose_type(field) for field in schema]
        kinds = [(field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in schema]
        self._orders = {place: orders[kind] for place, kind in enumerate(kinds) if kind in orders}

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        first = 1
        with self._errors():
            for batch in self._reader:
                columns = [
                    _convert_cells(column, kind)
                    for column, kind in zip(batch.columns, self.types, strict=True)
                ]
                found = TableBatch(
                    columns, batch.num_rows, first, text=False, names=self.names, where=self.where
                )
                found.orders = self._orders | _list_dictionaries(columns)
                first += batch.num_rows
                yield found
        if first == 1:
            raise make_no_people_error(self.where)

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()
        self._cursor.close()


def _choose_type(field: Any) -> Any:
    """Return the type of Arrow as which a column is read, which is none of an extension."""
    kind = field.type
    if not isinstance(kind, pyarrow.BaseExtensionType):
        return kind
    about = field.metadata or {}
    if getattr(kind, "type_name", "") == "numeric":
        # the precision and the scale are the halves of a number from 4 on
        stated = int(about.get(b"POSTGRESQL:typmod", b"-1")) - 4
        precision, scale = divmod(stated, 2**16)
        if stated >= 0 and precision <= 76 and scale <= precision:
            make = pyarrow.decimal128 if precision <= 38 else pyarrow.decimal256
            return make(precision, scale)
    return pyarrow.string() if "uuid" in str(kind) else kind.storage_type


def _convert_cells(column: Any, kind: Any) -> Any:
    """Return a column as another type."""
    if column.type == kind:
        return column
    if "uuid" in str(column.type):
        return pyarrow.array(
            [None if one is None else str(one) for one in column.to_pylist()], kind
        )
    return column.storage.cast(kind)


def _list_dictionaries(columns: list[Any]) -> dict[int, tuple[Any, ...]]:
    """Return the values of columns with a dictionary, which has all of an enumeration of DuckDB in order."""
    return {
        place: tuple(column.dictionary.to_pylist())
        for place, column in enumerate(columns)
        if pyarrow.types.is_dictionary(column.type)
    }


def _strip_query(query: str) -> str:
    """Return a query without comments and the semicolon behind it, which COPY of PostgreSQL does not take."""
    without = _SQL_TEXTS.sub(lambda found: " " if found[0][0] in "-/" else found[0], query)
    return without.strip("; \t\r\n")


def _quote_names(name: str) -> str:
    """Quote the name of a table, and that of its schema."""
    return ".".join(map(quote_name, name.split(".")))


def _name_place(url: str) -> str:
    """Return the URL of a database without user, password and options."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        return f"{parts.scheme}://{host}{parts.path}"
    except ValueError:
        return f"{url.partition('://')[0]}://"


def _list_secrets(url: str) -> list[str]:
    """Return what no message may show of a URL: passwords, as they are written and as they are meant."""
    found = re.findall(r"://[^:/@]*:(.+)@", url) + re.findall(r"password=([^&]+)", url)
    return sorted({*found, *map(unquote, found)}, key=len, reverse=True)


def _connect_postgresql(url: str) -> Any:
    """Connect to a server of PostgreSQL."""
    return import_optional("adbc_driver_postgresql.dbapi", "databases of PostgreSQL").connect(url)


def _connect_sqlite(url: str) -> Any:
    """Connect to a file of SQLite, which must be there."""
    driver = import_optional("adbc_driver_sqlite.dbapi", "databases of SQLite")
    return driver.connect(f"file:{quote(_find_file(url))}?mode=rw")


def _connect_duckdb(url: str) -> Any:
    """Connect to a file of DuckDB, which must be there."""
    driver = import_optional("adbc_driver_duckdb.dbapi", "databases of DuckDB")
    return driver.connect(_find_file(url))


def _find_file(url: str) -> str:
    """Return the path of a database that is a file."""
    rest = url.partition("://")[2]
    path = rest.removeprefix("/")
    if not rest.startswith("/") or not Path(path).is_file():
        raise FileFormatError(
            f"{url}: there is no file {path!r}; a path of three slashes is relative, of four absolute"
        )
    return path


_CONNECTORS: Mapping[str, Callable[[str], Any]] = {
    "postgresql": _connect_postgresql,
    "postgres": _connect_postgresql,
    "sqlite": _connect_sqlite,
    "duckdb": _connect_duckdb,
}

_SQL_TEXTS = re.compile(
    r"""\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|"""
    r"""--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$""",
    re.DOTALL,
)
"""Text, names and comments of SQL, in which a semicolon ends no statement."""

_REPEATABLE = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",)
_SNAPSHOTS = {"postgresql": _REPEATABLE, "postgres": _REPEATABLE}
"""What makes a transaction one snapshot, which it is in SQLite and DuckDB."""

# the driver of SQLite takes the types of columns from the rows of the first batch
_OPTIONS = {"sqlite": {"adbc.sqlite.query.batch_rows": "65536"}}

_ENUMERATIONS = (
    "SELECT t.typname::text, e.enumlabel::text FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid "
    "WHERE pg_type_is_visible(t.oid) ORDER BY t.oid, e.enumsortorder"
)
