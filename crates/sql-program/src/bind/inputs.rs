//! What is known of a program besides its text: parameters and where they come from, numbers of sequences, what looks
//! random, places of its statements in the bodies of functions, ways to tables.

use super::tree;
use crate::lowered::{Argument, Frame, Lowered, Reserve};
use fabius_program::syntax::tree::{
    Block, Expression, Parameter, Results, Statement, StatementKind, TypeName,
};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_value::DataType;

/// The inputs of a program, as far as they are known while it is bound.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The program's parameters.
    pub(super) parameters: Vec<Parameter>,
    /// Where each comes from.
    pub(super) arguments: Vec<Argument>,
    /// The parameter that says when the transaction began.
    pub(super) time: Option<String>,
    /// What loops draw from.
    pub(super) random: Option<Drawing>,
    /// Numbers that loops take.
    pub(super) reserves: Vec<Drawing>,
    pub(super) sequences: Vec<Reserve>,
    /// The places that spans of statements count, from 1.
    pub(crate) places: Vec<Vec<Frame>>,
    /// The ways that were taken to tables, in words.
    pub(super) paths: Vec<String>,
}

/// A parameter that loops draw from, and the variable that says how often they have.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    pub(super) parameter: String,
    pub(super) drawn: String,
}

impl Inputs {
    /// A new parameter.
    pub(super) fn add(&mut self, stem: &str, ty: TypeName, argument: Argument) -> String {
        let name = format!("{stem}{}", self.parameters.len() + 1);
        self.parameters.push(Parameter { name: tree::name(&name), ty });
        self.arguments.push(argument);
        name
    }

    /// What loops draw from, with its parameter.
    pub(super) fn seed(&mut self) -> Drawing {
        if let Some(drawing) = &self.random {
            return drawing.clone();
        }
        let parameter = self.add("seed", tree::scalar_type(DataType::BigInt, false), Argument::Seed);
        let drawing = Drawing { drawn: format!("{parameter}_drawn"), parameter };
        self.random.insert(drawing).clone()
    }

    /// The reserve of a sequence's numbers, and its place among all.
    pub(super) fn reserve(&mut self, sequence: &ObjectName) -> (usize, Drawing) {
        if let Some(at) = self.sequences.iter().position(|reserve| reserve.sequence == *sequence) {
            return (at, self.reserves[at].clone());
        }
        let at = self.parameters.len();
        let bigint = || tree::scalar_type(DataType::BigInt, false);
        let parameter = self.add("first", bigint(), Argument::Reserved);
        self.add("numbers", bigint(), Argument::Reserved);
        let drawing = Drawing { drawn: format!("{parameter}_taken"), parameter };
        self.reserves.push(drawing.clone());
        self.sequences.push(Reserve { sequence: sequence.clone(), at });
        (self.reserves.len() - 1, drawing)
    }

    /// Variables that count what is drawn.
    pub(super) fn declarations(&self) -> impl Iterator<Item = Statement> {
        let zero = || tree::cast(tree::integer(0), DataType::BigInt);
        let bigint = || Some(tree::scalar_type(DataType::BigInt, false));
        let drawings = self.random.iter().chain(&self.reserves);
        drawings.map(move |drawing| tree::declare(&drawing.drawn, true, bigint(), zero()))
    }
}

/// One result more, behind the others.
pub(super) fn with_result(
    block: &mut Block,
    results: Results,
    last: Parameter,
    value: Expression,
) -> Results {
    match block.last_mut().map(|last| &mut last.kind) {
        Some(StatementKind::Return { values }) => values.push(value),
        _ => block.push(tree::statement(StatementKind::Return { values: vec![value] })),
    }
    let mut all = match results {
        Results::None => Vec::new(),
        Results::One(ty) => vec![Parameter { name: tree::name("result"), ty }],
        Results::Named(named) => named,
    };
    all.push(last);
    Results::Named(all)
}

impl Inputs {
    /// Puts them into what was lowered.
    pub(super) fn into_lowered(self, lowered: &mut Lowered) {
        lowered.definition.parameters = self.parameters;
        lowered.arguments = self.arguments;
        lowered.reserves = self.sequences;
        lowered.places = self.places;
        lowered.paths = self.paths;
    }
}
