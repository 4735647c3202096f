"""The futures of a transaction that are still held, and its rows: what has to be read before something is written."""

from __future__ import annotations

import inspect
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from ..assigned import globals_assigned
from ..errors import Error, ProgrammingError
from ..parameters import Parameters, numbered
from ..tables import quoted
from .formula import LOST, Cell, Formula, Kind, Place, Writing, truth
from .schema import Facts, facts
from .unread import Unread, formula_of, value_of

if TYPE_CHECKING:
    from ..transactions import Run
    from .rows import Row

__all__ = ["Pending", "called"]

R = TypeVar("R")

#: What may stand before a parenthesis in a statement that changes nothing, or only its table.
_HARMLESS = frozenset(
    "abs all and any as avg between by case coalesce count date_part date_trunc distinct else exists extract filter "
    "floor from greatest having in least length like limit lower max min mod not nullif on or over partition round "
    "select set substr substring sum then trim union upper using values when where".split()
)

_CALL = re.compile(r'(\w+|")\s*\(')

_READS = re.compile(r"\s*(?:select|values|table|show)\b", re.IGNORECASE)

_WRITES = re.compile(r"\s*(insert\s+into|update|delete\s+from)\s+(?:only\s+)?([a-z_][\w.]*)(?![\w.\"])", re.IGNORECASE)


