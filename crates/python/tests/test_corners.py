"""Corners in which a program could do something else than its function, each of which once did."""

import datetime
import decimal
import unittest
from collections import namedtuple

from model import Answer
from shop import Agreeing, defined
from writer import LINES, MORE, STATEMENTS

UTC = datetime.timezone.utc

MOMENTS = [
    datetime.datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime.datetime(1969, 12, 31, 3, 0, 0, 5, tzinfo=UTC),
    datetime.datetime(2000, 1, 1, tzinfo=UTC),
]

#: Texts that may be numbers.
NUMBERS = [
    "1",
    " -20 ",
    "+3",
    "1_000",
    "1__0",
    "_1",
    "",
    " ",
    "x'y",
    "0x10",
    "1.5",
    "-.5",
    "5.",
    "1e3",
    "1E-2_0",
    "iNf",
]
NUMBERS += ["nan", "1e400", "1_.5", "\u20091\u2009", "922337203685477580", "007", "--1", "a\"b'c"]

#: A function, and calls of it.
CASES = [
    # Truths are numbers.
    (
        "def f(a: int, s: str) -> int:\n    n = sum(c in 'aeiou' for c in s) * 100 + (a > 3) * 10 - (a == 4)\n"
        "    n += a != 5\n    return n + True\n",
        [(4, "hello"), (5, ""), (1, "aaa")],
    ),
    ("def f(x: float) -> float:\n    return abs(x) + abs(-1.5)\n", [(-0.0,), (2.5,), (-1e300,)]),
    # Two rows at once; rows that are counted; pairs in order; what sets have in common.
    (
        "def f(a: int, b: int) -> int:\n    one, other = db.stock[a], db.stock[b]\n    one.qty += other.qty\n"
        "    n, third = 5, db.plain[1]\n    third.a += n\n    return one.qty - other.qty\n",
        [(1, 2), (1, 1), (3, 1), (9, 1)],
    ),
    (
        "def f(a: int) -> int:\n    many = len([row for row in db.line.where(cart=1) if row.many > a])\n"
        "    return many * 100 + len([row for row in db.stock])\n",
        [(0,), (-5,), (1,)],
    ),
    (
        "def f(a: int) -> list[str]:\n    d = {}\n    for row in db.line:\n        d[row.many] = row.n\n    d[a] = 9\n"
        "    down = [f'{k}={v}' for k, v in sorted(d.items(), reverse=True)]\n"
        "    for k, v in sorted(d.items()):\n        d[k] = v + 1\n"
        "    return down + [str(v) for v in d.values()]\n",
        [(0,), (7,)],
    ),
    (
        "def f(xs: list[int], ys: list[int]) -> list[int]:\n    both = sorted(set(xs) & set(ys), reverse=True)\n"
        "    return both + [len(set(xs) | {7}), sum(set(xs) - set(ys))]\n",
        [([1, 2, 2, 3], [3, 2, 9]), ([], [1])],
    ),
    # Texts as numbers, numbers in quotients, and texts in quotes.
    ("def f(s: str) -> int:\n    return int(s) * 2 if s else -1\n", [(one,) for one in NUMBERS]),
    (
        "def f(s: str) -> str:\n    try:\n        return f'{float(s)}'\n    except ValueError as error:\n"
        "        return str(error)\n",
        [(one,) for one in NUMBERS],
    ),
    (
        "def f(xs: list[str]) -> int:\n    total = 0\n    for x in xs:\n        try:\n            total += int(x)\n"
        "        except ValueError as error:\n            print(error)\n    return total\n",
        [(NUMBERS,)],
    ),
    ("def f(xs: list[str]) -> list[str]:\n    return sorted(xs, key=int)\n", [(["10", "9", "-1"],), (["1", "x"],)]),
    (
        "def f(a: int, b: int) -> float:\n    return a / b\n",
        [(1, 3), (-7, 2), (2**63 - 1, 10), (2**53 + 1, 2**53), (-(2**63), -1), (0, -5), (1, 0), (10**18 + 1, 7)],
    ),
    (
        "def f(s: str, o: str | None) -> str:\n    return f'{s!r} {o!r} ' + repr(s + 'x')\n",
        [("it's", None), ('a"b', "a'\"b"), ("\n\t\\\x7f\xad\u200b", "é\u0301 😀 \U000e0001\xa0"), ("", "")],
    ),
    # Copies, and `bool` in `match`.
    (
        "def f(a: int) -> int:\n    one = {a}\n    other = one.copy()\n    other.add(7)\n"
        "    return len(one) * 10 + len(other)\n",
        [(1,), (7,)],
    ),
    (
        "def g(xs: list[int]) -> int:\n    return len(xs)\n\n\n"
        "def f(xs: list[int]) -> int:\n    return g(xs.copy()) * 10 + len(xs)\n",
        [([1],), ([],)],
    ),
    (
        "def f(a: bool) -> int:\n    match a:\n        case True:\n            return 1\n        case False:\n"
        "            return 2\n    return 0\n",
        [(True,), (False,)],
    ),
    # What stands for an empty list is computed also where that is not empty.
    ("def f(numbers: list[int]) -> int:\n    return max(numbers, default=numbers[5])\n", [([1],)]),
    # A loop over rows is over what is there when it begins, whatever its turns change.
    (
        "def f(a: int) -> int:\n    count = 0\n    for row in db.line.where(n=a):\n        a = 2\n        count += 1\n"
        "    return count\n",
        [(1,)],
    ),
    (
        f"def f(a: int) -> int:\n    count = 0\n    for row in db.execute({LINES!r}, (a,)):\n        a = -100\n"
        "        count += 1\n    return count\n",
        [(1,)],
    ),
    (
        f"def f(a: int) -> int:\n    total = 0\n    for row in db.execute({LINES!r}, (a,)):\n"
        "        db.line[1, 2].many += 50\n        total += row.many\n    return total\n",
        [(-5,)],
    ),
    (
        f"def f(a: int) -> int:\n    total = 0\n    for row in db.line:\n"
        f"        n = db.execute({MORE!r}, (a,)).rowcount\n"
        "        total += n * row.many\n    return total\n",
        [(2,)],
    ),
    (
        f"def f(a: int) -> int:\n    for row in db.execute({LINES!r}, (a,)):\n"
        "        db.line.insert(cart=3, n=row.n, many=1)\n    return a\n",
        [(1,)],
    ),
    # What stands in a loop's `else`.
    (
        "def f(a: int) -> int:\n    r = 0\n    for i in range(3):\n        for j in range(2):\n            r += 1\n"
        "        else:\n            break\n    else:\n        r = 100\n    return r\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    for i in range(3):\n        if i == a:\n            x = i\n            break\n"
        "    else:\n        x = 100\n    return x\n",
        [(1,), (9,)],
    ),
    # Collections that change while they are gone through.
    (
        "def f(a: int) -> list[int]:\n    xs = [1, 2, 3]\n    out = [0]\n    for i, x in enumerate(xs):\n"
        "        xs = [7]\n        out.append(x + i)\n    return out\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    d = {1: 2, 3: 4}\n    n = 0\n    for k, v in d.items():\n        d = {'z': 9}\n"
        "        n += v\n    return n\n".replace("'z'", "0"),
        [(1,)],
    ),
    ("def f(a: int) -> list[int]:\n    xs = [1, 2, 3]\n    for x in xs:\n        xs[2] = 9\n    return xs\n", [(1,)]),
    (
        "def f(a: int) -> int:\n    d = {1: 2, 3: 4}\n    for k in d:\n        d[k] += a\n    return sum(d.values())\n",
        [(5,)],
    ),
    # `None` as text, and as an argument.
    ("def f(a: bool | None) -> str:\n    return f'{a}'\n", [(None,), (True,), (False,)]),
    (
        "def g(s: int | None) -> int | None:\n    if s is not None and s > 1:\n        return s\n    return None\n\n\n"
        "def f(a: int) -> str:\n    x = g(a)\n    y = g(None)\n    return f'{x} {y} {g(a) == g(a)} {x is None}'\n",
        [(1,), (2,)],
    ),
    (
        "def g(s: str) -> int:\n    return len(s)\n\n\n"
        "def f(a: int) -> int:\n    row = db.stock[a]\n    return g(row.note)\n",
        [(1,), (2,), (3,)],
    ),
    # What is computed before what.
    (
        "def g(n: int) -> int:\n    db.stock[3].qty += n\n    return n\n\n\n"
        "def f(a: int) -> int:\n    db.stock[3].qty += g(2)\n    x = 1\n    x += (x := 5)\n    return x\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    db.stock[9].qty = 1 // (a - 1)\n    return 1\n", [(1,), (2,)]),
    (
        "def h(n: int) -> int:\n    print('h', n)\n    return n\n\n\n"
        "def g(a: int, b: int) -> int:\n    return a * 10 + b\n\n\n"
        "def f(a: int) -> int:\n    return g(b=h(1), a=h(2))\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    d = {1: 2}\n    return d.get(a, 1 // (a - 1))\n", [(1,), (2,)]),
    # The end of a function.
    ("def f(a: int) -> int | None:\n    if a > 1:\n        return a\n", [(1,), (2,)]),
    (
        "def f(a: int) -> int:\n    if a > 1:\n        x = 1\n    else:\n        raise ValueError('no')\n"
        "    return x\n",
        [(1,), (2,)],
    ),
    ("def f(a: int) -> int:\n    while True:\n        a += 1\n        if a > 5:\n            return a\n", [(1,), (9,)]),
    # Parameters that are assigned, numbers that become others, exceptions with numbers.
    ("def f(xs: list[int]) -> list[int]:\n    xs = xs + [1]\n    xs.append(2)\n    return xs\n", [([5],), ([],)]),
    (
        "def f(a: int) -> str:\n    total = 0\n    for row in db.stock:\n        total += row.price * row.qty\n"
        "    return 'much' if total > 100 else 'little'\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    best = None\n    for row in db.stock:\n        if best is None or row.qty < best:\n"
        "            best = row.qty\n    return best if best is not None else -1\n",
        [(1,)],
    ),
    ("def f(a: int) -> int:\n    raise KeyError(a)\n", [(5,)]),
    ("def f(a: int) -> int:\n    raise ValueError\n", [(5,)]),
    ("def f(a: int) -> int:\n    d = {1: 1}\n    return d[a]\n", [(1,), (5,)]),
    # Rows that are given back when they are written.
    (
        "def f(a: int) -> int:\n    row = db.line.insert(cart=9, n=a, item=3, many=4)\n    db.line[9, a].many += 100\n"
        "    return row.many\n",
        [(1,), (2,)],
    ),
    (
        "def f(a: int) -> int:\n    row = db.line.upsert(cart=1, n=a, many=4)\n    row.many += 1\n"
        "    return row.many\n",
        [(1,), (5,)],
    ),
    # Rows of a table that is gone through, and written by other names; keys that others follow.
    (
        "def f(a: int) -> int:\n    for x in db.stock:\n        x.qty += 1\n        db.stock[2].qty += 10\n"
        "    return db.stock[2].qty\n",
        [(1,)],
    ),
    (
        "def f(a: int) -> int:\n    n = 0\n    for x in db.stock:\n        db.stock[3].qty += 5\n        x.note = 'q'\n"
        "        n = n * 1000 + x.qty\n    return n\n",
        [(1,)],
    ),
    ("def f(xs: list[int]) -> int:\n    xs, ys = [1], xs\n    return len(ys) * 10 + len(xs)\n", [([3, 1, 4],)]),
    (
        "def f(a: int) -> int:\n    n = 0\n"
        "    for i in range(a, a + 9_000_000_000, 3_000_000_000):\n        n += 1\n    return n\n",
        [(3_000_000_000,)],
    ),
    ("def f(a: Decimal) -> bool:\n    return a > 5\n", [(decimal.Decimal("1000000000000000000"),)]),
    ("def f(a: int | None) -> int:\n    d = {1: 2}\n    return d[a]\n", [(None,), (1,)]),
    # Columns of a row that are written one after the other.
    (
        "def f(n: int) -> str:\n    row = db.plain[1]\n    row.a += n\n    row.b = row.a + n\n    row.c = f'{row.b}'\n"
        "    row.a = 7\n    row.b -= row.a\n    return f'{row.a} {row.b} {row.c}'\n",
        [(1,), (5,)],
    ),
    (
        "def f(n: int) -> int:\n    row = db.plain[1]\n    row.a = n\n    row.b = 1 // n\n"
        "    row.c = None\n    return row.a\n",
        [(1,), (0,), (-1,)],
    ),
    (
        "def f(n: int) -> int:\n    row = db.plain[1]\n    other = db.plain[1]\n    row.a += n\n    other.b += n\n"
        "    row.b += n\n    row.c = 'y'\n    return row.a + row.b + other.b\n",
        [(1,), (5,)],
    ),
    # Texts over several lines, comprehensions of a name that means something outside.
    ('def f(a: int) -> str:\n    return """a\n  b\n      c"""\n', [(1,)]),
    ("Decimal = 5\n\n\ndef f(a: int) -> int:\n    return sum([Decimal for Decimal in [a, 2]]) + Decimal\n", [(1,)]),
    # Rounding, repetition, signs.
    ("def f(a: int) -> Decimal:\n    return round(Decimal(a), 1)\n", [(1,)]),
    (
        "def f(x: Decimal) -> str:\n    y = round(x, 2) * 100\n"
        "    return f'{int(y)} {y == int(y)} {round(x, 0) == x}'\n",
        [(decimal.Decimal(text),) for text in ("0.125", "0.135", "-0.125", "2.5", "-2.45", "0")],
    ),
    ("def f(a: int) -> str:\n    return 'ab' * a + '-' * 3\n", [(0,), (-2,), (3,)]),
    ("def f(a: float) -> bool:\n    return a > 1 and -a < 0 and a != 3\n", [(1.5,), (3.0,), (0.0,)]),
    ("def f(a: int) -> int:\n    return -9223372036854775808 + a\n", [(5,)]),
    # Powers, shifts and bits at the edges of 64 bits.
    ("def f(a: int) -> int:\n    return a ** 3 + pow(a, 0) + 2 ** 62\n", [(0,), (-7,), (1_000_000,)]),
    ("def f(a: int) -> int:\n    return (-2) ** 63 + a\n", [(0,), (5,)]),
    ("def f(a: int, n: int) -> int:\n    return a << n\n", [(1, 62), (-1, 63), (0, 99), (5, -1), (3, 0)]),
    ("def f(a: int, n: int) -> int:\n    return a >> n\n", [(-1, 1), (-9, 99), (9, 2), (5, -1), (-(2**63), 62)]),
    ("def f(a: int) -> int:\n    a <<= 2\n    a |= 1\n    a ^= 6\n    a &= ~8\n    return a\n", [(1,), (-9,)]),
    ("def f(a: int) -> int:\n    xs = [a]\n    xs[0] <<= a\n    db.plain[1].a |= a\n    return xs[0]\n", [(1,), (-9,)]),
    ("def f(a: int, b: int) -> str:\n    q, r = divmod(a, b)\n    return f'{q} {r}'\n", [(-7, 2), (7, -2), (7, 0)]),
    # Formats.
    (
        "def f(a: int, s: str) -> str:\n"
        "    return f'{a:05d}|{a:,}|{a:>8}|{a:*^9}|{a:+}|{a:x}|{a:.2f}|{a:012,}|{s:>5}|{s:_<5}|{s:.1}|{a!r}'\n",
        [(0, ""), (-1234567, "ab"), (12345678, "äöüßxy")],
    ),
    (
        "def f(x: float) -> str:\n    return f'{x:.2f} {x:.0f} {x:10.3f} {x:,.1f} {x:+.1%} {x} {round(x, 2)}'\n",
        [(value,) for value in (0.0, -0.0, 0.125, 2.675, 2.5, -0.001, 1e16, 123456789.987654321, 1e-7, 0.1 + 0.2)],
    ),
    (
        "def f(x: Decimal) -> str:\n    return f'{x:.2f} {x:.0f} {x:>12,.3f} {x:.1%} {x:+09.1f}'\n",
        [(decimal.Decimal(text),) for text in ("0", "0.125", "-0.001", "2.5", "999999.995", "-1234567.0000000001")],
    ),
    ("def f(a: int) -> str:\n    row = db.stock[a]\n    return f'{row.note:>3}'\n", [(1,), (2,)]),
    # Rounding.
    ("def f(x: float) -> int:\n    return round(x)\n", [(0.5,), (1.5,), (2.5,), (-0.5,), (-1.5,), (1e18,)]),
    ("def f(x: Decimal) -> int:\n    return round(x)\n", [(decimal.Decimal(text),) for text in ("0.5", "1.5", "-2.5")]),
    (
        "def f(x: Decimal) -> str:\n    y = x.quantize(Decimal('0.01'))\n"
        "    z = x.quantize(Decimal('1'), rounding='ROUND_HALF_UP')\n"
        "    return f'{y:.3f} {z:.1f} {x.copy_abs():.3f} {x.is_zero()} {x.to_integral_value():.0f}'\n",
        [(decimal.Decimal(text),) for text in ("0", "0.125", "-1.135", "2.5", "-2.5", "7")],
    ),
    (
        "def f(x: Decimal, y: Decimal, n: int) -> str:\n    z = round(x / y, 3) + (x / n).quantize(Decimal('0.1'))\n"
        "    z += (n / y).to_integral_value() + x // y + x % y + n % y\n    q, r = divmod(x, n)\n"
        "    d = (x / y).quantize(Decimal('0.01'), rounding='ROUND_DOWN')\n"
        "    whole, near = int(x / y), float(x / y)\n"
        "    return f'{z:.5f} {x / y:.20f} {q:.5f} {r:.5f} {d:.2f} {whole} {near} {round(x / y)}'\n",
        [
            (decimal.Decimal(x), decimal.Decimal(y), n)
            for x, y, n in [
                ("1", "3", 7),
                ("-2", "3", -7),
                ("0.0000000001", "7.1", 3),
                ("9999999999.99", "-0.0003", 1),
                ("2.5", "-1", 2),
                ("0.25", "0.1", 8),
                ("12.345", "1", 1),
            ]
        ],
    ),
    *(
        (
            f"def f(x: Decimal) -> Decimal:\n    return x.quantize(Decimal('0.1'), '{way}') - (x / 4).quantize("
            f"Decimal('1'), rounding='{way}')\n",
            [(decimal.Decimal(text),) for text in ("0.25", "0.35", "-0.25", "-0.31", "10", "6", "-6", "-7")],
        )
        for way in "ROUND_HALF_EVEN ROUND_HALF_UP ROUND_HALF_DOWN ROUND_UP ROUND_DOWN ROUND_CEILING ROUND_FLOOR "
        "ROUND_05UP".split()
    ),
    # Lists that change in the middle.
    (
        "def f(i: int, x: int) -> list[int]:\n    xs = [1, 2, 3, 2]\n    xs.insert(i, x)\n    xs.remove(2)\n"
        "    xs.insert(len(xs), xs.pop(0))\n    print(xs.pop(i), len(xs))\n    xs.pop(-1)\n    return xs\n",
        [(i, 9) for i in range(-6, 6)],
    ),
    ("def f(x: int) -> list[int]:\n    xs = [1]\n    xs.remove(x)\n    xs.pop(0)\n    return xs\n", [(1,), (2,)]),
    # Texts.
    (
        "def f(s: str) -> str:\n    return f'{s.isalpha()} {s.isdecimal()} {s.isdigit()} {s.isalnum()} {s.isspace()} '"
        " + f'{s.isascii()} {s.isupper()} {s.islower()}'\n",
        [
            (text,)
            for text in ("", "abc", "Ab1", "ÄÖ", "12", "٣", "²", "½", "中", "ǅ", " \u2003\x1f", "a\n", "1\n", "_")
        ],
    ),
    # Moments and what is between them.
    (
        "def f(t: datetime) -> str:\n    u = t + timedelta(days=1, hours=-3)\n"
        "    return f'{u} {u:%Y-%m-%d %H:%M:%S.%f%%} {u.isoformat()} {u.weekday()} {u.isoweekday()} {u.date()} '"
        " + f'{u.year} {u.month} {u.day} {u.hour} {u.minute} {u.second} {u.microsecond} {u.timestamp()}'\n",
        [(moment,) for moment in MOMENTS],
    ),
    (
        "def f(t: datetime, u: datetime) -> float:\n    d = t - u\n    print(d.days, d.seconds, d.microseconds)\n"
        "    return d.total_seconds()\n",
        [(one, other) for one in MOMENTS for other in MOMENTS],
    ),
    (
        "def f(t: datetime, n: int) -> datetime:\n    return t + n * timedelta(days=365)\n",
        [(MOMENTS[0], 9000), (MOMENTS[0], 9)],
    ),
    (
        "def f(d: date, n: int) -> date:\n    return d + timedelta(hours=n) - timedelta(hours=30)\n",
        [(datetime.date(2024, 2, 28), n) for n in (0, 24, -1, 90)] + [(datetime.date(1, 1, 1), 0)],
    ),
    (
        "def f(d: date, e: date) -> str:\n"
        "    return f'{(d - e).days} {d:%d.%m.%Y} {d} {d.isoformat()} {max(d, e).day}'\n",
        [
            (datetime.date(2024, 3, 1), datetime.date(2023, 3, 1)),
            (datetime.date(1999, 12, 31), datetime.date(2000, 1, 1)),
        ],
    ),
    (
        "def g(d: timedelta) -> timedelta:\n    return d * 2\n\n\nDAY = timedelta(days=1)\n\n\n"
        "def f(d: timedelta, ds: list[timedelta]) -> list[timedelta]:\n    total = sum(ds, timedelta())\n"
        "    return [g(d) + total - DAY] + [one // 3 for one in ds] + [d % DAY]\n",
        [(datetime.timedelta(hours=5), [datetime.timedelta(days=-1, microseconds=1), datetime.timedelta(3)])],
    ),
    (
        "def f(d: timedelta | None, t: datetime) -> timedelta | None:\n    if d is None:\n        return None\n"
        "    return max(d, t - BEGIN) if d else -abs(d) * 2\n",
        [(None, MOMENTS[0]), (datetime.timedelta(), MOMENTS[1]), (datetime.timedelta(5), MOMENTS[2])],
    ),
    # Times in columns: a year is 365 days, a month 30.
    (
        "def f(id: int, d: timedelta) -> timedelta | None:\n    row = db.shift[id]\n    row.worked += d\n"
        "    row.worked -= timedelta(hours=1)\n    if row.pause is None:\n        row.pause = d // 2\n"
        "        return None\n    row.pause = None if d else -row.pause\n    return row.worked % timedelta(days=30)\n",
        [(id, datetime.timedelta(n, 7)) for id in (1, 2) for n in (0, -1, 100_000)] + [(3, datetime.timedelta())],
    ),
    (
        "def f(id: int, d: timedelta) -> int:\n    db.shift[id].worked = d\n    db.shift[2].worked += d\n"
        "    db.shift.insert(id=7, worked=d * 2)\n    db.shift.upsert(id=1, worked=d, pause=timedelta(minutes=-1))\n"
        "    n = len([row for row in db.shift.where(worked=d)]) * 100 + sum(1 for row in db.shift.where(pause=None))\n"
        "    return n + sum(1 for row in db.shift if row.worked == d or row.pause == d) * 10\n",
        [(id, datetime.timedelta(days=n)) for id in (1, 2) for n in (-1, 0, 400)],
    ),
    (
        "def f(d: timedelta) -> int:\n    count = 0\n    for row in db.shift.where(worked=d):\n        count += 1\n"
        "    return count\n",
        [(datetime.timedelta(days=422, seconds=14706, milliseconds=700),), (datetime.timedelta(hours=8),)]
        + [(datetime.timedelta(days=417, seconds=14706, milliseconds=700),)],
    ),
    # Numbers with names; exceptions that come from others.
    (
        "def f(a: int) -> int:\n    try:\n        if a > Size.SMALL.value:\n            raise ValueError(f'{a}')\n"
        "        return Size.LARGE.value * 2 + sum(x == Size.SMALL.value for x in [a, 7])\n"
        "    except ValueError as error:\n"
        "        raise AssertionError('no such size') from error\n",
        [(0,), (1,), (2,)],
    ),
    # A set that has no name.
    (
        "def f(xs: list[int], s: str) -> list[int]:\n    ys = [0]\n    ys += {1, 1, len(s)}\n    ys.extend(set(xs))\n"
        "    ys.extend({x % 2 for x in xs})\n    n = len({x % 3 for x in xs}) * 10 + len({1, 1, len(xs)})\n"
        "    m = sum({x % 3 for x in xs}) + sum({1, len(xs)}) + sum(set(xs)) + max({x % 5 for x in [*xs, 1]})\n"
        "    for c in set(s):\n        m += 7 if c == 'a' else 1\n    for i, x in enumerate({x // 2 for x in xs}):\n"
        "        m += i + x\n    zs = sorted({*xs, 3}) + sorted(ys)\n"
        "    return [n, m] + zs + [len(set(s)), len({r.cart for r in db.line})]\n",
        [([], ""), ([1, 4, 4], "aa"), ([0, 5, 10, 3], "ab"), ([-3, 3, -3], "bcb")],
    ),
    (
        "def f(xs: list[int]) -> str:\n    a = {1, 2, 2}\n    b = {2, 3}\n    c = [*{x % 2 for x in xs}]\n"
        "    n = len(a | b) * 100 + len({*a} & {2, 2}) * 10 + len(c) + len(list(set(xs)))\n"
        "    return ' '.join({str(x % 1) for x in xs}) + str(n)\n",
        [([1, 3, 5],), ([2, 4, 1],)],
    ),
    # Rows by a range of their keys.
    (
        "def f(a: int, b: int) -> int:\n    total = 0\n    for row in db.stock[a:b]:\n        row.qty += 1\n"
        "        total = total * 10 + row.item\n    for row in db.stock[b:]:\n        total = total * 10 + row.item\n"
        "    return total * 100 + sum(row.qty for row in db.stock[:a]) + len([row for row in db.stock[:]])\n",
        [(1, 3), (2, 2), (3, 1), (-5, 100)],
    ),
    (
        "def f(cart: int, n: int) -> list[int]:\n    made = [row.many for row in db.line[cart, n:]]\n"
        "    made += [row.many for row in db.line[cart, :n]] + [row.n for row in db.line[cart:]]\n"
        "    for row in db.line[cart, :]:\n        n += 1\n        row.delete()\n"
        "    return made + [n, 1 if any(row.many < 0 for row in db.line[1, n - 1 : n + 3]) else 0]\n",
        [(1, 1), (1, 2), (2, 1), (0, 0)],
    ),
    # Texts that are taken apart.
    ("def f(s: str) -> list[str]:\n    return s.split(',')\n", [("",), ("a",), (",a,,b",)]),
    ("def f(s: str) -> list[str]:\n    return s.split()\n", [("",), (" \t",), (" a\u2003b c ",)]),
    ("def f(s: str, n: int) -> list[str]:\n    return s.split('ab', n)\n", [("xabyabz", n) for n in (-1, 0, 1, 5)]),
    ("def f(s: str, t: str) -> list[str]:\n    return s.split(t)\n", [("aaa", "aa"), ("aaa", ""), ("äöä", "ö")]),
    ("def f(s: str) -> str:\n    key, value = s.split('=')\n    return value + key\n", [("a=b",), ("a",), ("a=b=c",)]),
    (
        "def f(s: str) -> str:\n    a, b, c = s.partition('=')\n    d, e, g = s.rpartition('=')\n"
        '    return f\'{a}|{b}|{c}|{d}|{e}|{g}|{s.count("=")}|{s.rfind("=")}\'\n',
        [("a=b=c",), ("abc",), ("",)],
    ),
    ("def f(s: str) -> int:\n    return s.index('b') * 10 + s.rindex('b')\n", [("abcb",), ("xyz",)]),
    (
        "def f(s: str, n: int) -> str:\n"
        '    return f\'{s.zfill(n)}|{s.ljust(n)}|{s.rjust(n, ".")}|{s.removeprefix("-")}|{s.removesuffix("7")}\'\n',
        [("-7", 5), ("+7", 1), ("7", 3), ("", 2), ("äb", -3)],
    ),
    # Order by keys, in which equal ones keep their places.
    (
        "def f(xs: list[int], n: int) -> list[int]:\n    return sorted(xs, key=lambda x: x % n, reverse=True)\n",
        [([5, 1, 4, 2, 3, 1], 2), ([], 2), ([1, 2], 0)],
    ),
    (
        "def f(xs: list[str]) -> list[str]:\n    ys = xs.copy()\n"
        "    ys.sort(key=lambda x: (len(x), x))\n    return ys\n",
        [(["bb", "a", "", "ab"],)],
    ),
    (
        "def f(xs: list[str]) -> str:\n    return max(xs, key=len) + min(xs, key=lambda x: (-len(x), x), default='')\n",
        [(["bb", "a", "ab"],), ([],)],
    ),
    # Records.
    (
        "def f(a: int) -> Place:\n    p = Place(a)\n    q = p\n    for i in range(3):\n"
        "        p = Place(p.y, p.x + i, name=f'{p.x}')\n    if a > 1:\n        return q\n    return p\n",
        [(1,), (2,)],
    ),
    (
        "@dataclass\nclass Sum:\n    n: int\n    total: Decimal\n"
        "def f(a: int) -> Point:\n    s = Sum(0, Decimal(0))\n    for row in db.stock:\n        s.n += 1\n"
        "        s.total = s.total + row.price\n        s.n, s.total = s.n + a, s.total * s.n\n"
        "    print(f'{s.n} {s.total:.4f}')\n    return Point(s.n)\n",
        [(1,), (2,)],
    ),
    # Operators, formats and records where they are computed only if they count.
    (
        "def f(a: int) -> bool:\n    return a > 0 and (1 << a) > 5 or a < 0 and (a >> a) == 0\n",
        [(3,), (0,), (-1,)],
    ),
    ("def f(a: int) -> int:\n    n = 0\n    while (1 << n) < a:\n        n += 1\n    return n\n", [(100,), (0,)]),
    (
        "def f(x: int) -> Place:\n    if x > 1:\n        p = Place(x)\n    elif x < 0:\n        p = Place(1, 2, 'n')\n"
        "    else:\n        return Place(0, 0, name=None)\n    return p\n",
        [(5,), (-1,), (0,)],
    ),
    (
        "def f(x: int) -> int:\n    p = Point(x)\n    for i in range(3):\n        p.x += i * p.x\n    a, p.x = p.x, 7\n"
        "    return a * 10 + p.x\n",
        [(5,), (-1,)],
    ),
    (
        "def f(x: int) -> list[int]:\n    ys = [1, 2, 3]\n    out = []\n    for k in range(2):\n        x = x * -1\n"
        "        out += sorted(ys, key=lambda y: y * x + sum([z * y for z in ys]))\n    return out\n",
        [(5,), (-1,)],
    ),
    (
        "def f(s: str) -> int:\n    n = 0\n    for line in s.split(';'):\n        k, _, v = line.partition('=')\n"
        "        if k in ('a', 'b') and v:\n            n += len(v)\n        for c in v.split('.'):\n"
        "            n += 100 * len(c)\n    return n\n",
        [("a=1;b=2.33;c=",), ("",)],
    ),
    (
        "def g(d: timedelta, n: int) -> timedelta | None:\n    return d * n if n > 0 else None\n\n\n"
        "def f(n: int) -> timedelta | None:\n    x = g(timedelta(hours=n), n)\n"
        "    if x is not None and x > timedelta(hours=3):\n        return -x\n    return x\n",
        [(1,), (5,), (-1,)],
    ),
    (
        "def f(xs: list[int], a: int) -> int:\n    return max(xs, default=xs[a])\n",
        [([1, 2], 1), ([1, 2], 5)],
    ),
    # Statements with their values in braces.
    (
        "def f(a: int) -> int:\n    db.sql(\"update stock set note = '{{' || {n} where item = {a}\", a=a, n='x}')\n"
        "    n = 0\n    for row in db.sql('select note, item from stock where item >= {least}', least=a * 1):\n"
        "        n += row.item\n    return n + db.sql('select count(*) from stock').scalar()\n",
        [(1,), (9,)],
    ),
    # What is chained may be longer than what is nested may be deep.
    (
        "def f(a: int, s: str) -> str:\n    n = " + "a + " * 60 + "a\n    return f'{n}' + " + "s + " * 60 + "s\n",
        [(2, "x")],
    ),
    # `and` and `or` give one of their parts.
    (
        "def f(o: int | None, s: str, t: str | None, x: float) -> str:\n    n = o or len(s) or 7\n"
        "    word = t or s or 'none'\n"
        "    other = s and word and t\n    one = (o or 3) and n\n    both = o and n\n    y = x or 1.5\n"
        "    return f'{n} {word} {other} {one} {both} {y} {t or word}'\n",
        [(None, "", None, 0.0), (0, "x", "", 2.0), (4, "x", "y", -0.0), (None, "", "t", 1.0)],
    ),
    # Values that come several at once: columns of rows, and what functions give.
    (
        "def g(a: int) -> tuple[int, str | None, list[int], timedelta]:\n    print('g', a)\n"
        "    db.stock[1].qty += a\n    return a, None if a > 1 else 'x', [a, 7], timedelta(days=a)\n\n\n"
        "def f(a: int) -> str:\n    x, y, z, t = g(a)\n    z.append(4)\n    g(2)\n    x, y, other, t = g(x + len(z))\n"
        "    other += z\n    return f'{x} {y} {len(other)} {other[0]} {t.days} {z[-1]}'\n",
        [(1,), (-2,), (5,)],
    ),
    (
        "def g(a: int) -> tuple[int, int]:\n    if a > 90:\n        raise ValueError('far')\n    return a + 1, a\n\n\n"
        "def f(a: int) -> tuple[int, int]:\n    if a > 5:\n        return g(a)\n    x, y = g(a)\n    y, x = g(y + x)\n"
        "    row = db.stock[1]\n    row.qty, n = g(x)\n    return row.qty + n, y\n",
        [(1,), (5,), (6,), (91,), (-3,)],
    ),
    (
        "@dataclass\nclass Both:\n    n: int\n    word: str\n\n\n"
        "def g(a: int) -> Both:\n    made = Both(a, 'q' * (a % 3))\n    made.n += 1\n    return made\n\n\n"
        "def h(a: int) -> Both:\n    return g(a + 1)\n\n\n"
        "def f(a: int) -> str:\n    one = g(a)\n    one.n += 1\n    other = h(one.n)\n"
        "    return f'{one.n}{one.word}{other.n}{other.word}'\n",
        [(1,), (5,), (6,)],
    ),
    (
        "def f(least: int) -> str:\n    said = ''\n"
        "    for word, item in db.sql('select note, item from stock where item >= {least}'):\n"
        "        least = item if word is None else 0\n        said += f'{word}-{item} '\n"
        "    [count] = db.sql('select count(*) from stock').one()\n"
        "    row = db.sql('select count(*) from stock').one()\n"
        "    item = 1\n    first = db.execute('select qty from stock where item = %s', (item,)).one().qty\n"
        "    n = sum(item for _, item in db.sql('select note, item from stock where item >= {least}', least=2))\n"
        "    return f'{said}{count} {row[0]} {first} {n}'\n",
        [(1,), (3,), (9,)],
    ),
    # Functions that give `None`, whatever their annotations say.
    (
        "def look(i: int) -> int:\n    return db.plain[1].a if i == 1 else {2: 5}.get(i)\n\n\n"
        "def ends(i: int) -> str:\n    if i == 1:\n        return 'x'\n\n\n"
        "def both(i: int) -> tuple[int, str]:\n    return {1: 5}.get(i), db.stock[i].note\n\n\n"
        "def f(i: int) -> int | None:\n    x, y = look(i), ends(i)\n    a, b = both(i)\n"
        "    print(x is None, x, y, a, b, look(i) is None, ends(i) or 'no')\n"
        "    db.stock[1].note = ends(i)\n    return x\n",
        [(1,), (2,), (3,)],
    ),
    # Names within expressions that are called as globals.
    (
        "g = 0\n\n\ndef more(n: int) -> int:\n    global g\n    g += n\n    return g\n\n\n"
        "def seen() -> int:\n    return g * 2\n\n\n"
        "def f(n: int) -> str:\n    xs = sorted([1, 2, 3], key=lambda g: more(g) % 3)\n"
        "    s, t = sum([more(g) for g in range(n)]), sum([seen() for g in range(n)])\n"
        "    return f'{s} {t} {xs[0]} {xs[2]} {more(1)}'\n",
        [(0,), (3,)],
    ),
]


