use grid_batch_core::Outcome;

/// Receives the outcome of each attempt at an address of a
/// [`UrlResolver`](grid_batch_core::UrlResolver).
///
/// It is called on the threads that send, so it must return quickly.
pub trait UrlHealth: Send + Sync {
    /// An attempt to send this batch to `url` had this outcome.
    fn report(&self, batch_header: &str, url: &str, outcome: Outcome);
}
