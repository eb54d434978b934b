//! What happened to batches, as it is recorded and read.

mod event_feed;
mod recorded;

#[cfg(feature = "mocks")]
pub use event_feed::MockEventStore;
pub use event_feed::{
    BatchEvent, EventCursor, EventCursorError, EventFilter, EventId, EventKind, EventKindError,
    EventListener, EventPage, EventPosition, EventReadError, EventStore, EventWithdrawal,
    PositionedEvent,
};
pub use recorded::{Recorded, RecordedSubscriber};
