//! Phase reconciliation as the protocol of eager turns.

use crate::control::Splitting;
use crate::doppel::Doppel;
use fabius_engine::eager::Protocol;
use fabius_engine::eager::control::Waiting;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;

impl Protocol for Doppel {
    const NAME: &'static str = "split";
    const HAS_PHASES: bool = true;

    type Control<'a> = Splitting<'a>;

    fn enter(&self) -> Option<usize> {
        self.slots().claim()
    }

    fn leave(&self, number: usize) {
        self.slots().leave(number);
    }

    fn control<'a>(&'a self, number: usize) -> Splitting<'a> {
        Splitting::new(self, number)
    }

    fn holds_back(&self) -> bool {
        self.is_split()
    }

    fn is_phase_due(&self, waiting: &Waiting, now_ns: u64) -> bool {
        self.is_change_due(waiting, now_ns)
    }

    fn change_phase(&self, shared: &Shared, schema: &Schema, now_ns: u64) {
        if self.is_split() {
            self.end_split_phase(shared);
        } else {
            self.begin_split_phase(schema, now_ns);
        }
    }
}
