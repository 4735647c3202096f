//! Modes in which calls hold locks on rows and granules, for controls that lock.
//!
//! ```text
//!             visit   shared  intent  exclusive
//!  visit        x       x       x
//!  shared       x       x                          x: two calls may hold it at once
//!  intent       x               x
//!  exclusive
//! ```
//!
//! A call's own modes of one lock add up: shared and intent together are exclusive. The modes' bits are chosen so that
//! adding is `or`.

/// What a holder of a lock may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Read something in a granule, under a lock of its own: others may change other parts.
    Visit = 0,
    /// Read: others may read too.
    Shared = 1,
    /// Change a part of a granule: others may change other parts.
    Intent = 2,
    /// Alone.
    Exclusive = 3,
}

impl Mode {
    /// Bits that a mode takes.
    pub const BITS: u32 = 2;
    /// All of them, by their bits.
    pub const ALL: [Mode; 4] = [Mode::Visit, Mode::Shared, Mode::Intent, Mode::Exclusive];

    /// The mode of these bits; others than the lowest [`Mode::BITS`] do not matter.
    #[inline]
    pub fn of_bits(bits: u64) -> Mode {
        Mode::ALL[(bits & 3) as usize]
    }

    /// Whether two calls can hold a lock at once, in this mode and that.
    #[inline]
    pub fn goes_with(self, other: Mode) -> bool {
        let (narrow, wide) = (self.min(other), self.max(other));
        wide != Mode::Exclusive && (narrow == wide || narrow == Mode::Visit)
    }

    /// What a call may do that holds a lock in this mode and that.
    #[inline]
    #[must_use]
    pub fn and(self, other: Mode) -> Mode {
        Mode::of_bits(self as u64 | other as u64)
    }

    /// Whether it is that mode or more.
    #[inline]
    pub fn covers(self, other: Mode) -> bool {
        self.and(other) == self
    }

    /// The mode in which a row is locked.
    #[inline]
    pub fn of_row(writes: bool) -> Mode {
        if writes { Mode::Exclusive } else { Mode::Shared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: modes go with each other as drawn.
    #[test]
    fn modes_are_compatible_as_drawn() {
        let drawn = ["xxx.", "xx..", "x.x.", "...."];
        for one in Mode::ALL {
            let row: String =
                Mode::ALL.map(|other| if one.goes_with(other) { 'x' } else { '.' }).iter().collect();
            assert_eq!(row, drawn[one as usize], "{one:?}");
        }
    }

    /// Goal: who holds two modes may do what either allows, and no other call may what either forbids it.
    #[test]
    fn modes_add_up() {
        assert_eq!(Mode::Shared.and(Mode::Intent), Mode::Exclusive);
        for one in Mode::ALL {
            for other in Mode::ALL {
                let both = one.and(other);
                assert!(both.covers(one) && both.covers(other));
                let goes = |with: Mode| both.goes_with(with);
                assert!(
                    Mode::ALL
                        .into_iter()
                        .filter(|with| goes(*with))
                        .all(|with| { one.goes_with(with) && other.goes_with(with) })
                );
            }
        }
        assert!(!Mode::Shared.covers(Mode::Intent) && !Mode::Intent.covers(Mode::Exclusive));
    }
}
