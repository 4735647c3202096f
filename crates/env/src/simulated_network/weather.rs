//! What a simulated network does to messages.

use crate::Random;
use std::time::Duration;

/// What happens to messages on their way, by chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weather {
    /// The least time a message takes.
    pub delay_min: Duration,
    /// The most time a message takes; every time between is as likely.
    pub delay_max: Duration,
    /// How many messages of a thousand are lost.
    pub lost_per_mille: u64,
    /// How many messages of a thousand arrive twice.
    pub doubled_per_mille: u64,
    /// Whether the messages of one node to another arrive in the order they were sent, as those of one
    /// connection do. If not, their delays decide.
    pub is_in_order: bool,
}

impl Weather {
    /// A local network on a good day: up to a millisecond, nothing lost, all in order.
    #[must_use]
    pub fn calm() -> Self {
        Self {
            delay_min: Duration::from_micros(100),
            delay_max: Duration::from_millis(1),
            lost_per_mille: 0,
            doubled_per_mille: 0,
            is_in_order: true,
        }
    }

    /// A bad line: up to 50 milliseconds, one message in twenty lost, one in fifty doubled, in any order.
    #[must_use]
    pub fn stormy() -> Self {
        Self {
            delay_min: Duration::from_micros(100),
            delay_max: Duration::from_millis(50),
            lost_per_mille: 50,
            doubled_per_mille: 20,
            is_in_order: false,
        }
    }

    pub(super) fn loses(&self, random: &mut Random) -> bool {
        random.chance(self.lost_per_mille, 1_000)
    }

    pub(super) fn doubles(&self, random: &mut Random) -> bool {
        random.chance(self.doubled_per_mille, 1_000)
    }

    /// How long a message takes, in nanoseconds.
    pub(super) fn delay_ns(&self, random: &mut Random) -> u64 {
        let nanos = |delay: Duration| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let (min, max) = (nanos(self.delay_min), nanos(self.delay_max));
        min.saturating_add(random.below(max.saturating_sub(min).saturating_add(1)))
    }
}

impl Default for Weather {
    fn default() -> Self {
        Self::calm()
    }
}
