"""Writes random functions of what can be compiled, and says what the statements of SQL in them mean."""

import datetime
from collections import namedtuple
from decimal import Decimal

from expressions import Expressions
from model import Answer

#: What stands before each function: globals, and functions that it calls.
HEAD = """\
log = logging.getLogger('shop')
total = 1
word = 'w'
FEE = Decimal('0.25')
LIMIT = 7


def g(n: int) -> int:
    row = db.stock[2]
    row.qty += n % 3
    return row.qty - n


def h(n: int, s: str = 'y', *, end: str = '') -> str | None:
    print('h', n, end=end)
    for i in range(n % 4):
        if s == 'x' or i == LIMIT % 4:
            return None
        s = f'{s}{i}'
    return s


def m(n: int, s: str) -> tuple[int, str | None, list[int]]:
    if n % 5 == 1:
        return n // 2, None, [n, n]
    print('m', s)
    db.stock[1].qty -= 1
    return n, f'{s}{n}', [x for x in range(n % 3)]


def k(given: list[int], least: int) -> list[int]:
    fabius.require(least < 9, f'{least} of {len(given)}')
    return [x for x in given if x >= least]


def u(n: int) -> int:
    return n if n % 3 else None


def c(n: int) -> int:
    global total, word
    if n % 3 == 1:
        word = f'{word}{n}'[:9]
    total = (total * 3 + n) % 1000
    return total - n


def z() -> None:
    global total
    total += len(word) + c(total)


"""

PARAMETERS = (
    "a: int, b: int, s: str, p: Decimal, x: float, o: int | None, day: date, numbers: list[int], texts: list[str]"
)

Line = namedtuple("Line", "n many")
Stock = namedtuple("Stock", "qty")

LINES = "select n, many from line where many > %s order by cart, n"
COUNT = "select count(*) from stock where qty > %s"
ALL = "select coalesce(sum(many), 0)::bigint as all from line"
MORE = "update line set many = many + 1 where n = %s"
OTHER = "select count(*) from line where n < {n} or many > {n}"
FIRST = "select qty from stock where item = %s"


def _more(db, n):
    changed = [key for key, row in db.line.rows.items() if row["n"] == n]
    for key in changed:
        db.line.change(key, many=db.line.rows[key]["many"] + 1)
    return Answer(changed=len(changed))


#: What each statement means over dictionaries.
STATEMENTS = {
    LINES: lambda db, least: Answer(Line(row.n, row.many) for row in db.line if row.many > least),
    COUNT: lambda db, least: Answer([(sum(row.qty > least for row in db.stock),)]),
    ALL: lambda db: Answer([(sum(row.many for row in db.line),)]),
    MORE: _more,
    FIRST: lambda db, item: Answer(Stock(row.qty) for row in db.stock if row.item == item),
    OTHER: lambda db, n: Answer([(sum(row.n < n or row.many > n for row in db.line),)]),
}


