"""Exceptions: those of DB-API 2.0 (PEP 249), and one for each SQLSTATE that programs look for.

``except fabius.errors.UniqueViolation`` and ``except fabius.IntegrityError`` both catch a row that is there already;
``error.sqlstate`` has the code of any.
"""

from __future__ import annotations

__all__ = [
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
]


class Warning(Exception):  # noqa: A001 (the name is PEP 249's)
    """Something that is worth knowing and no error."""


class Error(Exception):
    """What went wrong, and what to do about it."""

    #: The SQLSTATE, five characters; ``None`` if the package found the error itself.
    sqlstate: str | None = None
    #: What was meant, with its values.
    detail: str | None = None
    #: What to do.
    hint: str | None = None
    #: The character of the statement that the error is about, from 1.
    position: int | None = None
    #: The constraint that does not hold.
    constraint: str | None = None
    #: Where in functions it has come up, the innermost first, a line each.
    context: str | None = None

    def __str__(self) -> str:
        lines = [str(self.args[0]) if self.args else ""]
        if self.detail:
            lines.append(f"DETAIL:  {self.detail}")
        if self.hint:
            lines.append(f"HINT:  {self.hint}")
        return "\n".join(lines)


class InterfaceError(Error):
    """The package was used in a way that it cannot be used."""


class DatabaseError(Error):
    """The database refused."""


class DataError(DatabaseError):
    """A value is none, too large, or of the wrong form (classes 21 and 22)."""


class OperationalError(DatabaseError):
    """Something outside of the statement: conflicts, locks, memory, the disk (classes 08, 40, 53 to 58)."""


class IntegrityError(DatabaseError):
    """A constraint does not hold (class 23)."""


class InternalError(DatabaseError):
    """The transaction is in no state for this, or the database has a fault (classes 24, 25 and XX)."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or not allowed (classes 26 to 42, P0)."""


class NotSupportedError(DatabaseError):
    """What Fabius does not do (class 0A)."""


_CLASSES: dict[str, type[DatabaseError]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "20": ProgrammingError,
    "21": DataError,
    "22": DataError,
    "23": IntegrityError,
    "24": InternalError,
    "25": InternalError,
    "26": ProgrammingError,
    "28": OperationalError,
    "2B": ProgrammingError,
    "34": ProgrammingError,
    "3B": InternalError,
    "3D": ProgrammingError,
    "3F": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
    "44": ProgrammingError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "P0": ProgrammingError,
    "XX": InternalError,
}

_NAMES = {
    "0A000": "FeatureNotSupported",
    "22003": "NumericValueOutOfRange",
    "22007": "InvalidDatetimeFormat",
    "22008": "DatetimeFieldOverflow",
    "22012": "DivisionByZero",
    "22023": "InvalidParameterValue",
    "22P02": "InvalidTextRepresentation",
    "23502": "NotNullViolation",
    "23503": "ForeignKeyViolation",
    "23505": "UniqueViolation",
    "23514": "CheckViolation",
    "25001": "ActiveSqlTransaction",
    "25006": "ReadOnlySqlTransaction",
    "25P02": "InFailedSqlTransaction",
    "3D000": "InvalidCatalogName",
    "3F000": "InvalidSchemaName",
    "40001": "SerializationFailure",
    "40P01": "DeadlockDetected",
    "42501": "InsufficientPrivilege",
    "42601": "SyntaxError",
    "42701": "DuplicateColumn",
    "42702": "AmbiguousColumn",
    "42703": "UndefinedColumn",
    "42704": "UndefinedObject",
    "42710": "DuplicateObject",
    "42723": "DuplicateFunction",
    "42725": "AmbiguousFunction",
    "42803": "GroupingError",
    "42804": "DatatypeMismatch",
    "42883": "UndefinedFunction",
    "42P01": "UndefinedTable",
    "42P07": "DuplicateTable",
    "42P18": "IndeterminateDatatype",
    "53100": "DiskFull",
    "53200": "OutOfMemory",
    "53300": "TooManyConnections",
    "54000": "ProgramLimitExceeded",
    "55000": "ObjectNotInPrerequisiteState",
    "55P03": "LockNotAvailable",
    "57014": "QueryCanceled",
    "58030": "IoError",
    "P0001": "RaiseException",
    "P0002": "NoDataFound",
    "P0003": "TooManyRows",
    "XX000": "InternalError_",
    "XX001": "DataCorrupted",
}


#: What Python itself raises in such a case: whoever catches that catches the database's error too.
_ALIKE: dict[str, type[Exception]] = {"22003": OverflowError, "22008": OverflowError, "22012": ZeroDivisionError}


def _named(sqlstate: str, name: str) -> type[DatabaseError]:
    base = _CLASSES.get(sqlstate[:2], DatabaseError)
    bases = (base, _ALIKE[sqlstate]) if sqlstate in _ALIKE else (base,)
    made = type(name, bases, {"__doc__": f"SQLSTATE {sqlstate}.", "__module__": __name__, "sqlstate": sqlstate})
    globals()[name] = made
    __all__.append(name)
    return made


_BY_SQLSTATE = {sqlstate: _named(sqlstate, name) for sqlstate, name in _NAMES.items()}


def lookup(sqlstate: str) -> type[DatabaseError]:
    """The class of errors with a SQLSTATE."""
    return _BY_SQLSTATE.get(sqlstate) or _CLASSES.get(sqlstate[:2], DatabaseError)


def of_sqlstate(
    sqlstate: str,
    message: str,
    detail: str | None = None,
    hint: str | None = None,
    position: int | None = None,
    constraint: str | None = None,
    context: str | None = None,
) -> DatabaseError:
    """An error with all that the database says of it."""
    error = lookup(sqlstate)(message)
    error.sqlstate = sqlstate
    error.detail, error.hint, error.position, error.constraint = detail, hint, position, constraint
    error.context = context
    return error
