use grid_batch_core::Outcome;

/// Is told how each attempt went, beside the [`UrlResolver`](grid_batch_core::UrlResolver) that gave
/// the address.
///
/// It is called on the threads that send, so it must be quick.
pub trait UrlHealth: Send + Sync {
    /// An attempt to send this batch to this address ended so.
    fn report(&self, batch_header: &str, url: &str, outcome: Outcome);
}
