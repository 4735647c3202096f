"""Exceptions that functions catch: programs do what Python does."""

import random
import unittest

from fabius.compilation import CompilationError

from shop import Agreeing, defined
from writer import STATEMENTS

HELPERS = """\
class Short(Exception):
    pass


class VeryShort(Short):
    pass


def take(item: int, n: int) -> int:
    row = db.stock[item]
    if row.qty < n:
        row.note = 'asked for'
        if n > 50:
            raise VeryShort(f'{n - row.qty} too few')
        raise Short(f'only {row.qty} left')
    fabius.require(n != 13, 'no thirteen')
    row.qty -= n
    return row.qty


def sure(item: int, n: int) -> int:
    try:
        return take(item, n)
    except Short as error:
        print('sure:', error)
        raise ValueError(str(error))


"""

#: Bodies of functions `f(a: int, b: int) -> int`, and calls of them.
CASES = [
    # What was done before stays done.
    (
        """
    row = db.stock[1]
    try:
        row.qty -= a
        if row.qty < 3:
            raise ValueError('few')
        row.note = 'enough'
    except ValueError as error:
        row.note = f'{error}, {a}'
        print(error)
    return row.qty
""",
        [(1, 0), (2, 0), (1, 0)],
    ),
    # The first handler for a class counts, in functions that are called too.
    (
        """
    x = b
    try:
        x = take(a, b)
        x += 100
    except VeryShort:
        x = -1
    except (Short, fabius.Aborted) as error:
        x = -len(str(error))
    except KeyError:
        return -1000
    else:
        x += 1000
    return x
""",
        [(1, 1), (1, 50), (1, 51), (9, 1), (3, 13), (2, 0)],
    ),
    (
        """
    try:
        return sure(a, b)
    except ValueError as error:
        print(f'f: {error!s}')
        return -1
""",
        [(1, 1), (1, 50), (3, 1)],
    ),
    # What no handler is for ends the call.
    ("    try:\n        return sure(a, b)\n    except Short:\n        return -1\n", [(1, 1), (1, 50), (3, 13)]),
    # Handlers around handlers; what a handler raises is not its own.
    (
        """
    n = 0
    try:
        try:
            n += 1
            if a > 0:
                raise IndexError('a')
            n += 10
        except IndexError:
            n += 100
            if a > 1:
                raise ValueError('b')
        except ValueError:
            n += 1000
        n += 10000
    except ValueError:
        n += 100000
    return n
""",
        [(0, 0), (1, 0), (2, 0)],
    ),
    # Loops that are left, and gone on with.
    (
        """
    n = 0
    for i in range(6):
        try:
            if i == a:
                continue
            if i == b:
                break
            if i == 2:
                raise ValueError('two')
            n += 1
        except ValueError:
            n += 10
        else:
            n += 100
        n += 1000
    return n
""",
        [(0, 5), (2, 9), (9, 2), (1, 4)],
    ),
    (
        """
    n = 0
    while True:
        try:
            for i in range(5):
                n += 1
                if n == a:
                    raise KeyError(n)
            return n
        except KeyError:
            n += abs(b) + 1
            if n > 40:
                return -n
""",
        [(3, 1), (9, 0), (7, 40), (3, 7)],
    ),
    # What programs raise without being asked.
    (
        """
    xs = [10, 20]
    d = {1: 2}
    n = 0
    try:
        n = xs[a]
        n += d[b]
        n //= b - 1
    except IndexError as error:
        print(error)
        n = -1
    except KeyError:
        n -= 2
    except ZeroDivisionError:
        n -= 3
    return n
""",
        [(0, 1), (1, 3), (2, 1), (0, 2), (-5, 0)],
    ),
    (
        """
    q, r = 0, 0
    try:
        q, r = divmod(a, b)
        x = a / float(b) if b != 7 else a / 7.0
        x /= b - 3.0
        q %= int(x) + 100
    except ZeroDivisionError:
        r = -1
    return q * 100 + r
""",
        [(7, 2), (7, 0), (7, 3), (-7, 7)],
    ),
    (
        """
    n = 1
    try:
        n = db.stock[a].qty
        db.stock[b].qty += 1
        db.stock[b].delete()
        assert db.plain[1].a == 10, f'not {a}'
        assert n < 100
    except fabius.RowNotFound:
        return -n
    except AssertionError as error:
        print(error)
        return n
    return 0
""",
        [(1, 9), (9, 1), (2, 2), (3, 4)],
    ),
    # A list, and a row of another name, as far as they came.
    (
        """
    xs = [0]
    row = db.plain[1]
    try:
        for x in range(a):
            xs.append(x)
            row.a += 1
            if x == b:
                raise LookupError
    except LookupError:
        xs.append(-1)
        row.b += row.a
    return sum(xs) * 1000 + row.b
""",
        [(3, 1), (3, 7), (0, 0)],
    ),
    # What `else` knows, handlers do not.
    (
        """
    row = db.stock[1]
    row.note = None if a else 'x'
    try:
        other = db.stock[b]
    except KeyError:
        row.note = f'<{row.note}>'
    else:
        other.note = row.note + '!'
    return row.qty
""",
        [(1, 9), (0, 9), (0, 2), (1, 2)],
    ),
    # Names that get rows and values at once have none of them if a row is not there.
    (
        """
    n, m = 1, 2
    try:
        n, row, m = 5, db.stock[a], b
        row.qty += n + m
    except KeyError:
        n += 100
    return n * 10 + m
""",
        [(1, 3), (9, 3)],
    ),
    # Times that are divided by others.
    (
        """
    try:
        return timedelta(hours=a) // timedelta(minutes=b)
    except ZeroDivisionError:
        return -1
""",
        [(1, 7), (1, 0)],
    ),
    # Whichever way control comes, a name has a value.
    (
        """
    try:
        n = take(a, b)
    except (KeyError, Short):
        n = 0
    except fabius.Aborted as error:
        raise RuntimeError(f'never: {error}')
    return n + 1
""",
        [(1, 1), (9, 1), (1, 40), (3, 13)],
    ),
    (
        """
    o: int | None = None
    try:
        o = a
        if b:
            raise ValueError
        o += 1
    except ValueError:
        o = None
    return -1 if o is None else o
""",
        [(1, 1), (1, 0)],
    ),
    # A list stays what it was where the new one is not made.
    (
        """
    found = {1: 2}
    xs = [7]
    try:
        xs = [found[x] for x in [1, a]]
    except KeyError:
        print('missing')
    return len(xs) * 100 + sum(xs) + b
""",
        [(1, 0), (9, 0)],
    ),
    # What is caught is raised once more, with or without a text, and caught around.
    (
        """
    row = db.stock[1]
    try:
        try:
            if b == 0:
                raise KeyError(a)
            if b == 1:
                raise Short
            if b == 2:
                raise Short('few')
            if b == 3:
                fabius.require(False, f'{a} of {b}')
            if b == 13:
                return db.stock[a + 100].qty
            if b == 60:
                assert a < 0
            row.qty += take(2, b)
        except (Short, KeyError, fabius.Aborted, fabius.RowNotFound, AssertionError):
            row.qty += 1
            if a < 5:
                raise
            row.note = 'kept'
    except VeryShort as error:
        print('very', error)
    except Short as short:
        try:
            raise ValueError(f'{a}')
        except ValueError as value:
            if a == 2:
                raise short
            if a == 3:
                raise value
            if a == 4:
                raise
        print('short', short)
    return row.qty
""",
        [(a, b) for a in (1, 2, 3, 4, 6) for b in (0, 1, 2, 3, 13, 60)],
    ),
]

