use std::{
    collections::HashSet,
    fmt,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

use grid_batch_core::events::EventListener;
use grid_batch_support::lock;

/// Whether a store writes events, for which instance, and the listeners for commits with events.
#[derive(Default)]
pub(crate) struct EventSink {
    is_off: bool,
    /// The instance of this process, once it is registered.
    instance: RwLock<Option<String>>,
    listeners: Mutex<Vec<EventListener>>,
    /// The threads whose transactions have written events. A single flag would be cleared by the commit of another
    /// thread before the events are visible.
    written: Mutex<HashSet<ThreadId>>,
    count: AtomicU64,
}

impl EventSink {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_off: !(is_on && cfg!(feature = "events")), ..Self::default() }
    }

    /// Whether events are written.
    pub(crate) fn is_on(&self) -> bool {
        !self.is_off
    }

    pub(crate) fn set_instance(&self, instance: &str) {
        let instance = Some(instance.to_owned());
        *self.instance.write().unwrap_or_else(PoisonError::into_inner) = instance;
    }

    pub(crate) fn instance(&self) -> Option<String> {
        self.instance.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn listen(&self, listener: EventListener) {
        lock(&self.listeners).push(listener);
    }

    /// How many events were written, including those in transactions that may have been rolled back.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Records that this many events were written. They are visible after the commit.
    pub(crate) fn written(&self, events: usize) {
        self.count.fetch_add(u64::try_from(events).unwrap_or(u64::MAX), Ordering::Relaxed);
        lock(&self.written).insert(thread::current().id());
    }

    /// Notifies the listeners if the transaction of this thread has written events. Must be called after its commit.
    pub(crate) fn committed(&self) {
        if !lock(&self.written).remove(&thread::current().id()) {
            return;
        }
        for listener in &*lock(&self.listeners) {
            listener();
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink").field("is_off", &self.is_off).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    #[test]
    fn listener_is_called_for_each_commit_with_events() {
        let (sink, told) = (EventSink::new(true), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&told);
        sink.listen(Arc::new(move || {
            count.fetch_add(1, Relaxed);
        }));
        sink.committed();
        assert_eq!(told.load(Relaxed), 0, "nothing was written");
        sink.written(1);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                sink.written(1);
                sink.committed();
            });
            other.join().unwrap();
        });
        assert_eq!(told.load(Relaxed), 1);
        sink.committed();
        assert_eq!(told.load(Relaxed), 2, "its events are visible only now");
        assert_eq!(sink.count(), 2);
    }
}
