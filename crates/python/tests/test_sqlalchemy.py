"""SQLAlchemy on databases within the process."""

import datetime as dt
import decimal
import os
import tempfile
import unittest
import uuid

import fabius

try:
    import sqlalchemy as sa
    from sqlalchemy import orm
    from sqlalchemy.dialects import postgresql, registry

    registry.register("fabius", "fabius.sqlalchemy", "FabiusDialect")
except ImportError:
    sa = None


@unittest.skipIf(sa is None, "there is no SQLAlchemy")
class Engines(unittest.TestCase):
    def setUp(self):
        self.engine = sa.create_engine("fabius://?durability=none")
        self.addCleanup(self.engine.dispose)
        self.metadata = sa.MetaData()

    def test_values_of_all_types(self):
        columns = {
            "integer": (sa.BigInteger, 2**40),
            "numeric": (sa.Numeric(10, 2), decimal.Decimal("1.50")),
            "float": (sa.Float, 1.5),
            "text": (sa.String(20), "ü"),
            "json": (sa.JSON, {"a": [1]}),
            "jsonb": (postgresql.JSONB, [{"b": None}]),
            "moment": (sa.DateTime(timezone=True), dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.timezone.utc)),
            "date": (sa.Date, dt.date(2024, 1, 2)),
            "time": (sa.Time, dt.time(1, 2, 3)),
            "length": (sa.Interval, dt.timedelta(days=1, seconds=2)),
            "uuid": (sa.Uuid, uuid.UUID(int=5)),
            "bytes": (sa.LargeBinary, b"\0'"),
            "enum": (sa.Enum("a", "b", name="letter"), "b"),
            "array": (postgresql.ARRAY(sa.Integer), [1, 2]),
            "truth": (sa.Boolean, True),
        }
        fields = [sa.Column(name, kind) for name, (kind, _) in columns.items()]
        table = sa.Table("t", self.metadata, sa.Column("id", sa.Integer, primary_key=True), *fields)
        self.metadata.create_all(self.engine)
        values = {name: value for name, (_, value) in columns.items()}
        with self.engine.begin() as connection:
            made = connection.execute(table.insert().returning(table.c.id), values).scalar()
            connection.execute(table.insert(), [{"text": "y"}, {"text": "z"}])
            row = connection.execute(sa.select(table).where(table.c.id == made)).one()
            self.assertEqual(dict(row._mapping), {"id": 1, **values})
            of_json = sa.select(table.c.json["a"][0].as_integer(), table.c.jsonb[0]["b"].as_string())
            self.assertEqual(connection.execute(of_json.where(table.c.id == made)).one(), (1, None))
            some = sa.select(sa.func.count()).where(table.c.text.in_(["y", "z"]))
            self.assertEqual(connection.execute(some).scalar(), 2)
        seen = sa.inspect(self.engine)
        self.assertEqual(seen.get_table_names(), ["t"])
        self.assertEqual(seen.get_pk_constraint("t")["constrained_columns"], ["id"])
        self.metadata.drop_all(self.engine)

    def test_memory(self):
        for url in ("fabius://", "fabius:///:memory:"):
            engine = sa.create_engine(url)
            with engine.connect() as connection:
                self.assertEqual(connection.execute(sa.text("select 1")).scalar(), 1)
            engine.dispose()
        fabius.open(":memory:").close()
        self.assertFalse(os.path.exists(":memory:"))

    def test_reflection(self):
        with self.engine.begin() as connection:
            connection.execute(sa.text("create table p (id int primary key, a int unique, b text)"))
            connection.execute(sa.text("create table c (id int primary key, p int references p)"))
            connection.execute(sa.text("create index p_a_b on p (a, b)"))
        indexes = {index["name"]: index["column_names"] for index in sa.inspect(self.engine).get_indexes("p")}
        self.assertEqual(indexes, {"p_a_b": ["a", "b"], "p_a_key": ["a"]})
        reflected = sa.MetaData()
        reflected.reflect(self.engine)
        self.assertEqual([key.target_fullname for key in reflected.tables["c"].foreign_keys], ["p.id"])

    def test_objects(self):
        base = orm.declarative_base()

        class Item(base):
            __tablename__ = "item"
            id = sa.Column(sa.Integer, primary_key=True)
            name = sa.Column(sa.String, unique=True)

        base.metadata.create_all(self.engine)
        with orm.Session(self.engine) as session:
            session.add_all([Item(name="a"), Item(name="b")])
            session.commit()
            self.assertEqual([item.name for item in session.query(Item).order_by(Item.name.desc())], ["b", "a"])
            session.add(Item(name="a"))
            with self.assertRaises(sa.exc.IntegrityError):
                session.commit()
            session.rollback()
            self.assertEqual(session.query(Item).count(), 2)

    def test_each_statement_alone(self):
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("create table s (a int)"))
            connection.execute(sa.text("insert into s values (:a)"), {"a": 1})
        with self.engine.connect() as connection:
            self.assertEqual(connection.execute(sa.text("select a from s")).scalar(), 1)

    def test_a_directory_is_free_once_the_engine_is_disposed_of(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shop")
            engine = sa.create_engine(f"fabius:///{path}?workers=1")
            with engine.begin() as one, engine.begin() as other:
                one.execute(sa.text("create table s (a int)"))
                other.execute(sa.text("select 1"))
            engine.dispose()
            with fabius.open(path) as db:
                self.assertEqual(db.execute("select count(*) from s").scalar(), 0)

    def test_options_that_there_are_not(self):
        with self.assertRaises(fabius.InterfaceError) as raised:
            sa.create_engine("fabius://?speed=1").connect()
        self.assertIn("engine, durability, workers, history", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
