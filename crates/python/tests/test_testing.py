"""Scenarios: what users' own tests find, and how they say it."""

import doctest
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from unittest import mock

import fabius
import fabius.testing
from fabius.errors import SerializationFailure
from fabius.testing import Scenario, SimulationFailed, call, run


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(fabius.testing))
    return tests


class Sale(Scenario):
    """Clients buy one of two items, by a function that is one transaction."""

    def set_up(self, db):
        db.script(
            """
            create table stock (item int primary key, qty int not null check (qty >= 0));
            insert into stock values (1, 6), (2, 6);
            """
        )

    def define(self, db):
        @db.transaction(side="client")
        def reserve(item: int, n: int) -> int:
            row = db.stock[item]
            fabius.require(row.qty >= n, f"only {row.qty} left")
            row.qty -= n
            return row.qty

        self.reserve = reserve

    @call(item=(1, 2), n=lambda random: random.randint(1, 2))
    def buy(self, item, n):
        return self.reserve(item, n)

    def sold(self, calls):
        return sum(call.arguments["n"] for call in calls)

    def invariant(self, db):
        gone = 12 - db.execute("select sum(qty) from stock").scalar()
        sold = self.sold(self.acknowledged)
        assert sold <= gone <= sold + self.sold(self.unknown), f"{gone} are gone, {sold} are sold"


class LostUpdate(Sale):
    """What is written was read in another transaction."""

    def define(self, db):
        @db.transaction(side="client")
        def seen(item):
            return db.stock[item].qty

        @db.transaction(side="client")
        def write(item, qty):
            db.stock[item].qty = qty

        def reserve(item, n):
            qty = seen(item)
            fabius.require(qty >= n)
            write(item, qty - n)

        self.reserve = reserve


class CheckedTooEarly(Sale):
    """Whether there is enough is decided before the transaction, by statements outside of functions."""

    def define(self, db):
        def reserve(item, n):
            left = db.execute("select qty from stock where item = %s", (item,)).scalar()
            fabius.require(left >= n)
            with db.connect(autocommit=True) as session:
                session.execute("insert into taken values (%s)", (n,))

        self.reserve = reserve

    def set_up(self, db):
        super().set_up(db)
        db.script("create table taken (n int)")

    @call
    def restock(self):
        pass

    def invariant(self, db):
        taken = db.execute("select coalesce(sum(n), 0) from taken").scalar()
        assert taken <= 6, f"{taken} of 6 are taken"


class Compiled(Sale):
    """The same sale, by a program."""

    def define(self, db):
        @db.transaction
        def reserve(item: int, n: int) -> int:
            row = db.stock[item]
            fabius.require(row.qty >= n, f"only {row.qty} left")
            row.qty -= n
            return row.qty

        self.reserve = reserve