#: Statements of these cases, and what they mean over dictionaries.
NOTE = "update stock set note = '{{' || {n} where item = {a}"
NOTED = "select note, item from stock where item >= {least}"
ALL = "select count(*) from stock"

Noted = namedtuple("Noted", "note item")


def _note(db, a, n):
    for key in [key for key in db.stock.rows if key == (a,)]:
        db.stock.change(key, note="{" + n)
    return Answer(changed=1)


class Corners(Agreeing):
    STATEMENTS = {
        **STATEMENTS,
        NOTE: _note,
        NOTED: lambda db, least: Answer(Noted(row.note, row.item) for row in db.stock if row.item >= least),
        ALL: lambda db: Answer([(len(list(db.stock)),)]),
    }

    def test_numbers_of_64_bits(self):
        """Where Python's numbers go on, those of programs end the transaction."""
        for body, argument in (("a ** 3", 10_000_000), ("a << 63", 1), ("1 << a", 99), ("round(a * 1e18)", 99)):
            program = self.there.transaction(defined(f"def f(a: int) -> int:\n    return {body}\n", self.there))
            with self.assertRaises(OverflowError, msg=body):
                program(argument)

    def test_all(self):
        for source, calls in CASES:
            self.begin_again()
            with self.subTest(source=source):
                self.agree(source, *calls)


if __name__ == "__main__":
    unittest.main()
