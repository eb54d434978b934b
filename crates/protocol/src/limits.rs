/// How much one list may hold.
///
/// The memory that decoding takes is in proportion to the body, some dozens of bytes for each of
/// its bytes at the worst: how long a body may be is for whoever reads it to say.
///
/// ```
/// use grid_batch_protocol::Limits;
///
/// let limits = Limits { batches: 1, ..Limits::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most batches in one list.
    pub batches: usize,
    /// The most transactions in one list, those of all its batches together. Each costs a check of
    /// a signature, so this bounds the time that one request takes.
    pub transactions: usize,
}

impl Default for Limits {
    /// 1 000 batches and 10 000 transactions: half a second or so.
    fn default() -> Self {
        Self { batches: 1_000, transactions: 10_000 }
    }
}
