//! What order calls came in: segments, group flush, recovery reading.
