"""Moments that are made of parts, which may be no moment."""

import datetime
import unittest

import fabius

from shop import Agreeing, defined

UTC = datetime.timezone.utc

BODIES = (
    "return f'{date(y, m, d)}'",
    "return f'{date(y, day=d, month=m)}'",
    "return f'{datetime(y, m, d, d % 30, m + 40, y % 61)}'",
    "return f'{datetime(y, m, d, tzinfo=timezone.utc)}'",
    "return f'{time(m, d)} {time(d % 5, microsecond=y)}'",
    "return f'{day.replace(day=d)} {day.replace(year=y, month=m)}'",
    "return f'{at.replace(hour=d)} {at.replace(day=1, microsecond=m)} {at.replace(month=m)}'",
    "return f'{at.replace(tzinfo=None).replace(day=d)}'",
    "return f'{clock.replace(minute=d)}'",
    "return f'{datetime.combine(day, clock)} {datetime.combine(at, at.time(), tzinfo=timezone.utc)} {at.time()}'",
    "x = 0\n    for i in range(1, m):\n"
    "        x += date(2024, i, d).toordinal() - day.replace(day=1).toordinal() + at.toordinal()\n    return str(x)",
    "try:\n        day = day.replace(month=m, day=d)\n    except ValueError as error:\n        return str(error)\n"
    "    return f'{day.weekday()}'",
)

#: Parts, some of which are of no day.
YEARS = (1, 1900, 2000, 2023, 2024, 9999, 0, 10000)
MONTHS_AND_DAYS = ((1, 31), (2, 29), (2, 28), (4, 31), (12, 31), (0, 1), (13, 1), (6, 0), (11, 30))

DAYS = (datetime.date(2024, 2, 29), datetime.date.min, datetime.date.max, datetime.date(1900, 3, 1))
MOMENTS = (datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC), datetime.datetime(1970, 1, 1, tzinfo=UTC))
CLOCKS = (datetime.time(1, 2, 3, 4), datetime.time.max)


#: No part of it is looked at by name.
BY_CLOCK = "datetime.combine(at, time(0)) < datetime.combine(at, time(1))"


class Moments(Agreeing):
    def test_parts(self):
        calls = [
            (y, m, d, DAYS[(y + m + d) % 4], MOMENTS[(y + d) % 2], CLOCKS[(m + d) % 2])
            for y in YEARS
            for m, d in MONTHS_AND_DAYS
        ]
        for body in BODIES:
            with self.subTest(body=body):
                head = "def f(y: int, m: int, d: int, day: date, at: datetime, clock: time) -> str:"
                self.agree(f"{head}\n    {body}\n", *calls)

    def test_what_is_no_part(self):
        """Numbers that Python cannot take end the call, of programs too; what is none is refused."""
        head = "def f(y: int, at: datetime) -> str:\n    try:\n        return f'{"
        tail = "}'\n    except ValueError as error:\n        return str(error)\n"
        for body in ("date(y, 1, 1)", "time(5, y)", "at.replace(day=y)", "date(2024, True, 1)", "BEGIN.replace(day=y)"):
            with self.subTest(body=body):
                self.agree(head + body + tail, *[(y, MOMENTS[0]) for y in (2**40, -(2**31) - 1, 2**31 - 1, 5)])
        for body, what, instead in (
            ("date(2024, 1.5 * y, 1)", "a float as a part of a moment", "int(...)"),
            ("datetime.combine(at.date(), y)", "datetime.combine(date, int)", "a day and a time"),
            ("datetime(y, 1, 1, 0, 0, 0, 0, timezone.utc)", "datetime of this form", "tzinfo by its name"),
        ):
            with self.subTest(body=body), self.assertRaises(fabius.compilation.CompilationError) as refused:
                self.there.transaction(defined(head + body + tail, self.there))
            self.assertIn(what, str(refused.exception))
            self.assertIn(instead, str(refused.exception))

    def test_days_are_looked_at_in_utc(self):
        at = datetime.datetime(2024, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))
        for body in ("at.toordinal()", "datetime.combine(at, time(0)).day", "at.replace(day=3).timestamp()", BY_CLOCK):
            program = self.there.transaction(
                defined(f"def f(at: datetime) -> int:\n    return int({body})\n", self.there)
            )
            with self.subTest(body=body), self.assertRaises(ValueError) as raised:
                program(at)
            self.assertIn("is not in UTC", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
