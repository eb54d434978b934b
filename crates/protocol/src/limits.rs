/// The maximum size of one list.
///
/// Decoding needs memory in proportion to the body: some dozens of bytes for each byte in the worst
/// case. The caller must limit the length of the body.
///
/// ```
/// use grid_batch_protocol::Limits;
///
/// let limits = Limits { batches: 1, ..Limits::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit on the number of batches in one list.
    pub batches: usize,
    /// Limit on the number of transactions in all batches of one list. Each needs the verification
    /// of a signature, so this limits the duration of one request.
    pub transactions: usize,
}

impl Default for Limits {
    /// 1 000 batches and 10 000 transactions, which take about half a second.
    fn default() -> Self {
        Self { batches: 1_000, transactions: 10_000 }
    }
}
