"""Tests of one's own transactions: a seed decides how clients interleave, when the process is killed and what the disk
does, and an invariant must hold.

>>> import fabius, fabius.testing
>>> class Sale(fabius.testing.Scenario):
...     def set_up(self, db):
...         db.script("create table stock (item int primary key, qty int not null); insert into stock values (1, 5)")
...     def define(self, db):
...         @db.transaction(side="client")
...         def reserve(item, n):
...             row = db.stock[item]
...             fabius.require(row.qty >= n, f"only {row.qty} left")
...             row.qty -= n
...         self.reserve = reserve
...     @fabius.testing.call(n=range(1, 4))
...     def buy(self, n):
...         self.reserve(1, n)
...     def invariant(self, db):
...         sold = sum(call.arguments["n"] for call in self.acknowledged)
...         assert db.execute("select qty from stock").scalar() == 5 - sold
>>> fabius.testing.run(Sale, runs=3).runs
3

A failure is ``SimulationFailed``: it says the seed, the fewest steps that were found to lead to it, and the line that
takes them again. The same works for pytest, by the fixture ``simulation`` (``fabius.pytest_plugin``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .simulated import Call
from .simulation import Drawn, Failure, Given, Schedule, Simulation, Step

if TYPE_CHECKING:
    from .database import Database

__all__ = ["Call", "Report", "Scenario", "SimulationFailed", "call", "run"]

F = TypeVar("F", bound=Callable[..., Any])

#: A failure is made smaller by so many runs at most, and for so long.
_SHRINKING_RUNS_MAX = 400
_SHRINKING_SECONDS_MAX = 30.0


class Scenario:
    """What is tested: the tables, the calls that clients make, and what must hold. Each run has an instance."""

    #: Calls that have returned, in the order in which they did: whatever happens, what they did stays.
    acknowledged: list[Call]
    #: Calls that a crash or a failing disk has ended: what they did is there or not, each transaction as a whole.
    unknown: list[Call]

    def set_up(self, db: Database) -> None:
        """Makes the tables and rows of a new database."""

    def define(self, db: Database) -> None:
        """Defines the functions that calls use, on the database that is open now: at the beginning, and after each
        restart."""

    def invariant(self, db: Database) -> object:
        """Raises, or returns something false, if what must hold does not: at the end, after each restart, and after
        each call if that is asked for."""
        return None


@overload
def call(method: F, /) -> F: ...


@overload
def call(**arguments: Sequence[Any] | Callable[[Random], Any]) -> Callable[[F], F]: ...


def call(method: F | None = None, /, **arguments: Sequence[Any] | Callable[[Random], Any]) -> Any:
    """Makes a method of a scenario a call that clients make.

    Each argument is one of a sequence, or what a function gives for a seeded ``random.Random``. A call may run any
    number of transactions. It may end by ``fabius.Aborted``, ``fabius.IntegrityError`` and
    ``fabius.OperationalError``; whatever else it raises is a failure.
    """

    def marked(method: F) -> F:
        method.fabius_arguments = arguments  # type: ignore[attr-defined]
        return method

    return marked if method is None else marked(method)


@dataclass
class Report:
    """What happened in runs in which everything held."""

    runs: int = 0
    #: Calls that have returned.
    acknowledged: int = 0
    #: Calls that were refused: by a requirement, a constraint, or a conflict.
    refused: int = 0
    #: Calls that a crash or a failing disk has ended.
    unknown: int = 0
    #: How often the database was opened again.
    restarts: int = 0
    #: The steps of the last run.
    steps: str = ""
    #: What happened in the last run, a line each.
    lines: tuple[str, ...] = ()


class SimulationFailed(AssertionError):
    """Something does not hold; the exception that says what is its cause."""

    def __init__(self, message: str, seed: int, steps: str, lines: tuple[str, ...]) -> None:
        super().__init__(message)
        self.seed = seed
        #: The steps that lead to it, for ``run(..., seed=seed, steps=steps)``.
        self.steps = steps
        #: What happens there, a line each.
        self.lines = lines


def run(
    scenario: type[Scenario],
    *,
    seed: int = 0,
    runs: int = 1,
    clients: int = 3,
    calls: int = 30,
    crashes: int = 0,
    faults: int = 0,
    checks_each_call: bool = False,
    steps: str | None = None,
) -> Report:
    """Runs a scenario with one seed, or with several from that one on, each time on a new database.

    So many ``clients`` make so many ``calls``; the process is killed, or loses its power, at ``crashes`` moments, and
    from ``faults`` moments on the disk fails: writes are cut short, a sync fails, it is full, or refuses all changes.
    Who is served from a failing disk is restarted. With ``checks_each_call`` the invariant is checked after each call
    too, while others are under way. ``steps`` are those that a failure has named: they alone are taken.

    Raises ``SimulationFailed`` if something does not hold, and ``ValueError`` if there is no step of a name.
    """
    if clients < 1:
        raise ValueError("a simulation has at least one client")
    report = Report()
    given = None if steps is None else [Step.of(step) for step in steps.split()]
    for now in range(seed, seed + runs):
        schedule = Drawn(now, clients, calls, crashes, faults) if given is None else Given(given)
        simulation, failure = _attempt(scenario, now, schedule, checks_each_call)
        if failure is not None:
            found = _Found(scenario, now, checks_each_call, given or simulation.steps, simulation, failure)
            if given is None:
                found.shrink()
            raise found.explained() from found.failure.error
        report.runs += 1
        report.acknowledged += len(simulation.scenario.acknowledged)
        report.refused += simulation.refused
        report.unknown += len(simulation.scenario.unknown)
        report.restarts += simulation.restarts
        report.steps = " ".join(map(str, simulation.steps))
        report.lines = tuple(simulation.lines)
    return report


def _attempt(
    scenario: type[Scenario], seed: int, schedule: Schedule, checks_each_call: bool
) -> tuple[Simulation, Failure | None]:
    simulation = Simulation(scenario, seed, schedule, checks_each_call)
    try:
        simulation.run()
    except Failure as failure:
        return simulation, failure
    return simulation, None


class _Found:
    """A failure, and the fewest steps that are known to lead to it."""

    def __init__(
        self,
        scenario: type[Scenario],
        seed: int,
        checks_each_call: bool,
        steps: list[Step],
        simulation: Simulation,
        failure: Failure,
    ) -> None:
        self.failure = failure
        self._scenario = scenario
        self._seed = seed
        self._checks_each_call = checks_each_call
        self._steps = steps
        self._simulation = simulation
        self._calls_before = _calls(simulation.steps)
        self._runs = 0

    def shrink(self) -> None:
        """Leaves out whatever can be: whole calls, crashes and faults first, then turns."""
        self._until = time.monotonic() + _SHRINKING_SECONDS_MAX
        steps = self._steps
        self._leave_out(list(dict.fromkeys(steps)), lambda kept: [step for step in steps if step in kept])
        turns = self._steps
        self._leave_out(list(range(len(turns))), lambda kept: [turns[place] for place in kept])

    def _leave_out(self, things: list[Any], steps_of: Callable[[list[Any]], list[Step]]) -> None:
        """Leaves out things, many at a time and then fewer, as long as the failure stays (after Zeller's ``ddmin``)."""
        size = max(len(things) // 2, 1)
        while things:
            begin, has_changed = 0, False
            while begin < len(things):
                kept = things[:begin] + things[begin + size :]
                if self._still_fails(steps_of(kept)):
                    things, has_changed = kept, True
                else:
                    begin += size
            if size == 1 and not has_changed:
                return
            size = max(size // 2, 1)

    def _still_fails(self, steps: list[Step]) -> bool:
        if self._runs >= _SHRINKING_RUNS_MAX or time.monotonic() >= self._until:
            return False
        self._runs += 1
        simulation, failure = _attempt(self._scenario, self._seed, Given(steps), self._checks_each_call)
        if failure is None or not failure.is_like(self.failure):
            return False
        self._steps, self._simulation, self.failure = steps, simulation, failure
        return True

    def explained(self) -> SimulationFailed:
        """The failure, as its reader wants it."""
        error, lines = self.failure.error, self._simulation.lines
        settings = ", checks_each_call=True" if self._checks_each_call else ""
        steps = " ".join(map(str, self._steps))
        name = self._scenario.__qualname__.rpartition("<locals>.")[2]
        message = [
            f"{self.failure.what}: {type(error).__name__}: {error}".rstrip(": "),
            f"seed {self._seed}, {_calls(self._steps)} of {self._calls_before} calls:",
            *(f"    {line}" for line in lines),
            f'again: fabius.testing.run({name}, seed={self._seed}{settings}, steps="{steps}")',
        ]
        return SimulationFailed("\n".join(message), self._seed, steps, tuple(lines))


def _calls(steps: Sequence[Step]) -> int:
    return len({step.number for step in steps if not step.kind})
