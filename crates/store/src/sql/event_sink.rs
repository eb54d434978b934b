use std::{
    fmt,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use grid_batch_core::EventListener;

/// Whether a store writes events, in whose name, and who is told of commits with events.
#[derive(Default)]
pub(crate) struct EventSink {
    is_off: bool,
    /// The instance of this process, once it is registered.
    instance: RwLock<Option<String>>,
    listeners: Mutex<Vec<EventListener>>,
    /// Events were written since the listeners were told.
    written: AtomicBool,
}

impl EventSink {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_off: !is_on, ..Self::default() }
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
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Events were written, and are visible after the commit.
    pub(crate) fn written(&self) {
        self.written.store(true, Ordering::Release);
    }

    /// Tells the listeners if a transaction has written events. Is called after commits.
    pub(crate) fn committed(&self) {
        if !self.written.swap(false, Ordering::AcqRel) {
            return;
        }
        for listener in &*self.listeners.lock().unwrap_or_else(PoisonError::into_inner) {
            listener();
        }
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSink").field("is_off", &self.is_off).finish_non_exhaustive()
    }
}
