//! Loops to instructions.
//!
//! ```text
//! for x in list            EnterList                      for n in a to b   RangeStart, or go to end
//!                    head: ListNext x, or go to end                         EnterRange
//!                          body                                       head: RangeNext n, or go to end
//!                          go to head                                       body, go to head
//!                    end:                                             end:
//!
//! for r in t where c limit n       LimitStart, ScanOpen (or go to end)
//!                            head: LimitCheck, ScanNext r (or go to close)
//!                                  filter: unless c go to head
//!                                  LimitTake, body, go to head
//!                           close: ScanClose
//!                             end:
//! ```
//!
//! A record action has no loops over lists: there is one element, or none. Where it depends on others, it may run other
//! loops.
//!
//! `EnterList` and `EnterRange` count turns, all there is to do for a loop whose body is left to the
//! later-phase; which counts none, as it cannot abort, and nor do record actions: who runs them has counted before.

use super::code::ScanPlan;
use super::instruction::{Instruction, Register, Target, Truth};
use super::{Compiler, Part};
use crate::ir::{Block, Expression, RowId, Scan, ScanBound, Step, VariableId};
use fabius_value::{Result, Value};

impl<'p> Compiler<'p> {
    pub(super) fn for_list(
        &mut self,
        step: &Step,
        list: VariableId,
        fields: &[VariableId],
        body: &'p Block,
    ) -> Result<()> {
        if let Part::Action { element_of } = self.part {
            // There is one turn, or none.
            return if element_of == Some(list) { self.only_turn(fields, body) } else { Ok(()) };
        }
        if self.slice.is_some_and(|slice| slice.own_loops.contains(&step.id)) {
            return self.own_turn(fields, body);
        }
        let list = self.builder.list(list);
        if self.counts_turns() {
            self.builder.emit(Instruction::EnterList { list, width: fields.len() as u16 });
        }
        if !self.has_turns(body) {
            return Ok(());
        }
        let cursor = self.builder.temporaries(1);
        let zero = self.builder.constant(&Value::BigInt(0));
        self.builder.emit(Instruction::Move { to: cursor, from: zero });
        let (places, width) =
            (fields.iter().map(|field| self.builder.variable(*field)).collect(), fields.len());
        let fields = self.builder.number(self.builder.code.list_fields.len());
        self.builder.code.list_fields.push(places);
        let (head, end) = (self.head(step), self.builder.label());
        self.builder.emit(Instruction::ListNext { list, cursor, fields, target: end });
        if self.slice.is_none() {
            return self.turn(body, head, end);
        }
        let to = self.builder.temporaries(1);
        self.builder.emit(Instruction::Turn { to, cursor, width: width as u16 });
        self.turn = Some(to);
        self.turn(body, head, end)?;
        self.turn = None;
        Ok(())
    }

    /// The body of the loop over the list that an action's element is of: the element is where its fields are used.
    fn only_turn(&mut self, fields: &[VariableId], body: &'p Block) -> Result<()> {
        self.builder.code.element = fields.iter().map(|field| self.builder.variable(*field)).collect();
        self.block(body)
    }

    pub(super) fn for_range(
        &mut self,
        step: &Step,
        variable: VariableId,
        (from, to): (&Expression, &Expression),
        body: &'p Block,
    ) -> Result<()> {
        let (next, last) = (self.builder.temporaries(1), self.builder.temporaries(1));
        self.builder.compute(from, next)?;
        self.builder.compute(to, last)?;
        let (end, to) = (self.builder.label(), self.builder.variable(variable));
        self.builder.emit(Instruction::RangeStart { next, last, target: end });
        if self.counts_turns() {
            self.builder.emit(Instruction::EnterRange { next, last });
        }
        if !self.has_turns(body) {
            self.builder.place(end);
            return Ok(());
        }
        let head = self.head(step);
        self.builder.emit(Instruction::RangeNext { to, next, last, target: end });
        self.turn(body, head, end)
    }

    fn counts_turns(&self) -> bool {
        !matches!(self.part, Part::Later { .. } | Part::Slice { .. })
    }

