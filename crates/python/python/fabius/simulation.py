"""One run of a scenario, in which a seed decides everything: who goes on, when the process dies, what the disk does.

Each call that a client makes has a thread, which runs only while it has the turn; the thread that has started the
simulation gives it. A turn ends before the next statement:

```text
scheduler    gives a turn |        | gives a turn |      | crash: the disk loses what was not synced; opens it again
client 0                  begin, select           .      update, commit, returns
client 1                  .        begin, select  .
```

What was done is told by *steps* (``3``: call 3 has the turn; ``c0``: the first crash; ``f0``: the first fault), and
what a call, a crash or a fault is depends only on the seed and its own number. So the steps of a run, or some of them,
are a run again: a call is left out by leaving out its steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from . import _fabius
from .errors import Error, IntegrityError, OperationalError, lookup
from .simulated import Call, Client, SimulatedDatabase

if TYPE_CHECKING:
    from .testing import Scenario

__all__ = ["Drawn", "Failure", "Given", "Schedule", "Simulation", "Step"]

#: What the disk can do, and the bounds of the count that goes with it.
_FAULTS = (("short writes", 1), ("failing sync", 8), ("full", 1500), ("read only", 1))

#: How a call ends whose changes the disk does not take. The database has stopped then, and nobody knows what has become
#: of the call.
_STOPPED = ("25006", "53100", "57P01", "58030")

#: At the power loss of a crash, so many changes of the disk are still made at most.
_CHANGES_MAX = 8


class Step(NamedTuple):
    """What happens next: the turn of a call (``""``), a crash (``"c"``) or a fault of the disk (``"f"``)."""

    kind: str
    number: int

    @staticmethod
    def of(text: str) -> Step:
        """A step by what :meth:`__str__` makes of it.

        Raises ``ValueError`` if it is none.
        """
        parts = re.fullmatch(r"([cf]?)(\d+)", text)
        if parts is None:
            raise ValueError(f"{text!r} is no step: steps are 3 (a turn of call 3), c0 (a crash) and f0 (a fault)")
        return Step(parts[1], int(parts[2]))

    def __str__(self) -> str:
        return f"{self.kind}{self.number}"


class Failure(Exception):
    """What a run has found: what does not hold, by which exception, and how it came to that."""

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(what)
        self.what = what
        self.error = error

    def is_like(self, other: Failure) -> bool:
        """Whether the other has found the same."""
        return (self.what, type(self.error)) == (other.what, type(other.error))


class Schedule:
    """Decides what happens next."""

    def next(self, begun: int, running: Sequence[int]) -> Step | None:
        """The next step, if so many calls have begun and those of these numbers are under way."""
        raise NotImplementedError


class Drawn(Schedule):
    """A schedule that a seed draws."""

    def __init__(self, seed: int, clients: int, calls: int, crashes: int, faults: int) -> None:
        self._random = Random(f"{seed} schedule")
        self._clients = clients
        self._calls = calls
        #: Crashes and faults, last to first, and how many calls have begun before each.
        self._incidents = [
            (self._random.randint(1, max(calls, 1)), Step(kind, number))
            for kind, count in (("c", crashes), ("f", faults))
            for number in range(count)
        ]
        self._incidents.sort(reverse=True)

    def next(self, begun: int, running: Sequence[int]) -> Step | None:
        choices = list(running)
        if begun < self._calls and len(running) < self._clients:
            choices.append(begun)
        if self._incidents:
            after, step = self._incidents[-1]
            if not choices or (begun >= after and self._random.random() < 0.3):
                self._incidents.pop()
                return step
        return Step("", self._random.choice(choices)) if choices else None


class Given(Schedule):
    """A schedule of steps that are known. What is under way behind them runs to its end, call by call."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = list(reversed(steps))
        self._begun: set[int] = set()

    def next(self, begun: int, running: Sequence[int]) -> Step | None:
        while self._steps:
            step = self._steps.pop()
            if step.kind:
                return step
            if step.number in running or step.number not in self._begun:
                self._begun.add(step.number)
                return step
        return Step("", running[0]) if running else None


