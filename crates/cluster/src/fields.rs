//! Little-endian fields one behind the other, read from bytes that anybody may have written.

/// What has not been read yet.
pub(crate) struct Fields<'b>(pub(crate) &'b [u8]);

impl<'b> Fields<'b> {
    /// The next bytes, if there are so many.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// Text behind its length in bytes.
    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// What was read, if nothing is left.
    pub(crate) fn whole<T>(&self, read: T) -> Option<T> {
        self.0.is_empty().then_some(read)
    }
}

/// Writes a number.
pub(crate) fn put_u64(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

/// Writes bytes behind their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}