class Interleavings(unittest.TestCase):
    def test_a_correct_scenario_passes(self):
        for scenario in (Sale, Compiled):
            with self.subTest(scenario=scenario.__name__):
                report = run(scenario, runs=3, clients=4, calls=12)
                self.assertEqual((report.runs, report.acknowledged + report.refused), (3, 36))
                self.assertGreater(report.refused, 0)
                self.assertEqual((report.unknown, report.restarts), (0, 0))

    def test_functions_interleave_and_run_again(self):
        report = run(Sale, clients=4, calls=12)
        steps = report.steps.split()
        self.assertGreater(sum(a != b for a, b in zip(steps, steps[1:])), 12)
        # Of those who wrote what another had read, one has run again.
        self.assertGreater(sum("commit" in line for line in report.lines), report.acknowledged)

    def test_a_seed_is_a_run(self):
        first, second = (run(Sale, seed=3, clients=4, calls=12, crashes=2, faults=2) for _ in range(2))
        self.assertEqual(first, second)
        self.assertNotEqual(run(Sale, seed=4, clients=4, calls=12, crashes=2, faults=2).lines, first.lines)
        self.assertEqual(run(Sale, seed=3, steps=first.steps).lines, first.lines)

    def test_a_lost_update_is_found_and_shrunk(self):
        with self.assertRaises(SimulationFailed) as raised:
            run(LostUpdate, runs=10)
        failed = raised.exception
        message = str(failed)
        self.assertIsInstance(failed.__cause__, AssertionError)
        self.assertIn("the invariant does not hold at the end: AssertionError: ", message)
        self.assertIn(f"seed {failed.seed}, 2 of 30 calls:", message)
        self.assertEqual(len({*failed.steps.split()}), 2, message)
        self.assertLessEqual(len(failed.steps.split()), 4, message)
        self.assertRegex(message, r"client 0 calls buy\(item=[12], n=[12]\)\n")
        self.assertRegex(message, r"client 0: begin; select item, qty from stock where item = [12]\n")
        again = message.splitlines()[-1]
        self.assertEqual(again, f'again: fabius.testing.run(LostUpdate, seed={failed.seed}, steps="{failed.steps}")')
        with self.assertRaises(SimulationFailed) as raised:
            eval(again.removeprefix("again: "))
        self.assertEqual(raised.exception.lines, failed.lines)

    def test_a_check_apart_from_the_write_is_found(self):
        with self.assertRaises(SimulationFailed) as raised:
            run(CheckedTooEarly, calls=20, runs=5, checks_each_call=True)
        message = str(raised.exception)
        self.assertIn("the invariant does not hold after buy", message)
        self.assertIn("checks_each_call=True", message)
        self.assertNotIn("restock", message)

    def test_what_a_call_raises_is_found(self):
        class Wrong(Sale):
            @call
            def look(self):
                return self.db.stock[1]

            def define(self, db):
                super().define(db)
                self.db = db

        with self.assertRaises(SimulationFailed) as raised:
            run(Wrong)
        self.assertIn("look fails: OutsideTransaction: rows of stock by key", str(raised.exception))
        self.assertEqual(len(raised.exception.steps.split()), 1)

    def test_a_block_that_conflicts_is_refused(self):
        class Blocks(Sale):
            def define(self, db):
                def reserve(item, n):
                    with db.transaction():
                        row = db.stock[item]
                        fabius.require(row.qty >= n)
                        row.qty -= n

                self.reserve = reserve

        report = run(Blocks, clients=6)
        self.assertTrue(any(SerializationFailure.__name__ in line for line in report.lines), report.lines)

    def test_locks_are_not_waited_for(self):
        class Locks(Sale):
            def define(self, db):
                def reserve(item, n):
                    with db.transaction():
                        db.execute("select from stock where item = %s for update", (item,))
                        db.execute("update stock set qty = qty - %s where item = %s", (n, item))

                self.reserve = reserve

        report = run(Locks, clients=3, calls=8)
        self.assertTrue(any("LockNotAvailable" in line for line in report.lines), report.lines)

    def test_a_call_that_never_ends_is_found(self):
        class Waits(Sale):
            @call
            def buy(self):
                if not waited:
                    waited.append(True)
                    threading.Event().wait(3)

        waited = []

        with mock.patch("fabius.simulated._TURN_SECONDS_MAX", 0.2), self.assertRaises(SimulationFailed) as raised:
            run(Waits)
        self.assertIn("buy does not end: TimeoutError: client 0 has the turn", str(raised.exception))

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "Scenario has no call"):
            run(Scenario)
        with self.assertRaisesRegex(ValueError, "'x1' is no step"):
            run(Sale, steps="0 x1")
        with self.assertRaisesRegex(ValueError, "one client"):
            run(Sale, clients=0)