class Simulation:
    """One run of a scenario."""

    def __init__(self, scenario: type[Scenario], seed: int, schedule: Schedule, checks_each_call: bool) -> None:
        self.steps: list[Step] = []
        #: What has happened, a line each.
        self.lines: list[str] = []
        self.scenario = scenario()
        self.scenario.acknowledged = []
        self.scenario.unknown = []
        self.refused = 0
        self.restarts = 0
        self._seed = seed
        self._schedule = schedule
        self._checks_each_call = checks_each_call
        self._methods = sorted(name for name in dir(scenario) if hasattr(getattr(scenario, name), "fabius_arguments"))
        self._begun: set[int] = set()
        self._running: dict[int, Client] = {}
        self._disk = _fabius.SimulatedDisk(Random(f"{seed} disk").getrandbits(63))
        #: Whether the disk has a fault.
        self._is_failing = False
        #: How many changes of the disk there will have been when its power is lost.
        self._power_until: int | None = None

    def run(self) -> None:
        """Runs it.

        Raises ``Failure`` at what it finds. What ``set_up`` and ``define`` raise is passed on.
        """
        if not self._methods:
            raise TypeError(
                f"{type(self.scenario).__qualname__} has no call: decorate a method with fabius.testing.call"
            )
        self._database = SimulatedDatabase(self._disk)
        try:
            self.scenario.set_up(self._database)
            self.scenario.define(self._database)
            while (step := self._schedule.next(len(self._begun), sorted(self._running))) is not None:
                self.steps.append(step)
                self._take(step)
            if self._power_until is not None:
                self._restart("the power is lost")
            self._check("at the end")
        finally:
            if not any(client.is_stuck for client in self._running.values()):
                self._kill()
                self._close()

    def _take(self, step: Step) -> None:
        if step.kind == "":
            self._go_on(step.number)
        elif step.kind == "f":
            random = Random(f"{self._seed} fault {step.number}")
            name, count_max = random.choice(_FAULTS)
            count = random.randrange(count_max)
            self._disk.fault(name, count)
            self._is_failing = True
            self.lines.append(f"the disk: {_fault_shown(name, count)}")
        else:
            # In the midst of what changes the disk, or where all clients wait.
            changes = Random(f"{self._seed} crash {step.number}").randint(-_CHANGES_MAX, _CHANGES_MAX)
            if changes <= 0 or self._power_until is not None:
                self._restart("the process is killed")
            else:
                self._disk.fault("power loss", changes)
                self._is_failing = True
                self._power_until = self._disk.operation_count + changes
                self.lines.append(f"the power fails after {changes} more changes of the disk")

    def _go_on(self, number: int) -> None:
        """Gives a call the turn, which may be its first."""
        client = self._running.get(number)
        if client is None:
            client = self._running[number] = self._begin(number)
            self.lines.append(f"{client.name} calls {client.call}")
        try:
            client.take_turn()
        except TimeoutError as error:
            raise Failure(f"{client.call.name} does not end", error)
        has_stopped = client.is_done and self._end(number, client)
        if not client.is_done:
            self.lines.append(f"{client.name}: {'; '.join(client.did)}")
        if self._power_until is not None and self._disk.operation_count >= self._power_until:
            self._restart("the power is lost")
        elif has_stopped:
            self._restart("the database has stopped")
        elif client.is_done and self._checks_each_call:
            self._check(f"after {client.call.name}")

    def _begin(self, number: int) -> Client:
        self._begun.add(number)
        random = Random(f"{self._seed} call {number}")
        name = random.choice(self._methods)
        method = getattr(self.scenario, name)
        arguments = {
            argument: source(random) if callable(source) else random.choice(source)
            for argument, source in method.fabius_arguments.items()
        }
        taken = {client.slot for client in self._running.values()}
        slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        return Client(slot, Call(name, arguments), method)

    def _end(self, number: int, client: Client) -> bool:
        """Takes down how a call has ended; whether that was because the database has stopped."""
        del self._running[number]
        client.join()
        error = client.error
        if error is None:
            self.scenario.acknowledged.append(client.call._replace(result=client.result))
            said = f"returns {client.result!r}"
        else:
            said = f"{type(error).__name__}: {error.args[0] if isinstance(error, Error) and error.args else error}"
        self.lines.append(f"{client.name}: {'; '.join([*client.did, said])}")
        if error is None:
            return False
        if isinstance(error, Exception) and self._has_stopped(error):
            self.scenario.unknown.append(client.call)
            return True
        legal = (lookup("P0001"), IntegrityError, OperationalError)
        if not isinstance(error, legal) or error.sqlstate in _STOPPED:
            raise Failure(f"{client.call.name} fails", error)
        self.refused += 1
        return False

    def _restart(self, why: str) -> None:
        """The process ends here, and another one opens what is on the disk."""
        self.restarts += 1
        self._power_until, self._is_failing = None, False
        disk = self._disk.crash(Random(f"{self._seed} restart {self.restarts}").getrandbits(63))
        self.lines.append(f"{why}, and the database is opened again")
        self._kill()
        self._close()
        self._disk = disk
        self._database = SimulatedDatabase(disk)
        self.scenario.define(self._database)
        self._check("after a restart")

    def _kill(self) -> None:
        """Ends the calls that are under way; what becomes of them is unknown."""
        for _, client in sorted(self._running.items()):
            client.kill()
            self.scenario.unknown.append(client.call)
        self._running = {}

    def _close(self) -> None:
        try:
            self._database.close()
        except Error:
            # Its disk may have failed, and it is given up in any case.
            pass

    def _has_stopped(self, error: Exception) -> bool:
        return self._is_failing and isinstance(error, Error) and error.sqlstate in _STOPPED

    def _check(self, when: str) -> None:
        try:
            holds = self.scenario.invariant(self._database)
            if holds is not None and not holds:
                raise AssertionError(f"it gives {holds!r}")
        except Exception as error:
            if not self._has_stopped(error):
                raise Failure(f"the invariant does not hold {when}", error)
            self._restart("the database has stopped")


def _fault_shown(name: str, count: int) -> str:
    shown = {
        "short writes": "writes are cut short",
        "failing sync": f"a sync fails, after {count} more that work",
        "full": f"it is full, after {count} more bytes",
        "read only": "every change is refused",
    }
    return shown[name]
