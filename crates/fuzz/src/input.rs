//! Taking an input apart: numbers from the front, zero where there are no more bytes.

/// What is left of an input.
pub(crate) struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    pub fn new(bytes: &'b [u8]) -> Input<'b> {
        Input { rest: bytes }
    }

    pub fn byte(&mut self) -> u8 {
        self.number::<1>() as u8
    }

    /// A number below `end`, which is not 0, from two bytes.
    pub fn below(&mut self, end: usize) -> usize {
        self.number::<2>() as usize % end
    }

    pub fn u32(&mut self) -> u32 {
        self.number::<4>() as u32
    }

    pub fn u64(&mut self) -> u64 {
        self.number::<8>()
    }

    fn number<const BYTES: usize>(&mut self) -> u64 {
        let taken = self.take(BYTES);
        taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// So many bytes, or as many as there are.
    pub fn take(&mut self, bytes: usize) -> &'b [u8] {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }
}