class Writer(Expressions):
    """A function of its own for each random state."""

    def function(self):
        """The text of a function `f`, and of what it needs."""
        self.kind = self.chance.choice(
            [
                "int",
                "str",
                "bool",
                "Decimal",
                "float",
                "int | None",
                "tuple[int, str]",
                "tuple[Decimal, bool, float]",
                "list[int]",
                "None",
            ]
        )
        self.attempts = 0
        body = self.block(1, self.chance.randint(2, 6))
        begin = "    global total, word\n    row = db.stock[a]\n    plain = db.plain[1]\n"
        return f"{HEAD}def f({PARAMETERS}) -> {self.kind}:\n{begin}{body}    return {self.result()}\n"

    def result(self):
        """What the function gives."""
        match self.kind:
            case "int":
                return self.int(2)
            case "str":
                return self.text(2)
            case "bool":
                return self.truth(2)
            case "Decimal":
                return self.decimal(2)
            case "float":
                return self.float(2)
            case "int | None":
                return f"{self.int(1)} if {self.truth(1)} else None"
            case "tuple[int, str]":
                return f"{self.int(1)}, {self.text(1)}"
            case "tuple[Decimal, bool, float]":
                return f"{self.decimal(1)}, {self.truth(1)}, {self.float(1)}"
            case "list[int]":
                return self.list(2)
        return ""

    def arguments(self):
        """What the function is called with."""
        chance = self.chance
        return (
            chance.choice([1, 1, 2, 2, 3, 3, 3, 4]),
            chance.randint(-9, 9),
            chance.choice(["", "a", "x", "zz", " Ü x"]),
            Decimal(chance.choice(["0", "1.50", "-2.25", "10.05", "99"])),
            chance.choice([0.0, 0.5, -1.25, 3.0, 0.1]),
            chance.choice([None, 0, 5]),
            chance.choice([datetime.date(2024, 2, 29), datetime.date(1999, 12, 1)]),
            [chance.randint(-3, 9) for _ in range(chance.randint(0, 4))],
            [chance.choice(["", "x", "yx"]) for _ in range(chance.randint(0, 3))],
        )

    def block(self, depth, count):
        before = [names[:] for names in self.known()]
        indent = "    " * depth
        lines = "".join(self.statement(depth, indent) for _ in range(count))
        if depth > 1:
            # What a branch defines is not there behind it.
            self.forget(before)
        return lines

    def known(self):
        return (
            *(self.ints, self.texts, self.decimals, self.floats, self.truths),
            *(self.lists, self.dicts, self.sets),
        )

    def targets(self):
        """What may be assigned: no key, and not what a statement of SQL gave."""
        return [
            name
            for name in self.ints
            if name != "LIMIT" and name[0] != "q" and name.replace(".", "").isalnum() and not name.endswith(".n")
        ]

    def body_of(self, depth):
        """The body of a loop over rows."""
        return self.block(depth + 1, self.chance.randint(1, 2))

    def forget(self, before):
        for names, kept in zip(self.known(), before):
            names[:] = kept

    def statement(self, depth, indent):
        kinds = "int text augment row note require list list dict set change change swap print sql call known".split()
        kinds += "plain plain decimal float price globals log insert upsert delete merge".split()
        kinds += "truth again grow maybe both called line divided parted shift pair common".split()
        if depth < 4:
            kinds += "if if for each while rows items get raised try attempt match lines found walrus return".split()
        return getattr(self, f"write_{self.chance.choice(kinds)}")(depth, indent)

    # Values.

    def write_int(self, depth, indent):
        name, value = self.fresh("i"), self.int(2)
        self.ints.append(name)
        return f"{indent}{name} = {value}\n"

    def write_text(self, depth, indent):
        name, value = self.fresh("t"), self.text(2)
        self.texts.append(name)
        return f"{indent}{name} = {value}\n"

    def write_decimal(self, depth, indent):
        # Ten digits behind the point are kept.
        name, value = self.fresh("m"), f"round({self.decimal(2)} + Decimal('0.001'), {self.chance.randint(1, 3)})"
        self.decimals.append(name)
        return f"{indent}{name} = {value}\n"

    def write_float(self, depth, indent):
        name, value = self.fresh("x"), self.float(2)
        self.floats.append(name)
        return f"{indent}{name} = {value}\n"

    def write_truth(self, depth, indent):
        name, value = self.fresh("f"), self.truth(2)
        self.truths.append(name)
        return f"{indent}{name} = {value}\n"

    def write_again(self, depth, indent):
        """A name gets another value of its class."""
        chance = self.chance
        lines = [f"s = {self.text(2)}[:20]", f"b = {self.int(2)} % 1000", f"p = round({self.decimal(1)} + FEE, 2)"]
        lines += [f"o = {chance.choice(['None', self.int(1)])}", f"x = {self.float(1)} / 3"]
        lines += [f"{name} = {self.truth(1)}" for name in self.truths]
        lines += [f"{name} = {self.list(1)}" for name in self.lists if name not in self.given]
        return f"{indent}{chance.choice(lines)}\n"

    def write_grow(self, depth, indent):
        name = self.chance.choice([name for name in self.texts if name[0] != "n" and "[" not in name])
        return f"{indent}{name} += {self.text(0)}\n{indent}{name} = {name}[:30]\n"

    def write_both(self, depth, indent):
        """Two names for one value, or a name with its class."""
        one, other = self.fresh("i"), self.fresh("i")
        value = self.int(1)
        self.ints += [one, other]
        return self.chance.choice(
            [
                f"{indent}{one} = {other} = {value}\n",
                f"{indent}{one}: int = {value}\n{indent}{other}: int = {one} + 1\n",
            ]
        )

    def write_maybe(self, depth, indent):
        """A value that may be `None`, and what is done where it is not."""
        name = self.fresh("v")
        value, names = self.chance.choice(
            [
                ("row.note", self.texts),
                ("o", self.ints),
                ("plain.c", self.texts),
                (f"h({self.int(0)})", self.texts),
                (f"h({self.int(0)}, {self.text(0)}, end='.')", self.texts),
                (f"({self.int(1)} if {self.truth(0)} else None)", self.ints),
                (f"u({self.int(1)})", self.ints),
            ]
        )
        head = f"{indent}{name} = {value}\n{indent}if {name} is not None:\n"
        names.append(name)
        line = f"{indent}    {name} {'+=' if names is self.texts else '-='} {'s' if names is self.texts else '1'}\n"
        there = self.block(depth + 1, 1)
        names.remove(name)
        return head + (line if self.chance.random() < 0.3 else "") + there

    def write_called(self, depth, indent):
        name = self.fresh("l")
        given = self.list(1).removesuffix(".copy()")
        self.lists.append(name)
        return f"{indent}{name} = k({given}, {self.int(0)})\n"

    def write_return(self, depth, indent):
        return f"{indent}if {self.truth(1)}:\n{indent}    return {self.result()}\n"

    def write_augment(self, depth, indent):
        name = self.chance.choice(self.targets())
        return f"{indent}{name} {self.chance.choice(['+=', '-=', '//=', '%='])} {self.int(1)}\n"

    def write_globals(self, depth, indent):
        chance = self.chance
        lines = [f"total {chance.choice(['=', '+=', '-='])} {self.int(1)} % 1000", f"word = {self.text(1)}[:9]"]
        return f"{indent}{chance.choice(lines)}\n"

    def write_common(self, depth, indent):
        """A call of what assigns globals."""
        if self.attempts:
            return self.write_globals(depth, indent)
        name, lines = (
            self.fresh("i"),
            [f"c({self.int(1)})", f"total + c({self.int(0)}) * total", "len(word) - c(total)"],
        )
        self.ints.append(name)
        begin = f"{indent}z()\n" if self.chance.random() < 0.3 else ""
        return f"{begin}{indent}{name} = {self.chance.choice(lines)}\n"

    def write_walrus(self, depth, indent):
        name, value = self.fresh("i"), self.int(1)
        test = f"({name} := {value}) {self.chance.choice(['<', '>', '=='])} {self.int(1)}"
        self.ints.append(name)
        return f"{indent}if {test}:\n{self.block(depth + 1, 1)}"

    def write_known(self, depth, indent):
        """What is `None` ends the transaction here."""
        name, value = self.fresh("t"), self.text(0)
        self.texts.append(name)
        return f"{indent}{name} = row.note + {value}\n"

    def write_pair(self, depth, indent):
        """A tuple with a name, which may get other parts, and may be taken apart."""
        chance, name = self.chance, self.fresh("q")
        lines = f"{indent}{name} = ({self.int(1)}, {self.text(1)})\n"
        number, text = f"{name}[{chance.choice([0, -2])}]", f"{name}[1]"
        if chance.random() < 0.5:
            lines += f"{indent}if {self.truth(1)}:\n{indent}    {name} = {number} % 1000 + 1, {self.text(0)} + {text}\n"
        self.ints.append(number)
        self.texts.append(text)
        if chance.random() < 0.3:
            one, other = self.fresh("i"), self.fresh("t")
            lines += f"{indent}{one}, {other} = {name}\n"
            self.ints.append(one)
            self.texts.append(other)
        return lines

    def write_swap(self, depth, indent):
        one, other = self.chance.choice(self.targets()), self.chance.choice(self.targets())
        return f"{indent}{one}, {other} = {self.int(1)} % 1000, {one}\n"

    # What is said, and what ends a call.

    def write_print(self, depth, indent):
        more = self.chance.choice(["", ", sep='-'", f", {self.truth(0)}, o", ", end='.'"])
        return f"{indent}print({self.text(1)}, {self.int(1)}{more})\n"

    def write_log(self, depth, indent):
        logs = self.chance.choice(["log.info", "log.debug", "logging.warning", "logging.error", "log.critical"])
        return f"{indent}{logs}({self.text(1)})\n"

    def write_require(self, depth, indent):
        return f"{indent}fabius.require({self.truth(1)}, {self.text(1)})\n"

    def write_raised(self, depth, indent):
        chance = self.chance
        if chance.random() < 0.3:
            said = chance.choice(["", f", {self.text(1)}", f", {self.int(1)}"])
            return f"{indent}assert {self.truth(1)}{said}\n"
        kind = chance.choice(["ValueError", "KeyError", "fabius.Aborted"])
        raised = chance.choice(
            [f"{kind}({self.text(1)})", f"{kind}({self.text(1)})", f"ValueError({self.int(1)})", kind]
        )
        return f"{indent}if {self.truth(1)}:\n{indent}    raise {raised}\n"

    # Rows.

    def write_row(self, depth, indent):
        return f"{indent}row.qty {self.chance.choice(['=', '+=', '-='])} {self.int(1)} % 50\n"

    def write_price(self, depth, indent):
        return f"{indent}row.price {self.chance.choice(['=', '+=', '-='])} {self.decimal(1)}\n"

    def write_plain(self, depth, indent):
        """Several columns of a row, one after the other."""
        chance = self.chance
        lines = [
            f"plain.{chance.choice('ab')} {chance.choice(['=', '+=', '-='])} {self.int(1)} % 50",
            f"plain.c = {self.text(1)}",
            f"plain.{chance.choice('ab')} {chance.choice(['=', '+='])} plain.{chance.choice('ab')} % 50",
            f"db.plain[1].b += {self.int(0)} % 50",
        ]
        return "".join(f"{indent}{line}\n" for line in chance.sample(lines, 3))

    def write_note(self, depth, indent):
        return f"{indent}row.note = {self.chance.choice([self.text(1), 'None', 'row.note'])}\n"

    def write_divided(self, depth, indent):
        one, other = self.fresh("i"), self.fresh("i")
        value = f"divmod({self.int(1)}, {self.int(1)})"
        self.ints += [one, other]
        return f"{indent}{one}, {other} = {value}\n"

    def write_parted(self, depth, indent):
        names = [self.fresh("t") for _ in range(3)]
        how = self.chance.choice(["partition", "rpartition"])
        value = f"({self.text(1)}).{how}('x')"
        self.texts += names
        return f"{indent}{', '.join(names)} = {value}\n"

    def write_insert(self, depth, indent):
        """A new row, mostly where there is none."""
        chance = self.chance
        number = self.fresh("k")
        item = f", item={chance.choice(['1', '3', '9', 'None', 'a'])}" if chance.random() < 0.7 else ""
        made = f"db.line.insert(cart={chance.randint(1, 3)}, n={number}{item}, many={self.int(1)})"
        cart = made.partition("cart=")[2][0]
        head = f"{indent}{number} = {self.int(0)} % 50\n"
        if chance.random() < 0.2:
            return f"{head}{indent}{made}\n"
        name = self.fresh("r")
        before = self.ints[:]
        self.ints += [f"{name}.many", f"{name}.n"]
        then = self.block(depth + 1, 1) if depth < 4 else ""
        self.ints[:] = before
        return f"{head}{indent}if ({cart}, {number}) not in db.line:\n{indent}    {name} = {made}\n{then}"

    def write_upsert(self, depth, indent):
        name = self.fresh("u")
        line = f"db.line.upsert(cart=1, n={self.int(0)} % 4, many={self.int(1)})"
        plain = f"db.plain.upsert(id={self.int(0)} % 3, a={self.int(1)} % 50, b={self.int(0)}, c={self.text(0)})"
        if self.chance.random() < 0.5:
            return f"{indent}{self.chance.choice([line, plain])}\n"
        made, column = self.chance.choice([(line, "many"), (plain, "a")])
        self.ints.append(f"{name}.{column}")
        return f"{indent}{name} = {made}\n"

    def write_line(self, depth, indent):
        """A row of the table that loops go through, by its key."""
        number = self.chance.randint(1, 3)
        change = self.chance.choice(["+= 1", f"= {self.int(1)}", f"-= {self.int(0)}"])
        return f"{indent}if (1, {number}) in db.line:\n{indent}    db.line[1, {number}].many {change}\n"

    def write_delete(self, depth, indent):
        chance = self.chance
        number, name = chance.randint(1, 3), self.fresh("r")
        return indent + chance.choice(
            [
                f"if (1, {number}) in db.line:\n{indent}    del db.line[1, {number}]\n",
                f"if {self.truth(0)}:\n{indent}    del db.line[1, {self.int(0)} % 4]\n",
                f"for {name} in db.line.where(n={self.int(0)}):\n{indent}    {name}.delete()\n",
                f"for {name} in db.line:\n{indent}    if {name}.many > {self.int(1)}:\n"
                f"{indent}        {name}.delete()\n",
                f"if {self.truth(0)}:\n{indent}    del db.stock[{number}]\n",
            ]
        )

    def write_try(self, depth, indent):
        """A row that may not be there."""
        name = self.fresh("r")
        table, key, column = self.chance.choice(
            [("stock", self.int(0), "qty"), ("line", f"1, {self.int(0)}", "many"), ("plain", "b", "b")]
        )
        caught = self.chance.choice(["KeyError", "fabius.RowNotFound"])
        missing = self.block(depth + 1, 1)
        self.ints.append(f"{name}.{column}")
        there = self.block(depth + 1, 1)
        self.ints.remove(f"{name}.{column}")
        return (
            f"{indent}try:\n{indent}    {name} = db.{table}[{key}]\n{indent}except {caught}:\n{missing}"
            f"{indent}else:\n{there}"
        )

    def write_attempt(self, depth, indent):
        """Statements that may raise something, which is caught in part."""
        chance = self.chance
        self.attempts += 1
        lines = f"{indent}try:\n{self.block(depth + 1, chance.randint(1, 3))}"
        self.attempts -= 1
        kinds = "ValueError KeyError IndexError LookupError AssertionError fabius.Aborted ZeroDivisionError".split()
        for kind in chance.sample(kinds, chance.randint(1, 3)):
            other = chance.choice(["ValueError", "fabius.RowNotFound", "RuntimeError"])
            named = kind in ("ValueError", "IndexError", "AssertionError", "fabius.Aborted") and chance.random() < 0.5
            written = kind if named or chance.random() < 0.7 else f"({kind}, {other})"
            lines += f"{indent}except {written}{' as e' if named else ''}:\n"
            lines += f"{indent}    print({chance.choice(['e', 'str(e)', 'len(str(e))'])})\n" if named else ""
            lines += self.block(depth + 1, 1)
            if chance.random() < 0.3:
                again = chance.choice(["raise", "raise e"]) if named else "raise"
                lines += f"{indent}    if {self.truth(1)}:\n{indent}        {again}\n"
        if chance.random() < 0.4:
            lines += f"{indent}else:\n{self.block(depth + 1, 1)}"
        return lines

    def write_get(self, depth, indent):
        name = self.fresh("g")
        head = f"{indent}{name} = db.stock.get({self.int(1)} % 6)\n"
        missing = self.block(depth + 1, 1)
        self.ints.append(f"{name}.qty")
        there = self.block(depth + 1, 1)
        self.ints.remove(f"{name}.qty")
        if self.chance.random() < 0.5:
            return f"{head}{indent}if {name} is None:\n{missing}{indent}else:\n{there}"
        return f"{head}{indent}if {name} is not None:\n{there}"

    def write_rows(self, depth, indent):
        name = self.fresh("r")
        value = self.int(1)
        conditions = [f"cart={value}", f"many={value}", f"cart=1, n={value}", "item=None"]
        ranges = [f"1, {self.int(0)}:", f":{self.int(0)}", f"1, {self.int(0)}:{self.int(0)}", "1, :", f"{self.int(0)}:"]
        over = self.chance.choice(
            ["db.line", f"db.line.where({self.chance.choice(conditions)})", f"db.line[{self.chance.choice(ranges)}]"]
        )
        before = [names[:] for names in self.known()]
        self.ints += [f"{name}.many", f"{name}.many", f"({name}.item if {name}.item is not None else 0)"]
        body = self.body_of(depth)
        self.forget(before)
        return f"{indent}for {name} in {over}:\n{body}"

    def write_shift(self, depth, indent):
        """Times in columns."""
        chance, name = self.chance, self.fresh("r")
        own, number = f"{name}.worked", self.fresh("i")
        lines = [
            f"{name}.worked += {self.span(0)}",
            f"{name}.worked = {self.span(1)} - {own}",
            f"{name}.pause = {chance.choice(['None', own, self.span(0)])}",
            f"{name}.pause = {own} if {name}.pause is None else {name}.pause * 2",
            f"{name}.worked //= 2",
            f"db.shift.upsert(id=3, worked={own}, pause={name}.pause)",
        ]
        value = chance.choice(
            [
                f"{own}.days",
                f"{own}.seconds + {own}.microseconds",
                f"{own} // timedelta(hours=1)",
                f"({own} > {self.span(0)}) + 0",
                f"len([r for r in db.shift.where(worked={own})])",
                f"sum(1 for r in db.shift[{self.int(0)}:] if r.worked < {own})",
            ]
        )
        self.ints.append(number)
        return (
            f"{indent}{name} = db.shift[{chance.randint(1, 2)}]\n{indent}{chance.choice(lines)}\n"
            f"{indent}{number} = {value}\n"
        )

    def write_items(self, depth, indent):
        """Rows of the table that `row` is of."""
        name = self.fresh("r")
        chance = self.chance
        column, given = chance.choice(
            [
                ("note", chance.choice([self.text(0), "None", "row.note"])),
                ("qty", self.int(1)),
                ("price", chance.choice(["row.price", "p"])),
                ("item", chance.choice(["a", self.int(0)])),
            ]
        )
        ranged = f"db.stock[{self.int(0)}:{chance.choice(['', self.int(0), 'a'])}]"
        over = chance.choice(["db.stock", f"db.stock.where({column}={given})", ranged])
        before = [names[:] for names in self.known()]
        self.ints.append(f"{name}.qty")
        self.decimals.append(f"{name}.price")
        lines = [
            f"{name}.qty += 1",
            f"{name}.note = {self.text(0)}",
            f"{name}.price += {self.decimal(0)}",
            "row.qty += 2",
        ]
        line = f"{indent}    {chance.choice(lines)}\n"
        body = self.block(depth + 1, chance.randint(1, 2))
        self.forget(before)
        return f"{indent}for {name} in {over}:\n{line}{body}"

    # Statements of SQL.

    def write_sql(self, depth, indent):
        name = self.fresh("i")
        count, every = f"db.execute({COUNT!r}, ({self.int(1)},)).scalar()", f"db.execute({ALL!r}).scalar()"
        more = f"db.execute({MORE!r}, ({self.int(0)} % 5,)).rowcount"
        other = f"db.sql({OTHER!r}, n={self.int(1)}).scalar()"
        self.ints.append(name)
        return f"{indent}{name} = {self.chance.choice([count, every, more, other])}\n"

    def write_found(self, depth, indent):
        name = self.fresh("q")
        item = f"{self.int(0)} {self.chance.choice(['% 4', '% 3 + 1', '% 3 + 1'])}"
        head = f"{indent}{name} = db.execute({FIRST!r}, ({item},)).one()\n"
        self.ints.append(f"{name}.qty")
        return head

    def write_lines(self, depth, indent):
        name = self.fresh("q")
        before = self.ints[:]
        least = self.int(1)
        columns = [f"{name}.n", f"{name}.many"]
        if self.chance.random() < 0.4:
            columns = [self.fresh("n"), self.fresh("m")]
            name = ", ".join(columns)
        self.ints += columns
        body = self.body_of(depth)
        self.ints[:] = before
        return f"{indent}for {name} in db.execute({LINES!r}, ({least},)):\n{body}"

    def write_call(self, depth, indent):
        if self.chance.random() < 0.4:
            return self.write_call_of_several(indent)
        name = self.fresh("i")
        value = f"g({self.int(1)}) + {self.int(0)}"
        self.ints.append(name)
        return f"{indent}{name} = {value}\n"

    def write_call_of_several(self, indent):
        """A function that gives several values, each of which gets a name."""
        number, text, items = self.fresh("i"), self.fresh("t"), self.fresh("l")
        value, other = f"m({self.int(1)}, {self.text(0)})", self.text(0)
        self.ints.append(number)
        self.lists.append(items)
        self.texts.append(text)
        return f"{indent}{number}, {text}, {items} = {value}\n{indent}{text} = {text} or {other}\n"

    # Collections.

    def write_list(self, depth, indent):
        name, value = self.fresh("l"), self.list(2)
        self.lists.append(name)
        return f"{indent}{name} = {value}\n"

    def write_dict(self, depth, indent):
        one, other = self.int(0), self.int(0)
        forms = [f"{{{one}: {self.int(1)}, {other}: 1}}", f"{{x: x + {one} for x in {self.list(0)}}}"]
        forms += [f"{known}.copy()" for known in self.dicts] + ["{1: 2}"]
        name = self.fresh("d")
        self.dicts.append(name)
        return f"{indent}{name} = {self.chance.choice(forms)}\n"

    def write_set(self, depth, indent):
        forms = [f"{{{self.int(0)}, {self.int(0)}}}", f"set({self.list(1)})", f"{{x % 3 for x in {self.list(0)}}}"]
        for known in self.sets:
            forms += [f"{known} {operator} {{1, {self.int(0)}}}" for operator in "|&-"]
            forms += [] if self.avoids else [f"{known}.copy()"]
        name = self.fresh("s")
        self.sets.append(name)
        return f"{indent}{name} = {self.chance.choice(forms)}\n"

    def write_change(self, depth, indent):
        chance = self.chance
        lines = []
        own = [name for name in self.lists if name not in self.given]
        if own:
            name = chance.choice(own)
            lines += [f"{name}.append({self.int(1)})", f"{name} += {self.list(0)}", f"{name}.reverse()"]
            lines += [f"{name}[{self.int(0)}] = {self.int(1)}", f"{name}[{self.int(0)}] += {self.int(1)}"]
            lines += [f"{name}.sort()", f"{name}.sort(reverse=True)", f"{name}.extend({self.list(0)})"]
            lines += [f"if {name}:\n{indent}    {name}.pop()", f"{name}.pop()", f"{name}.clear()"]
            lines += [f"{name}.insert({self.int(0)}, {self.int(1)})", f"{name}.remove({self.int(0)})"]
            lines += [f"{name}.pop({self.int(0)})"]
        if self.dicts:
            name = chance.choice(self.dicts)
            lines += [f"{name}[{self.int(0)}] = {self.int(1)}", f"{name}[{self.int(0)}] += 1"]
            lines += [f"del {name}[{self.int(0)}]", f"{name}.pop({self.int(0)})", f"{name}.clear()"]
            lines += [f"{name}.update({other})" for other in self.dicts if other != name]
        if self.sets:
            name = chance.choice(self.sets)
            lines += [f"{name}.add({self.int(1)})", f"{name}.discard({self.int(0)})", f"{name}.clear()"]
            lines += [f"{name}.remove({self.int(0)})", f"{name}.update({self.list(0)})", f"{name} -= {{1, 3}}"]
            lines += [f"{name} |= {{{self.int(0)}}}", f"{name} &= {{1, 2, {self.int(0)}}}"]
        return f"{indent}{chance.choice(lines or ['pass'])}\n"

    def write_merge(self, depth, indent):
        """A list that begins empty, and grows in a loop."""
        name, item = self.fresh("l"), self.fresh("n")
        value = self.list(1)
        self.lists.append(name)
        return f"{indent}{name} = []\n{indent}for {item} in {value}:\n{indent}    {name}.append({item} + 1)\n"

    # Branches and loops.

    def write_if(self, depth, indent):
        then = self.block(depth + 1, self.chance.randint(1, 2))
        between = f"{indent}elif {self.truth(0)}:\n{self.block(depth + 1, 1)}" if self.chance.random() < 0.2 else ""
        otherwise = self.block(depth + 1, 1) if self.chance.random() < 0.5 else ""
        return f"{indent}if {self.truth(2)}:\n{then}{between}" + (f"{indent}else:\n{otherwise}" if otherwise else "")

    def write_match(self, depth, indent):
        chance = self.chance
        if chance.random() < 0.5:
            subject, one, others = self.int(1), "0", ["1 | 2", "-1", "3"]
        else:
            subject, one, others = self.text(1), "''", ["'x' | 'a'", "'zz'"]
        guard = f" if {self.truth(0)}" if chance.random() < 0.3 else ""
        cases = [one, f"{chance.choice(others)}{guard}", *(["_"] if chance.random() < 0.7 else [])]
        blocks = [self.block(depth + 2, 1) for _ in cases]
        written = "".join(f"{indent}    case {case}:\n{block}" for case, block in zip(cases, blocks))
        return f"{indent}match {subject}:\n{written}"

    def write_for(self, depth, indent):
        chance = self.chance
        name = self.fresh("n")
        over = chance.choice(
            [
                f"range({chance.randint(0, 4)})",
                f"range({chance.randint(-2, 3)}, {chance.randint(-2, 5)})",
                f"range({self.int(0)} % 5, {chance.randint(-2, 2)}, -2)",
            ]
        )
        self.ints.append(name)
        body = self.block(depth + 1, chance.randint(1, 2))
        self.ints.remove(name)
        last = f"{indent}    if {self.truth(1)}:\n{indent}        {chance.choice(['break', 'continue'])}\n"
        otherwise = f"{indent}else:\n{self.block(depth + 1, 1)}" if chance.random() < 0.2 else ""
        return f"{indent}for {name} in {over}:\n{body}{last if chance.random() < 0.4 else ''}{otherwise}"

    def write_each(self, depth, indent):
        """A loop over a collection, which does not change in it."""
        chance = self.chance
        name, other = self.fresh("n"), self.fresh("m")
        value = self.list(1)
        heads = [
            f"for {name} in {value}",
            f"for {name}, {other} in enumerate({value})",
            f"for {name}, {other} in enumerate({value}, {self.int(0)})",
            f"for {name}, {other} in zip({value}, {self.list(0)})",
            f"for {name} in sorted({value})",
            f"for {name} in reversed({value})",
            *(f"for {name}, {other} in {known}.items()" for known in self.dicts),
            *(f"for {name} in {known}" for known in self.dicts),
            *(f"for {name} in {known}.keys()" for known in self.dicts),
            *(f"for {name} in sorted({known})" for known in self.sets),
        ]
        before = [names[:] for names in self.known()]
        if chance.random() < 0.15:
            head = chance.choice([f"for {name} in {self.text(0)}", f"for {name} in texts"])
            self.texts.append(name)
        else:
            head = chance.choice(heads)
            self.ints.append(name)
            if other in head:
                self.ints.append(other)
        self.lists[:], self.dicts[:], self.sets[:] = [], [], []
        body = self.block(depth + 1, chance.randint(1, 2))
        self.forget(before)
        return f"{indent}{head}:\n{body}"

    def write_while(self, depth, indent):
        name = self.fresh("w")
        body = self.block(depth + 1, 1)
        otherwise = f"{indent}else:\n{self.block(depth + 1, 1)}" if self.chance.random() < 0.2 else ""
        return (
            f"{indent}{name} = 0\n{indent}while {name} < {self.chance.randint(0, 4)}:\n"
            f"{indent}    {name} += 1\n{body}{otherwise}"
        )
