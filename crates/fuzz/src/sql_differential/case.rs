//! One case: the random script of a seed.

use super::generator::{Generator, Relation};
use super::schema::{Column, Schema};
use super::statement::{Kind, Statement};
use super::tree::{Node, Role};
use fabius_env::Random;

/// Statements of a case behind those that make its tables.
const STATEMENTS: usize = 30;

/// What stands in the place of an expression where a statement is made wrong, with the SQLSTATE of it.
const WRONG: [(&str, &str); 6] = [
    ("nowhere", "42703"),
    ("nothing.a", "42P01"),
    ("nowhere(1)", "42883"),
    ("length()", "42883"),
    ("1 + DATE '2024-01-01' + 1.5", "42883"),
    ("'1' + '2'", "42725"),
];

/// Whether a statement was made wrong in a way that has this SQLSTATE.
pub fn is_wrong(statement: &Statement, state: &str) -> bool {
    let sql = statement.node.sql();
    WRONG.iter().any(|(wrong, of_wrong)| *of_wrong == state && sql.contains(wrong))
}

/// A script.
pub struct Case {
    pub setup: Vec<Statement>,
    pub statements: Vec<Statement>,
    /// Tells in which ways statements are sent.
    pub random: Random,
}

impl Case {
    /// The script of a seed.
    pub fn of(seed: u64) -> Case {
        let mut random = Random::seeded(seed);
        let schema = Schema::random(&mut random);
        let mut generator = Generator::new(random.split(), &schema);
        let mut setup: Vec<Statement> =
            schema.setup.iter().map(|node| Statement::new(Kind::Setup, node.clone())).collect();
        if generator.chance(1, 6) {
            setup.insert(0, Statement::text(Kind::Setup, "SET TIME ZONE 'America/New_York'"));
        }
        if generator.chance(1, 2) {
            setup.push(generator.view());
        }
        let mut statements = Vec::new();
        while statements.len() < STATEMENTS {
            match generator.chance(1, 8) {
                true => generator.block(&mut statements),
                false => statements.push(generator.statement()),
            }
        }
        Case { setup, statements, random }
    }
}

impl Generator<'_> {
    fn statement(&mut self) -> Statement {
        let mut statement = self.right_statement();
        if self.chance(1, 30) {
            self.make_wrong(&mut statement);
        }
        statement
    }

    /// Puts something wrong in the place of one expression: names and functions that are not there, another type.
    fn make_wrong(&mut self, statement: &mut Statement) {
        let mut places = Vec::new();
        statement.node.visit(&mut Vec::new(), &mut |way, node| {
            if let Role::Expression(of) = node.role
                && node.size() < 6
            {
                places.push((way.to_vec(), of));
            }
        });
        if places.is_empty() {
            return;
        }
        let (way, of) = self.one_of(&places);
        let (wrong, _) = self.one_of(&WRONG);
        if let Some(node) = statement.node.at_mut(&way) {
            *node = Node::raw(of, wrong);
        }
    }

    fn right_statement(&mut self) -> Statement {
        self.begin();
        match self.below(30) {
            0 | 1 => self.partition(),
            2..=20 => Statement::new(Kind::Select, self.select_statement()),
            _ => self.write_statement(),
        }
    }

    /// A transaction of some statements.
    fn block(&mut self, statements: &mut Vec<Statement>) {
        let control = |text: &str| Statement::text(Kind::Control, text.to_string());
        statements.push(control("BEGIN"));
        let mut has_savepoint = false;
        for at in 0..2 + self.below(5) {
            self.begin();
            match at == 0 || self.chance(1, 2) {
                true => statements.push(self.write_statement()),
                false => statements.push(self.statement()),
            }
            if self.chance(1, 10) {
                let mode = if self.chance(2, 3) { "DEFERRED" } else { "IMMEDIATE" };
                statements.push(control(&format!("SET CONSTRAINTS ALL {mode}")));
            }
            if self.chance(1, 8) {
                statements.push(control("SAVEPOINT s"));
                has_savepoint = true;
            } else if has_savepoint && self.chance(1, 4) {
                statements.push(control("ROLLBACK TO s"));
            }
        }
        let end = if self.chance(2, 3) { "COMMIT" } else { "ROLLBACK" };
        statements.push(control(end));
    }

    /// A view, which can be read from then on.
    fn view(&mut self) -> Statement {
        self.begin_view();
        let (query, outputs) = self.query(None);
        let columns = outputs.into_iter().map(|output| Column::new(output.name, output.of)).collect();
        let node = Node::plain("CREATE VIEW view0 AS {}", [query]);
        self.relations.push(Relation { name: "view0".into(), columns, key: Vec::new(), rows: 10 });
        Statement::new(Kind::Setup, node)
    }
}