class Pending:
    """The futures of a transaction that are still held, and its rows."""

    def __init__(self, run: Run) -> None:
        self.run = run
        #: Whether the transaction has ended.
        self.is_over = False
        # By their numbers: a future's hash is that of its value.
        self._futures: weakref.WeakValueDictionary[int, Unread] = weakref.WeakValueDictionary()
        self._rows: dict[Place, weakref.WeakValueDictionary[int, Row]] = {}
        #: Rows whose key is a future.
        self._unplaced: weakref.WeakValueDictionary[int, Row] = weakref.WeakValueDictionary()
        #: Futures that were made or changed in a part of the transaction, and what they meant before it.
        self._journal: list[tuple[weakref.ref[Unread], Formula]] = []
        self._parts = 0
        self._number = 0

    def hold(self, unread: Unread) -> None:
        """A future that was made."""
        self._number += 1
        self._futures[self._number] = unread
        if self._parts:
            self._journal.append((weakref.ref(unread), LOST))

    def hold_row(self, row: Row, place: Place | None) -> None:
        """A row that was taken, at a place, or at one that is not known."""
        self._number += 1
        held = self._unplaced if place is None else self._rows.setdefault(place, weakref.WeakValueDictionary())
        held[self._number] = row

    def read(self, unread: Unread) -> None:
        """Reads a future, which has its value from then on."""
        formula = unread._formula
        assert formula is not None
        if isinstance(formula, Cell):
            value = self._asked(formula, formula.raw)
            if formula.plus or isinstance(formula.plus, Decimal):
                value += formula.plus
        else:
            value = self._asked(formula, formula.text)
            if formula.kind is Kind.INT:
                value = int(value)
            elif formula.kind is Kind.DECIMAL:
                assert formula.scale is not None
                value = value.quantize(Decimal(1).scaleb(-formula.scale))
        unread._value, unread._formula = value, None

    def is_true(self, unread: Unread) -> bool:
        """Whether a future counts as true, which is all that is asked (IS-TRUE)."""
        formula = unread._formula
        if formula is not None and unread._truth is None:
            whether = truth(formula)
            if formula.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID):
                unread._truth = True
            elif whether is None or whether is formula:
                self.read(unread)
            else:
                unread._truth = self._asked(whether, whether.text)
        return bool(unread._value) if unread._formula is None else bool(unread._truth)

    def _asked(self, formula: Formula, text: Callable[[Writing, Place | None], str]) -> Any:
        if formula is LOST:
            raise ProgrammingError("this value was of a part of the transaction that was undone")
        return self.ask(next(formula.cells()).place, text)

    def ask(self, place: Place, text: Callable[[Writing, Place | None], str]) -> Any:
        """The value of an expression over a row."""
        found = self.row(place, text)
        if found is None:
            raise ProgrammingError(f"the row of {place.shape.name} is gone whose value is asked for")
        return found[0]

    def row(self, place: Place, text: Callable[[Writing, Place | None], str]) -> Any:
        """The values of expressions over a row, or ``None`` if it is not there."""
        if self.is_over:
            raise ProgrammingError("this value was not read in its transaction, which has ended")
        out = Writing()
        said = text(out, place)
        where = place.condition(out)
        return self.run.send(numbered(f"select {said} from {place.shape.written} where {where}"), out.values).first()

    def before(self, text: str, parameters: Parameters | None) -> Parameters | None:
        """Reads what a statement may change, and the futures that are given to it."""
        if isinstance(parameters, Mapping):
            parameters = {name: settled(value) for name, value in parameters.items()}
        elif parameters is not None and not isinstance(parameters, (str, bytes)):
            parameters = [settled(value) for value in parameters]
        if self._futures or self._rows or self._unplaced:
            self._make_way(text)
        return parameters

    def _make_way(self, text: str) -> None:
        is_opaque = "--" in text or "/*" in text or ";" in text.rstrip("; \n")
        writes = None if is_opaque else _WRITES.match(text)
        body = text[writes.end() :] if writes else text
        if is_opaque or not (writes or _READS.match(text)) or self._calls_unknown(body):
            self.settle()
        elif writes:
            does, of = writes[1].lower(), self._facts(writes[2].lower())
            if of is None or not of.is_table or (of.spreads_deletion if does.startswith("delete") else of.spread):
                self.settle()
            elif not does.startswith("insert") or "conflict" in body.lower():
                self.settle(of.oid)

    def _calls_unknown(self, text: str) -> bool:
        """Whether it calls something that may write, as a program does."""
        return any(found[1].lower() not in _HARMLESS for found in _CALL.finditer(text))

    def _facts(self, name: str) -> Facts | None:
        """What the catalog says of a table; ``None`` if there is none."""
        if self.run.send("select to_regclass(%s)::bigint", (name,)).scalar() is None:
            return None
        return facts(self.run.shape(name), self.run.send)

    def settle(self, table: int | None = None) -> None:
        """Reads all futures and rows, of a table if it is given."""
        if self.run.has_failed:
            for unread in self._unread():
                unread._formula = LOST
            return
        self.place_rows(table)
        self.read_futures(table)
        for place in list(self._rows):
            if table in (None, place.table):
                for row in self.rows_at(place):
                    row._keep()

    def read_futures(self, table: int | None = None) -> None:
        """Reads all futures, of a table if it is given."""
        for unread in self._unread():
            if unread._formula is not LOST and (table is None or any(c.place.table == table for c in _cells(unread))):
                self.read(unread)

    def settle_row(self, place: Place) -> None:
        """Reads all futures of a row, and its other holders."""
        for unread in self._unread():
            if any(cell.place == place for cell in _cells(unread)):
                self.read(unread)
        for row in self.rows_at(place):
            row._keep()

    def place_rows(self, table: int | None) -> None:
        """Reads the keys of rows that were inserted with futures."""
        for row in list(self._unplaced.values()):
            if table in (None, row._facts.oid):
                row._locate()

    def rows_at(self, place: Place) -> list[Row]:
        """The rows that are held at a place."""
        return list(self._rows.get(place, {}).values())

    def _unread(self) -> list[Unread]:
        return [unread for unread in list(self._futures.values()) if unread._formula is not None]

    def assign(self, row: Row, name: str, value: Any) -> None:
        """Assigns a column of a row; a formula is not read."""
        place, column = row._place, row._facts.columns[name]
        assert place is not None
        self.place_rows(place.table)
        row._columns.clear()
        later = self._moved(row, name, value)
        out = Writing()
        formula = formula_of(value, self)
        if formula is None or not column.takes(formula):
            said = out.put(place.shape.kept(name, settled(value)))
        elif isinstance(formula, Cell) and formula.place == place and formula.column.name == name:
            said = formula.increment(out)
        else:
            said = formula.text(out, place)
        where = place.condition(out)
        text = f"update {place.shape.written} set {quoted(name)} = {said} where {where}"
        if self.run.send(numbered(text), out.values).rowcount == 0:
            row._there(None)
        for unread, meaning in later:
            self._mean(unread, meaning)

    def _moved(self, row: Row, name: str, value: Any) -> list[tuple[Unread, Formula]]:
        """Reads what an assignment would change, but for what can be said behind it too, which is returned."""
        place, column = row._place, row._facts.columns[name]
        assert place is not None
        changed = row._facts.changed_with(name)
        for other in self.rows_at(place):
            if other is not row:
                for one in changed:
                    other._column(one)
        formula = formula_of(value, self)
        by = None
        if isinstance(formula, Cell) and formula.place == place and formula.column.name == name:
            by = formula.plus if formula.can_be_undone else None
        later: list[tuple[Unread, Formula]] = []
        for unread in self._unread():
            touched = {cell.column.name for cell in _cells(unread) if cell.place == place} & changed
            if not touched:
                continue
            meaning = unread._formula
            assert meaning is not None
            if by is not None and touched == {name}:
                later.append((unread, meaning.moved(place, name, -by)))
            elif unread is value and column.takes(meaning) and column.keeps(meaning):
                later.append((unread, Cell.of(place, column)))
            else:
                self.read(unread)
        return later

    def _mean(self, unread: Unread, formula: Formula) -> None:
        """A future's value is from now on to be had by another formula."""
        assert unread._formula is not None
        if self._parts:
            self._journal.append((weakref.ref(unread), unread._formula))
        unread._formula = formula

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of the transaction: if it is undone, so is what futures mean since."""
        mark = len(self._journal)
        self._parts += 1
        try:
            yield
        except BaseException:
            for found, before in reversed(self._journal[mark:]):
                unread = found()
                if unread is not None and unread._formula is not None:
                    unread._formula = before
            del self._journal[mark:]
            raise
        finally:
            self._parts -= 1
            if not self._parts:
                self._journal.clear()


def _cells(unread: Unread) -> Iterator[Cell]:
    return iter(()) if unread._formula is None else unread._formula.cells()


def called(run: Run, function: Callable[..., R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> R:
    """Calls a function over futures, in a transaction. What outlives it is read, unless its caller has futures too."""
    pending = run.pending
    if pending is None:
        pending = run.pending = Pending(run)
    before, run.over_futures = run.over_futures, True
    try:
        result = function(*args, **kwargs)
        if not before:
            pending.settle()
            result = settled(result)
            settled([args, kwargs])
            _settle_around(function)
        return result
    except Exception as error:
        # It may hold futures, which end with the transaction.
        if not run.has_failed:
            with suppress(Error):
                pending.read_futures()
                error.args = settled(error.args)
        raise
    finally:
        run.over_futures = before


def _settle_around(function: Callable[..., Any]) -> None:
    """Reads futures that a function, and those that it calls, have assigned to names outside of them."""
    for names, name in globals_assigned(function):
        if isinstance(names.get(name), Unread):
            names[name] = value_of(names[name])
    function = inspect.unwrap(function)
    for cell in function.__closure__ or ():
        # A name without a value has no contents.
        with suppress(ValueError):
            if isinstance(cell.cell_contents, Unread):
                cell.cell_contents = value_of(cell.cell_contents)


def settled(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """A value with all futures in it read; lists, sets and dictionaries stay what they are."""
    if isinstance(value, Unread):
        return value_of(value)
    if type(value) not in (list, dict, set) and not isinstance(value, tuple):
        return value
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    seen[id(value)] = value
    if isinstance(value, dict):
        pairs = [(settled(name, seen), settled(item, seen)) for name, item in value.items()]
        if not all(name is a and item is b for (name, item), (a, b) in zip(pairs, value.items())):
            value.clear()
            value.update(pairs)
        return value
    items = [settled(item, seen) for item in value]
    if all(one is other for one, other in zip(items, value)):
        return value
    if isinstance(value, tuple):
        seen[id(value)] = type(value)._make(items) if hasattr(value, "_make") else tuple(items)
        return seen[id(value)]
    value.clear()
    if isinstance(value, list):
        value.extend(items)
    else:
        value.update(items)
    return value
