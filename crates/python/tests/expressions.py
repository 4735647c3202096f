"""Writes random expressions of what can be compiled, over the names that a function has."""

#: How decimals are rounded.
ROUNDINGS = [repr("ROUND_" + way) for way in "HALF_EVEN HALF_UP HALF_DOWN UP DOWN CEILING FLOOR 05UP".split()]
#: What is asked of all characters of a text.
PROPERTIES = "isalpha isdecimal isdigit isalnum isspace isascii isupper islower".split()


class Expressions:
    """Expressions of each class. ``depth`` is how many are in one another at most."""

    #: Whether it leaves out what programs get wrong, which ``test_differences.py`` has.
    avoids = True

    def __init__(self, chance):
        self.chance = chance
        self.ints, self.texts = ["b", "plain.a", "total", "LIMIT"], ["s", "word"]
        self.decimals, self.floats = ["p", "row.price", "FEE"], ["x"]
        self.truths = []
        self.lists, self.dicts, self.sets = ["numbers"], [], []
        #: Lists that are the caller's.
        self.given = {"numbers"}
        self.names = 0

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def list(self, depth):
        chance = self.chance
        if depth == 0:
            one, other = self.int(0), self.int(0)
            return chance.choice(["[1, 2]", f"[{one}]", f"[{one}, {other}, 3]", "numbers"])
        inner = self.list(depth - 1)
        forms = [
            inner if inner != "numbers" else "list(numbers)",
            f"[x * 2 for x in {inner} if x != {self.int(0)}]",
            f"[x + y for x in {inner} for y in {self.list(0)} if x < y]",
            f"sorted({inner}, reverse={chance.choice(['True', 'False'])})",
            f"[{self.int(depth - 1)}, {self.int(0)}]",
            f"[*{inner}, {self.int(0)}]",
            f"{inner} + [{self.int(0)}]",
            f"({inner})[{chance.randint(-2, 2)}:]",
            f"({inner})[:{chance.randint(-2, 2)}]",
            f"({inner})[{self.int(0)}:{self.int(0)}]",
            f"list(range({chance.randint(0, 4)}))",
            f"list(reversed({inner}))",
            f"[{self.int(0)}] * {chance.randint(0, 2)}",
            "[other.qty for other in db.stock]",
            "[len(one) for one in texts]",
            f"sorted({inner}, key={self.key(depth)}, reverse={chance.choice(['True', 'False'])})",
            f"[len(x) for x in ({self.text(1)}).split({chance.choice(['', repr('x'), repr('x') + ', 1'])})]",
        ]
        forms += [f"{name}.copy()" for name in self.lists] + [f"sorted({name})" for name in self.sets]
        forms += [f"list({name}.{chance.choice(['values', 'keys'])}())" for name in self.dicts]
        return chance.choice(forms)

    def key(self, depth):
        """What `sorted`, `min` and `max` compare by."""
        one = self.chance.choice(["x % 3", "-x", "x & 3", "str(x)", f"x * {self.int(0)}", f"x > {self.int(0)}"])
        return self.chance.choice(["abs", f"lambda x: {one}", f"lambda x: ({one}, abs(x), -x)"])

    def int(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([str(chance.randint(-5, 9)), chance.choice(self.ints), "row.qty", "a"])
        one, other = self.int(depth - 1), self.int(depth - 1)
        forms = [
            f"({one} {chance.choice(['+', '-', '*'])} {other})",
            f"({one} {chance.choice(['//', '%'])} {other})",
            f"({self.int(0)} {chance.choice(['//', '%'])} {chance.choice(['2', '-3', '7', '-4'])})",
            f"({one} if {self.truth(depth - 1)} else {other})",
            f"({chance.choice(['o', one])} or {other})",
            f"({one} and {other})",
            f"{chance.choice(['min', 'max'])}({one}, {other})",
            f"abs({one})",
            f"len({self.text(depth - 1)})",
            f"-{one}",
            f"int({self.truth(0)})",
            f"int({chance.choice([self.text(0), f'str({one})'])})",
            f"int({chance.choice([self.decimal(0), self.float(0)])})",
            f"sum(x + {one} for x in {self.list(0)})",
            f"sum({self.list(0)}, {one})",
            f"{self.text(0)}.{chance.choice(['find', 'rfind'])}({chance.choice(['chr_', self.text(0)])})".replace(
                "chr_", "'x'"
            ),
            f"{self.text(0)}.count('x')",
            f"({one} {chance.choice(['&', '|', '^'])} {other})",
            f"({one} >> {chance.choice([other, other + ' % 70'])})",
            f"({one} % 1000 << {other} % 20)",
            f"~{one}",
            f"({one} % 50) ** {chance.randint(0, 5)}",
            f"round({one} / {chance.choice(['8.0', '4.0', '0.5'])})",
            f"int(round(row.price * {one}, 1) * 10)",
            f"int((row.price * {one}).quantize(Decimal('0.1')) * 100)",
            f"{self.span(depth - 1)}.{chance.choice(['days', 'seconds', 'microseconds'])}",
            f"({self.span(depth - 1)} // timedelta(minutes=7))",
            f"{self.moment(depth - 1)}.{chance.choice(['year', 'month', 'day', 'hour', 'minute', 'second'])}",
            f"{self.moment(depth - 1)}.{chance.choice(['weekday()', 'isoweekday()', 'date().day', 'microsecond'])}",
            f"{self.day(depth - 1)}.{chance.choice(['year', 'month', 'day', 'toordinal()', 'weekday()'])}",
            "(o if o is not None else 1)",
            "len(texts)",
            f"int({self.text(depth - 1)}.{chance.choice(PROPERTIES)}())",
        ]
        for name in self.lists:
            forms += [
                f"len({name})",
                f"sum({name})",
                f"max({name}, default={one})",
                f"{chance.choice(['min', 'max'])}({name}, key={self.key(depth)})",
                f"{name}[{one}]",
            ]
            forms += [f"min({name})", f"{name}.count({one})", f"{name}.index({one})"]
        for name in self.dicts:
            forms += [f"{name}.get({one}, {other})", f"{name}[{one}]", f"len({name})", f"sum({name}.values())"]
        forms += [f"len({name})" for name in self.sets]
        return chance.choice(forms)

    def decimal(self, depth):
        chance = self.chance
        literal = f"Decimal('{chance.choice(['0.05', '2', '-1.25', '10.1'])}')"
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([chance.choice(self.decimals), literal])
        one, other = self.decimal(depth - 1), self.decimal(depth - 1)
        return chance.choice(
            [
                f"({one} {chance.choice('+-')} {other})",
                f"({self.decimal(0)} * {chance.choice([self.int(0), self.decimal(0)])})",
                f"({one} + {self.int(0)})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"{chance.choice(['min', 'max'])}({one}, {other})",
                f"abs({one})",
                f"-{one}",
                f"round({one} - Decimal('0.125'), {chance.randint(0, 3)})",
                f"Decimal({self.int(depth - 1)})",
                f"round({self.quotient(one)}, {chance.randint(0, 6)})",
                f"{self.quotient(one)}.quantize(Decimal('0.01'), {chance.choice(ROUNDINGS)})",
                f"{self.quotient(one)}.to_integral_value()",
                f"({one} {chance.choice(['//', '%'])} {self.divisor()})",
            ]
        )

    def divisor(self):
        return f"Decimal('{self.chance.choice(['3', '-0.7', '1.25', '8', '-12.5', '0.0003'])}')"

    def quotient(self, dividend):
        return f"({self.chance.choice([dividend, self.int(0)])} / {self.divisor()})"

    def float(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([chance.choice(self.floats), chance.choice(["0.5", "2.0", "1e3"])])
        one, other = self.float(depth - 1), self.float(depth - 1)
        return chance.choice(
            [
                f"({one} {chance.choice('+-*/')} {other})",
                f"({one} {chance.choice('+-*/')} {self.int(0)})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"-{one}",
                f"float({chance.choice([self.int(0), self.decimal(0), self.text(0), f'str({one})'])})",
                f"({self.int(depth - 1)} / {self.int(0)})",
            ]
        )

    def span(self, depth):
        """A `timedelta`."""
        units = self.chance.sample(["days", "hours", "minutes", "seconds", "milliseconds", "microseconds"], 2)
        made = f"timedelta({units[0]}={self.int(max(depth, 0))} % 4000, {units[1]}={self.int(0)} % 100000)"
        return self.chance.choice([made, f"({made} * {self.chance.randint(-3, 3)})", f"({made} // 7)", f"abs(-{made})"])

    def day(self, depth):
        """A `date`."""
        chance = self.chance
        if depth <= 0 or chance.random() < 0.4:
            return "day"
        number = self.int(depth - 1)
        return chance.choice(
            [
                f"date(2000 + {number} % 30, 1 + {self.int(0)} % 12, 1 + {self.int(0)} % 28)",
                f"date({number} % 5, day={self.int(0)} % 31, month={chance.randint(1, 12)})",
                f"day.replace(day=1 + {number} % {chance.choice([28, 28, 33])})",
                f"{self.day(depth - 1)}.replace(year=2000 + {number} % 30, month=7)",
                f"{self.moment(depth - 1)}.date()",
            ]
        )

    def moment(self, depth):
        """A `datetime`."""
        chance = self.chance
        moved = f"(BEGIN {chance.choice('+-')} {self.span(depth)})"
        if depth <= 0 or chance.random() < 0.5:
            return moved
        number = self.int(depth - 1)
        return chance.choice(
            [
                f"{moved}.replace(hour={number} % 24, second={chance.randint(0, 59)})",
                f"{moved}.replace(day=1 + {number} % 28, microsecond={self.int(0)} % {chance.choice([1000, 1000001])})",
                f"datetime(2024, 1 + {number} % 12, 1 + {self.int(0)} % 28, {self.int(0)} % 24, tzinfo=timezone.utc)",
                f"datetime.combine({self.day(depth - 1)}, time({number} % 24, 5), tzinfo=timezone.utc)",
                f"datetime.combine(day, {moved}.time(), tzinfo=timezone.utc)",
            ]
        )

    def format(self):
        """How an `int` is written."""
        return self.chance.choice(["05d", ",", "+", ">8", "<8", "*^9", "x", "08,", ".2f", "_b", "03"])

    def text(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice(["'x'", "''", "'ü\\''", chance.choice(self.texts)])
        one, other = self.text(depth - 1), self.text(depth - 1)
        number = self.int(depth - 1)
        return chance.choice(
            [
                f"({one} + {other})",
                f"({one} * {chance.randint(-1, 3)})",
                f"str({self.int(depth - 1)})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"max({one}, {other})",
                "f'<{row.note}>'",
                f"({chance.choice(['row.note', one])} or {other})",
                f"({one} and {other})",
                "f'{o} {s}'",
                f"f'{{{self.truth(0)}}}'",
                "str(o)",
                f"repr({one})",
                "(row.note if row.note is not None else '')",
                one if "'" in number else f"f'{{{number}}}!'",
                f"{one}.{chance.choice(['upper()', 'lower()', 'strip()', 'rstrip(chr_)', 'lstrip()'])}".replace(
                    "chr_", "'x'"
                ),
                f"{one}[{chance.randint(-2, 2)}:{chance.randint(-2, 3)}]",
                f"{one}[{self.int(0)}:]",
                f"({one})[{chance.randint(-1, 1)}]",
                f"{one}.replace('x', {other})",
                f"','.join([str(x) for x in {self.list(0)}])",
                f"{one}.join(texts)",
                f"'-'.join(({one}).split('x'))",
                f"format({number}, '{self.format()}')",
                one if "'" in number else f"f'{{{number}:{self.format()}}}'",
                f"format({one}, '{chance.choice(['.2', '*^5', '>4', '<6s'])}')",
                f"format({number} / 8.0, '{chance.choice(['.2f', ',.1f', '09.3f', '.0%', ''])}')",
                f"str({number} / 8.0)",
                f"format(row.price * {number}, '{chance.choice(['.1f', '.3f', '>9.0f', '+,.2f'])}')",
                f"({one}).{chance.choice(['ljust', 'rjust', 'zfill'])}({self.int(0)})",
                f"({one}).{chance.choice(['removeprefix', 'removesuffix'])}({other})",
                f"str({self.moment(0)})",
                f"{self.moment(0)}.{chance.choice(['isoformat()', 'date().isoformat()'])}",
                f"{self.moment(0)}.strftime('%d.%m.%Y %H:%M:%S.%f')",
            ]
        )

    def truth(self, depth):
        chance = self.chance
        compare = chance.choice(["==", "!=", "<", "<=", ">", ">="])
        if self.truths and chance.random() < 0.15:
            return chance.choice(self.truths)
        if depth == 0:
            return f"{self.int(0)} {compare} {self.int(0)}"
        one, other = self.truth(depth - 1), self.truth(depth - 1)
        forms = [
            f"{self.int(depth - 1)} {compare} {self.int(depth - 1)}",
            f"{self.int(0)} < {self.int(0)} <= {self.int(depth - 1)}",
            f"{self.text(depth - 1)} {compare} {self.text(depth - 1)}",
            f"{self.decimal(depth - 1)} {compare} {chance.choice([self.decimal(0), self.int(0)])}",
            f"{self.float(depth - 1)} {compare} {self.float(0)}",
            f"({one} and {other})",
            f"({one} or {other})",
            f"not {one}",
            "row.note is None",
            "o is None",
            f"o == {self.int(0)}",
            f"row.note == {self.text(0)}",
            f"bool({self.int(0)})",
            f"{self.int(0)} in db.stock",
            f"({self.int(0)}, {self.int(0)}) not in db.line",
            f"{self.int(0)} in ({self.int(0)}, 3, 4)",
            f"any(x > {self.int(0)} for x in {self.list(0)})",
            f"all(x > {self.int(0)} for x in {self.list(1)})",
            f"'x' in {self.text(0)}",
            f"{self.text(0)} not in texts",
            f"{self.text(0)} in ('x', {self.text(0)})",
            f"{self.int(0)} < {self.int(0)} != {self.int(0)} in {self.list(0)}",
            f"{self.text(0)}.{chance.choice(['startswith', 'endswith'])}({self.text(0)})",
            f"{self.span(depth - 1)} {compare} {self.span(0)}",
            f"{self.moment(0)} - BEGIN {compare} {self.span(0)}",
            f"bool({self.span(0)})",
        ]
        forms += [f"{self.int(0)} in {name}" for name in self.lists + self.dicts + self.sets]
        forms += [f"bool({name})" for name in self.lists]
        return chance.choice(forms)
