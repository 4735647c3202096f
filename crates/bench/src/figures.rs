//! The figures, one file each. `FIGURES.md` has their axes and claims.

pub mod lazy_3;
pub mod lazy_4;
pub mod lazy_5;
pub mod lazy_6;
pub mod lazy_7;
pub mod lazy_8;