    /// Whether this part has anything to do in a loop's turns.
    fn has_turns(&self, body: &Block) -> bool {
        body.iter().any(|step| self.concerns(step))
    }

    /// A loop's head: known is only what was known before and no turn changes.
    fn head(&mut self, step: &Step) -> Target {
        self.presence.forget_changed_in(self.program, std::slice::from_ref(step));
        self.builder.label_here()
    }

    /// A loop's body, the way back to its head, and its end, where no turn may have been taken.
    fn turn(&mut self, body: &'p Block, head: Target, end: Target) -> Result<()> {
        let (line, at_head) = (self.builder.line, self.presence.clone());
        self.block(body)?;
        self.presence = at_head;
        self.builder.line = line;
        self.builder.emit(Instruction::Jump { target: head });
        self.builder.place(end);
        Ok(())
    }

    pub(super) fn for_scan(
        &mut self,
        step: &'p Step,
        row: RowId,
        scan: &'p Scan,
        body: &'p Block,
    ) -> Result<()> {
        let replays = self.tape.as_ref().is_some_and(|tape| tape.replays(step));
        let (slot, table) = self.row(row);
        if replays && self.part != Part::Now {
            let (head, end) = (self.head(step), self.builder.label());
            self.builder.emit(Instruction::ReplayNext { row: slot, target: end });
            self.presence.set(row, true);
            if let Some(filter) = &scan.filter {
                self.block(&filter.steps)?;
            }
            return self.turn(body, head, end);
        }
        let equal = self.builder.temporaries(scan.equal.len());
        for (at, value) in scan.equal.iter().enumerate() {
            self.builder.compute(value, Register(equal.0.saturating_add(at as u16)))?;
        }
        let lower = self.bound(&scan.lower)?;
        let upper = self.bound(&scan.upper)?;
        let limit = match &scan.limit {
            Some(limit) => {
                let register = self.builder.temporaries(1);
                self.builder.compute(limit, register)?;
                self.builder.emit(Instruction::LimitStart { limit: register });
                Some(register)
            }
            None => None,
        };
        let plan = ScanPlan {
            table,
            index: scan.index,
            equal,
            equal_count: self.builder.number(scan.equal.len()),
            lower,
            upper,
            descending: scan.descending,
            limit_hint: limit.filter(|_| scan.filter.is_none()),
            joins: self.joins(step),
        };
        let at = self.builder.number(self.builder.code.scans.len());
        self.builder.code.scans.push(plan);
        let (close, end) = (self.builder.label(), self.builder.label());
        self.builder.emit(Instruction::ScanOpen { scan: at, target: end });
        let head = self.head(step);
        if let Some(limit) = limit {
            self.builder.emit(Instruction::LimitCheck { limit, target: close });
        }
        self.builder.emit(Instruction::ScanNext { row: slot, target: close });
        self.presence.set(row, true);
        let mut captures = Vec::new();
        if let Some(filter) = &scan.filter {
            let outer = if replays { self.waiting.replace(Vec::new()) } else { None };
            self.block(&filter.steps)?;
            if replays {
                captures = std::mem::replace(&mut self.waiting, outer).unwrap_or_default();
            }
            self.builder.line = step.line;
            self.builder.jump(&filter.condition, Truth::NotTrue, head)?;
        }
        if let Some(limit) = limit {
            self.builder.emit(Instruction::LimitTake { limit });
        }
        if replays {
            self.builder.emit(Instruction::CaptureRow { row: slot });
            captures.into_iter().for_each(|captured| self.capture_one(captured));
        }
        self.turn(body, head, close)?;
        self.builder.emit(Instruction::ScanClose);
        self.builder.place(end);
        if replays {
            self.builder.emit(Instruction::CaptureEnd);
        }
        Ok(())
    }

    fn bound(&mut self, bound: &Option<ScanBound>) -> Result<Option<(Register, bool)>> {
        bound.as_ref().map(|bound| Ok((self.builder.operand(&bound.value)?, bound.inclusive))).transpose()
    }
}