class Crashes(unittest.TestCase):
    def test_what_was_acknowledged_survives(self):
        for scenario in (Sale, Compiled):
            with self.subTest(scenario=scenario.__name__):
                report = run(scenario, runs=10, clients=4, calls=12, crashes=2)
                self.assertGreater(report.restarts, 10)
                self.assertGreater(report.unknown, 0)
                self.assertGreater(report.acknowledged, 0)

    def test_calls_under_way_end_where_they_are(self):
        ended = []

        class Ends(Sale):
            @call(item=(1, 2), n=(1,))
            def buy(self, item, n):
                try:
                    return self.reserve(item, n)
                except Exception:
                    raise AssertionError("a call that is killed has no exception to catch")
                finally:
                    ended.append(item)

        report = run(Ends, seed=1, clients=4, calls=6, crashes=1)
        self.assertEqual(len(ended), 6)
        self.assertGreater(report.unknown, 0)

    def test_what_is_not_there_after_a_crash_is_found(self):
        class InMemory(Sale):
            """Takes a call for done that is only noted in the process."""

            def define(self, db):
                self.noted = []

                @db.transaction(side="client")
                def write(notes: list):
                    for item, n in notes:
                        db.stock[item].qty -= n

                def reserve(item, n):
                    self.noted.append((item, n))
                    if len(self.noted) == 3:
                        write(self.noted)
                        self.noted = []

                self.reserve = reserve

            def invariant(self, db):
                gone = 12 - db.execute("select sum(qty) from stock").scalar()
                sold = self.sold(self.acknowledged) - sum(n for _, n in self.noted)
                assert sold <= gone, f"{gone} are gone, {sold} are sold"

        run(InMemory, runs=3, clients=1, calls=6)
        with self.assertRaises(SimulationFailed) as raised:
            run(InMemory, runs=10, clients=1, calls=6, crashes=1)
        failed = raised.exception
        self.assertRegex(failed.steps, r"^\d c0$")
        self.assertIn("the invariant does not hold after a restart", str(failed))


class Faults(unittest.TestCase):
    def test_a_disk_that_fails_is_a_legal_outcome(self):
        report = run(Sale, runs=10, clients=3, calls=12, faults=3)
        self.assertGreater(report.restarts, 0)
        self.assertGreater(report.acknowledged, 0)

    def test_crashes_and_faults(self):
        report = run(Compiled, runs=5, clients=3, calls=15, crashes=2, faults=3, checks_each_call=True)
        self.assertGreaterEqual(report.restarts, 10)


@unittest.skipUnless(importlib.util.find_spec("pytest"), "there is no pytest")
class Plugin(unittest.TestCase):
    def pytest(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            source = """
                from test_testing import LostUpdate, Sale

                def test_sale(simulation):
                    assert simulation(Sale, calls=5).runs == 4

                def test_lost_update(simulation):
                    simulation(LostUpdate)
                """
            pathlib.Path(folder, "test_it.py").write_text(textwrap.dedent(source))
            path = os.pathsep.join([*sys.path, str(pathlib.Path(__file__).parent)])
            # What the package's entry point does where it is installed.
            command = [sys.executable, "-m", "pytest", "-p", "fabius.pytest_plugin", "-p", "no:cacheprovider", *options]
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
            )
        return done.stdout + done.stderr

    def test_scenarios_are_run_with_several_seeds(self):
        said = self.pytest("--fabius-runs=4")
        self.assertIn("1 failed, 1 passed", said)
        again = re.search(r"or: pytest 'test_it.py::test_lost_update' --fabius-seed=(\d+)", said)
        self.assertIsNotNone(again, said)
        self.assertIn(f"seed {again[1]}, 2 of 30 calls", said)
        said = self.pytest(f"--fabius-seed={again[1]}", "-k", "lost_update")
        self.assertIn(again[0], said)


class Package(unittest.TestCase):
    def test_pytest_is_not_needed(self):
        code = "import sys; sys.modules['pytest'] = None; import fabius.testing"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code], check=True, env=env)


if __name__ == "__main__":
    unittest.main()
