"""Writes random functions of what can be compiled."""


class Writer:
    """A function of its own for each random state."""

    def __init__(self, chance):
        self.chance = chance
        self.ints, self.texts = ["b", "plain.a"], ["s"]
        self.lists, self.dicts, self.sets = [], [], []
        self.names = 0

    def function(self):
        body = self.block(1, self.chance.randint(2, 6))
        kind, value = self.chance.choice(
            [
                ("int", self.int(2)),
                ("str", self.text(2)),
                ("bool", self.truth(2)),
                ("tuple[int, str]", f"{self.int(1)}, {self.text(1)}"),
                ("list[int]", self.list(2)),
            ]
        )
        helper = "def g(n: int) -> int:\n    row = db.stock[2]\n    row.qty += n % 3\n    return row.qty - n\n\n\n"
        begin = "    row = db.stock[a]\n    plain = db.plain[1]\n"
        return f"{helper}def f(a: int, b: int, s: str) -> {kind}:\n{begin}{body}    return {value}\n"

    def block(self, depth, count):
        before = [names[:] for names in self.known()]
        indent = "    " * depth
        lines = "".join(self.statement(depth, indent) for _ in range(count))
        if depth > 1:
            # What a branch defines is not there behind it.
            for names, kept in zip(self.known(), before):
                names[:] = kept
        return lines

    def known(self):
        return self.ints, self.texts, self.lists, self.dicts, self.sets

    def statement(self, depth, indent):
        kinds = "int text augment row note require list list dict set change change swap print sql call known".split()
        kinds += "plain plain".split()
        if depth < 4:
            kinds += "if if for each while rows get raised".split()
        return getattr(self, f"write_{self.chance.choice(kinds)}")(depth, indent)

    def write_int(self, depth, indent):
        name, value = self.fresh("i"), self.int(2)
        self.ints.append(name)
        return f"{indent}{name} = {value}\n"

    def write_text(self, depth, indent):
        name, value = self.fresh("t"), self.text(2)
        self.texts.append(name)
        return f"{indent}{name} = {value}\n"

    def write_augment(self, depth, indent):
        name = self.chance.choice(self.ints)
        return f"{indent}{name} {self.chance.choice(['+=', '-=', '//=', '%='])} {self.int(1)}\n"

    def write_row(self, depth, indent):
        return f"{indent}row.qty {self.chance.choice(['=', '+=', '-='])} {self.int(1)} % 50\n"

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

    def write_known(self, depth, indent):
        """What is `None` ends the transaction here."""
        name, value = self.fresh("t"), self.text(0)
        self.texts.append(name)
        return f"{indent}{name} = row.note + {value}\n"

    def write_require(self, depth, indent):
        return f"{indent}fabius.require({self.truth(1)}, {self.text(1)})\n"

    def write_list(self, depth, indent):
        name, value = self.fresh("l"), self.list(2)
        self.lists.append(name)
        return f"{indent}{name} = {value}\n"

    def write_dict(self, depth, indent):
        one, other = self.int(0), self.int(0)
        value = self.chance.choice(
            [f"{{{one}: {self.int(1)}, {other}: 1}}", f"{{x: x + {one} for x in {self.list(0)}}}"]
        )
        name = self.fresh("d")
        self.dicts.append(name)
        return f"{indent}{name} = {value}\n"

    def write_set(self, depth, indent):
        value = self.chance.choice([f"{{{self.int(0)}, {self.int(0)}}}", f"set({self.list(1)})"])
        name = self.fresh("s")
        self.sets.append(name)
        return f"{indent}{name} = {value}\n"

    def write_change(self, depth, indent):
        chance = self.chance
        lines = []
        if self.lists:
            name = chance.choice(self.lists)
            lines += [f"{name}.append({self.int(1)})", f"{name} += {self.list(0)}", f"{name}.reverse()"]
            lines += [f"{name}[{self.int(0)}] = {self.int(1)}", f"{name}.sort()"]
            lines += [f"if {name}:\n{indent}    {name}.pop()"]
        if self.dicts:
            name = chance.choice(self.dicts)
            lines += [f"{name}[{self.int(0)}] = {self.int(1)}", f"{name}[{self.int(0)}] += 1"]
            lines += [f"del {name}[{self.int(0)}]"]
        if self.sets:
            name = chance.choice(self.sets)
            lines += [f"{name}.add({self.int(1)})", f"{name}.discard({self.int(0)})"]
        return f"{indent}{chance.choice(lines or ['pass'])}\n"

    def write_swap(self, depth, indent):
        one, other = self.chance.choice(self.ints), self.chance.choice(self.ints)
        return f"{indent}{one}, {other} = {self.int(1)}, {one}\n"

    def write_print(self, depth, indent):
        return f"{indent}print({self.text(1)}, {self.int(1)}{self.chance.choice(['', ', sep=chr_'])})\n".replace(
            "chr_", "'-'"
        )

    def write_sql(self, depth, indent):
        name = self.fresh("i")
        statement = self.chance.choice(
            [
                f"db.execute('select count(*) from stock where qty > %s', ({self.int(1)},)).scalar()",
                f"db.execute('update line set many = many + 1 where n = %s', ({self.int(0)} % 5,)).rowcount",
                "db.execute('select coalesce(sum(many), 0)::bigint as all from line').scalar()",
            ]
        )
        self.ints.append(name)
        return f"{indent}{name} = {statement}\n"

    def write_call(self, depth, indent):
        name = self.fresh("i")
        value = f"g({self.int(1)}) + {self.int(0)}"
        self.ints.append(name)
        return f"{indent}{name} = {value}\n"

    def write_raised(self, depth, indent):
        kind = self.chance.choice(["ValueError", "KeyError", "fabius.Aborted"])
        return f"{indent}if {self.truth(1)}:\n{indent}    raise {kind}({self.text(1)})\n"

    def write_if(self, depth, indent):
        then = self.block(depth + 1, self.chance.randint(1, 2))
        otherwise = self.block(depth + 1, 1) if self.chance.random() < 0.5 else ""
        return f"{indent}if {self.truth(2)}:\n{then}" + (f"{indent}else:\n{otherwise}" if otherwise else "")

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

    def write_for(self, depth, indent):
        chance = self.chance
        name = self.fresh("n")
        over = chance.choice(
            [f"range({chance.randint(0, 4)})", f"range({chance.randint(-2, 3)}, {chance.randint(-2, 5)})"]
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
        head = chance.choice(
            [
                f"for {name} in {value}",
                f"for {name}, {other} in enumerate({value})",
                f"for {name}, {other} in zip({value}, {self.list(0)})",
                f"for {name} in sorted({value})",
                f"for {name} in reversed({value})",
                *(f"for {name}, {other} in {known}.items()" for known in self.dicts),
                *(f"for {name} in sorted({known})" for known in self.sets),
            ]
        )
        before = [names[:] for names in self.known()]
        self.lists[:], self.dicts[:], self.sets[:] = [], [], []
        self.ints.append(name)
        if other in head:
            self.ints.append(other)
        body = self.block(depth + 1, chance.randint(1, 2))
        for names, kept in zip(self.known(), before):
            names[:] = kept
        return f"{indent}{head}:\n{body}"

    def write_rows(self, depth, indent):
        name = self.fresh("r")
        over = self.chance.choice(
            ["db.line", f"db.line.where(cart={self.int(0)})", f"db.line.where(many={self.int(1)})"]
        )
        before = self.ints[:]
        self.ints += [f"{name}.many", f"{name}.many"]
        body = self.block(depth + 1, self.chance.randint(1, 2))
        self.ints[:] = before
        return f"{indent}for {name} in {over}:\n{body}"

    def write_while(self, depth, indent):
        name = self.fresh("w")
        body = self.block(depth + 1, 1)
        return (
            f"{indent}{name} = 0\n{indent}while {name} < {self.chance.randint(0, 4)}:\n{indent}    {name} += 1\n{body}"
        )

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def list(self, depth):
        chance = self.chance
        if depth == 0:
            one, other = self.int(0), self.int(0)
            return chance.choice(["[1, 2]", f"[{one}]", f"[{one}, {other}, 3]"])
        inner = self.list(depth - 1)
        forms = [
            inner,
            f"[x * 2 for x in {inner} if x != {self.int(0)}]",
            f"sorted({inner}, reverse={chance.choice(['True', 'False'])})",
            f"[{self.int(depth - 1)}, {self.int(0)}]",
            f"{inner} + [{self.int(0)}]",
            f"({inner})[{chance.randint(-2, 2)}:]",
            f"({inner})[:{chance.randint(-2, 2)}]",
            f"list(range({chance.randint(0, 4)}))",
            f"[{self.int(0)}] * {chance.randint(0, 2)}",
            "[other.qty for other in db.stock]",
        ]
        forms += [f"{name}.copy()" for name in self.lists] + [f"sorted({name})" for name in self.sets]
        forms += [f"list({name}.values())" for name in self.dicts]
        return chance.choice(forms)

    def int(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([str(chance.randint(-5, 9)), chance.choice(self.ints), "row.qty", "a"])
        one, other = self.int(depth - 1), self.int(depth - 1)
        forms = [
            f"({one} {chance.choice(['+', '-', '*', '//', '%'])} {other})",
            f"({one} if {self.truth(depth - 1)} else {other})",
            f"{chance.choice(['min', 'max'])}({one}, {other})",
            f"abs({one})",
            f"len({self.text(depth - 1)})",
            f"-{one}",
            f"int({self.truth(0)})",
            f"sum(x + {one} for x in {self.list(0)})",
            f"{self.text(0)}.find('x')",
        ]
        for name in self.lists:
            forms += [f"len({name})", f"sum({name})", f"max({name}, default={one})", f"{name}[{one}]"]
            forms += [f"min({name})", f"{name}.count({one})", f"{name}.index({one})"]
        for name in self.dicts:
            forms += [f"{name}.get({one}, {other})", f"{name}[{one}]", f"len({name})"]
        return chance.choice(forms)

    def text(self, depth):
        chance = self.chance
        if depth == 0 or chance.random() < 0.3:
            return chance.choice(["'x'", "''", "'ü\\''", chance.choice(self.texts)])
        one, other = self.text(depth - 1), self.text(depth - 1)
        number = self.int(depth - 1)
        return chance.choice(
            [
                f"({one} + {other})",
                f"str({self.int(depth - 1)})",
                f"({one} if {self.truth(depth - 1)} else {other})",
                f"max({one}, {other})",
                "f'<{row.note}>'",
                "(row.note if row.note is not None else '')",
                one if "'" in number else f"f'{{{number}}}!'",
                f"{one}.{chance.choice(['upper()', 'lower()', 'strip()', 'rstrip(chr_)'])}".replace("chr_", "'x'"),
                f"{one}[{chance.randint(-2, 2)}:{chance.randint(-2, 3)}]",
                f"({one})[{chance.randint(-1, 1)}]",
                f"{one}.replace('x', {other})",
                f"','.join([str(x) for x in {self.list(0)}])",
            ]
        )

    def truth(self, depth):
        chance = self.chance
        compare = chance.choice(["==", "!=", "<", "<=", ">", ">="])
        if depth == 0:
            return f"{self.int(0)} {compare} {self.int(0)}"
        one, other = self.truth(depth - 1), self.truth(depth - 1)
        forms = [
            f"{self.int(depth - 1)} {compare} {self.int(depth - 1)}",
            f"{self.int(0)} < {self.int(0)} <= {self.int(depth - 1)}",
            f"{self.text(depth - 1)} {compare} {self.text(depth - 1)}",
            f"({one} and {other})",
            f"({one} or {other})",
            f"not {one}",
            "row.note is None",
            f"row.note == {self.text(0)}",
            f"bool({self.int(0)})",
            f"{self.int(0)} in db.stock",
            f"({self.int(0)}, {self.int(0)}) not in db.line",
            f"{self.int(0)} in ({self.int(0)}, 3, 4)",
            f"any(x > {self.int(0)} for x in {self.list(0)})",
            f"all(x > {self.int(0)} for x in {self.list(1)})",
            f"'x' in {self.text(0)}",
            f"{self.text(0)}.startswith({self.text(0)})",
        ]
        forms += [f"{self.int(0)} in {name}" for name in self.lists + self.dicts + self.sets]
        forms += [f"bool({name})" for name in self.lists]
        return chance.choice(forms)