#: A body, what is refused, and what is told to do instead.
REFUSED = [
    ("    try:\n        n = 1\n    finally:\n        n = 2\n", "finally", "behind the try"),
    (
        "    try:\n        n = g(a)\n    except ValueError as e:\n        try:\n            raise IndexError\n"
        "        except IndexError as e:\n            n = 1\n        raise e\n",
        "another exception's name too",
        "give it another",
    ),
    ("    raise\n", "raise without an exception", "ValueError"),
    ("    try:\n        raise\n    except ValueError:\n        n = 1\n", "raise without an exception", "ValueError"),
    ("    try:\n        n = 1\n    except:\n        n = 2\n", "except without a class", "ValueError"),
    ("    try:\n        n = 1\n    except Exception:\n        n = 2\n", "raises too", "test for the case before"),
    ("    try:\n        n = 1\n    except fabius.IntegrityError:\n        n = 2\n", "raises", "around the call"),
    ("    try:\n        n = 1\n    except 5:\n        n = 2\n", "except of anything but a class", "ValueError"),
    ("    try:\n        n = 1\n    except ValueError as e:\n        n = e.args\n", "as a value", "str(e)"),
    (
        "    try:\n        n = [1][a]\n    except KeyError as e:\n        print(e)\n",
        "the text of a KeyError",
        "the name out",
    ),
    (
        "    try:\n        n = g(a)\n    except ZeroDivisionError:\n        n = 0\n",
        "a call within try",
        "test what it divides by",
    ),
    ("    try:\n        row = db.stock[a]\n    except KeyError:\n        n = 0\n    return row.qty\n", "row", "value"),
]


class Handlers(Agreeing):
    STATEMENTS = STATEMENTS

    def test_none_is_an_argument(self):
        self.agree("def f(a: int) -> None:\n    assert a > 1, None\n    raise ValueError(None)\n", (1,), (2,))

    def test_cases(self):
        for body, calls in CASES:
            self.begin_again()
            with self.subTest(body=body):
                self.agree(f"{HELPERS}def f(a: int, b: int) -> int:\n{body.lstrip(chr(10))}", *calls)

    def test_many_calls(self):
        """All bodies with more arguments, on whatever rows the calls before have left."""
        chance = random.Random(7)
        for body, _ in CASES:
            calls = [(chance.randint(-1, 10), chance.choice([-1, 0, 1, 2, 3, 13, 60])) for _ in range(20)]
            with self.subTest(body=body):
                self.agree(f"{HELPERS}def f(a: int, b: int) -> int:\n{body.lstrip(chr(10))}", *calls)

    def test_refused(self):
        for body, what, instead in REFUSED:
            source = f"def g(n: int) -> int:\n    return 5 // n\n\n\ndef f(a: int) -> int:\n{body}    return 0\n"
            with self.subTest(body=body), self.assertRaises(CompilationError) as refused:
                self.there.transaction(defined(source, self.there))
            self.assertIn(what, str(refused.exception))
            self.assertIn(instead, str(refused.exception))


if __name__ == "__main__":
    unittest.main()
