use std::{fmt, sync::Arc};

use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::catch_panic;
use log::error;

/// The stream of what this instance has recorded or learned of: calls each subscriber with each entry, in the order in
/// which they were added. Clones have the same subscribers.
///
/// Give it to every writer of changes: to the submitter's observer, to the poller's store, and to the
/// [`ClaimMaintainer`](crate::ClaimMaintainer). They call it after their commits, so that the entries of a service come
/// in the order of the commits.
#[derive(Clone, Default)]
pub struct RecordedStream(Vec<(&'static str, Arc<dyn RecordedSubscriber>)>);

impl RecordedStream {
    /// Adds a subscriber after the others. The name is for the log.
    #[must_use]
    pub fn with(
        mut self,
        name: &'static str,
        subscriber: impl RecordedSubscriber + 'static,
    ) -> Self {
        self.0.push((name, Arc::new(subscriber)));
        self
    }
}

impl RecordedSubscriber for RecordedStream {
    /// Calls the subscribers. If one panics, the panic is logged and the others are still called.
    fn recorded(&self, entry: Recorded<'_>) {
        for (name, subscriber) in &self.0 {
            if let Err(panic) = catch_panic(|| subscriber.recorded(entry)) {
                error!(subscriber = *name, panic:%; "a subscriber of the stream panicked");
            }
        }
    }
}

impl fmt::Debug for RecordedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn subscribers_are_called_in_order_also_after_a_panic() {
        let (sender, heard) = channel();
        let subscriber = |name: &'static str| {
            let sender = sender.clone();
            move |entry: Recorded<'_>| {
                sender.send((name, entry == Recorded::EndedWaiting(&[]))).unwrap()
            }
        };
        let stream = RecordedStream::default()
            .with("first", subscriber("first"))
            .with("faulty", |_: Recorded<'_>| panic!("test panic"))
            .with("absent", None::<RecordedStream>)
            .with("last", subscriber("last"));
        stream.recorded(Recorded::EndedWaiting(&[]));
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [("first", true), ("last", true)]);
    }
}
