//! What a program takes besides parameters: the time, random numbers, numbers of sequences.

use super::binder::Binder;
use super::bound::Bound;
use super::inputs::{Drawing, with_result};
use super::stop::Bind;
use super::tree;
use crate::lowered::{Argument, Reserve};
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, Parameter, Results, Statement, TypeName};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{DataType, Value};

impl Binder<'_> {
    /// A new parameter of the program.
    pub(super) fn add_parameter(&mut self, stem: &str, ty: TypeName, argument: Argument) -> String {
        self.inputs.add(stem, ty, argument)
    }

    /// When the transaction began.
    pub(super) fn transaction_time(&mut self) -> Bound {
        let name = match &self.inputs.time {
            Some(name) => name.clone(),
            None => {
                let ty = tree::scalar_type(DataType::Timestamp, false);
                let name = self.inputs.add("now", ty, Argument::TransactionTime);
                self.inputs.time.insert(name).clone()
            }
        };
        Bound::computed(tree::variable(name), SqlType::TimestampTz, false)
    }

    /// `random()`: drawn before the program runs, or within its loops from a seed.
    pub(super) fn random(&mut self) -> Bound {
        let value = match self.repeats {
            true => self.drawn("nth_random", DataType::Double),
            false => self.add_scalar(DataType::Double, false, Argument::Random),
        };
        Bound::computed(value, SqlType::Double, false)
    }

    /// `gen_random_uuid()`, likewise.
    pub(super) fn random_uuid(&mut self) -> Bound {
        let value = match self.repeats {
            true => self.drawn("nth_uuid", DataType::Bytea),
            false => self.add_scalar(DataType::Bytea, false, Argument::RandomUuid),
        };
        Bound::computed(value, SqlType::Uuid, false)
    }

    fn drawn(&mut self, function: &str, data_type: DataType) -> Expression {
        let Drawing { parameter, drawn } = self.inputs.seed();
        let value = self.name("drawn");
        let next = tree::call(function, vec![tree::variable(parameter), tree::variable(&drawn)]);
        self.emit(tree::declare(&value, false, Some(tree::scalar_type(data_type, false)), next));
        self.emit(tree::add(&drawn, tree::cast(tree::integer(1), DataType::BigInt)));
        tree::variable(value)
    }

    /// The next value of a sequence: taken before the program runs, or within its loops from a reserve of numbers
    /// in a row. A program whose reserve is too small aborts with [`Reserve::SHORT`], and is run again with more.
    pub(super) fn next_value(&mut self, sequence: ObjectName) -> Bound {
        if !self.repeats {
            let value = self.add_scalar(DataType::BigInt, false, Argument::NextValue(sequence));
            return Bound::computed(value, SqlType::BigInt, false);
        }
        let step = self.catalog.sequences.get(&sequence).map_or(1, |sequence| sequence.increment);
        let (at, Drawing { parameter, drawn }) = self.inputs.reserve(&sequence);
        let count = self.inputs.parameters[self.inputs.sequences[at].at + 1].name.text.clone();
        let is_left = tree::binary(Op::Less, tree::variable(&drawn), tree::variable(count));
        self.emit(tree::require(is_left, &Reserve::SHORT.0, at.to_string(), None));
        let value = self.name("number");
        let by = tree::literal(&Value::BigInt(step), DataType::BigInt);
        let moved = tree::binary(Op::Multiply, tree::variable(&drawn), by);
        let next = tree::binary(Op::Add, tree::variable(parameter), moved);
        let ty = tree::scalar_type(DataType::BigInt, false);
        self.emit(tree::declare(&value, false, Some(ty), next));
        self.emit(tree::add(&drawn, tree::cast(tree::integer(1), DataType::BigInt)));
        Bound::computed(tree::variable(value), SqlType::BigInt, false)
    }

    /// Binds what may run more than once.
    pub(super) fn repeated<T>(&mut self, act: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        let before = std::mem::replace(&mut self.repeats, true);
        let done = act(self);
        self.repeats = before;
        done
    }

    /// Declares what loops draw from, and returns how many numbers of each reserve were taken.
    pub(super) fn with_drawings(&mut self, results: Results) -> Results {
        let declarations: Vec<Statement> = self.inputs.declarations().collect();
        let taken = self.inputs.reserves.iter().map(|drawing| drawing.drawn.clone());
        let taken: Vec<String> = taken.collect();
        self.block.splice(0..0, declarations);
        let bigint = || tree::scalar_type(DataType::BigInt, false);
        taken.into_iter().enumerate().fold(results, |results, (at, name)| {
            let last = Parameter { name: tree::name(format!("taken{at}")), ty: bigint() };
            with_result(&mut self.block, results, last, tree::variable(name))
        })
    }
}
