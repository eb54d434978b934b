//! The feed of what happened to batches, which a store writes with each change.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use thiserror::Error;

use crate::batches::{BatchState, Event, TraceContext};
use crate::{BatchResult, Excerpt, ItemId, ServiceId, Timestamp};

/// What happened to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// It was stored.
    Accepted,
    /// It was handed to a submitter: an attempt began.
    Submitted,
    /// An attempt ended, with or without an answer of the ledger.
    Answered,
    /// The ledger reported its status.
    Status,
    /// Evidence was found about it, or it became certain that no earlier attempt can arrive any more.
    Evidence,
    /// The instance that was submitting it is gone.
    OwnerLost,
    /// The database was restored and may have lost the latest changes of the batch.
    DatabaseRestored,
    /// It waits for an operator.
    Held,
    /// An operator ended its hold.
    Released,
    /// An operator ended its delay.
    DelayEnded,
    /// An operator decided about it, or about what follows it.
    Decided,
    /// It ended without being sent, because of another batch.
    DependencyInvalid,
    /// It had ended as invalid, and the ledger later reported it as committed.
    CommittedAfterInvalid,
    /// It ended. A reader that selects this kind gets it in the place of the kind with which the batch ended; it is not
    /// stored.
    Ended,
}

/// A text that is not an [`EventKind`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is no kind of event; the kinds are {}", EventKind::ALL.map(EventKind::as_str).join(", "))]
pub struct EventKindError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl EventKind {
    /// Every kind. Stores keep the index in this list, so kinds are only added at the end.
    pub const ALL: [Self; 14] = [
        Self::Accepted,
        Self::Submitted,
        Self::Answered,
        Self::Status,
        Self::Evidence,
        Self::OwnerLost,
        Self::DatabaseRestored,
        Self::Held,
        Self::Released,
        Self::DelayEnded,
        Self::Decided,
        Self::DependencyInvalid,
        Self::CommittedAfterInvalid,
        Self::Ended,
    ];

    /// The kind as responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Submitted => "submitted",
            Self::Answered => "answered",
            Self::Status => "status",
            Self::Evidence => "evidence",
            Self::OwnerLost => "owner_lost",
            Self::DatabaseRestored => "database_restored",
            Self::Held => "held",
            Self::Released => "released",
            Self::DelayEnded => "delay_ended",
            Self::Decided => "decided",
            Self::DependencyInvalid => "dependency_invalid",
            Self::CommittedAfterInvalid => "committed_after_invalid",
            Self::Ended => "ended",
        }
    }
}

impl From<Event> for EventKind {
    fn from(event: Event) -> Self {
        match event {
            Event::Taken => Self::Submitted,
            Event::Outcome { .. } => Self::Answered,
            Event::OwnerLost { .. } => Self::OwnerLost,
            Event::Status { .. } => Self::Status,
            Event::Evidence { .. } | Event::EarlierCannotArrive { .. } => Self::Evidence,
            Event::DatabaseRestored => Self::DatabaseRestored,
            Event::DependencyInvalid => Self::DependencyInvalid,
            Event::Decided { .. } => Self::Decided,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = EventKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| EventKindError { value: Excerpt::of(text) })
    }
}

/// Identifies an event for good: one that is delivered again has the same id. Ids say nothing about order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The group that was written in one commit.
    pub group: i64,
    /// The position in the group.
    pub position: i32,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.group, self.position)
    }
}

/// One event of a batch, written in the transaction of the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEvent {
    /// Its id.
    pub id: EventId,
    /// The service of the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: ItemId,
    /// What happened.
    pub kind: EventKind,
    /// The state of the batch afterwards.
    pub state: BatchState,
    /// How often the batch had been handed to a submitter.
    pub attempt: u32,
    /// What the ledger or an operator said, or what went wrong.
    pub detail: Option<String>,
    /// When, by the database's clock.
    pub at: Timestamp,
    /// The instance that recorded it; `None` for a command, or a process without claims.
    pub instance: Option<String>,
    /// The withdrawal or call that the batch executes, if any. It is not set in the history of a batch.
    pub withdrawal: Option<EventWithdrawal>,
    /// The trace of the request that the batch was sent with.
    pub trace: Option<TraceContext>,
}

/// What an event says about the withdrawal or call of its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWithdrawal {
    /// Its id.
    pub id: String,
    /// Whether it is a call, so any transaction that is no withdrawal.
    pub is_call: bool,
    /// The pool that pays, or the address that is called; empty if a contract is created.
    pub pool: String,
    /// The amount, in the smallest unit of the pool's currency or of the chain's.
    pub amount: String,
    /// The hash of the transaction that pays, or of the one with the highest fee if there are several. `None`: none is
    /// signed.
    pub transaction_hash: Option<String>,
}

/// A position in the feed up to which a reader has read. Only the store that created it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCursor(String);

/// A text that is not an [`EventCursor`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is no cursor of events: use the `next` of a response, `oldest` or `latest`")]
pub struct EventCursorError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl EventCursor {
    /// The longest cursor, in bytes.
    const LONGEST: usize = 8192;

    /// The text, which URLs and header fields can contain as it is.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EventCursor {
    type Err = EventCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b".-_".contains(&c);
        let is_cursor = (1..=Self::LONGEST).contains(&text.len()) && text.bytes().all(is_allowed);
        if is_cursor {
            Ok(Self(text.to_owned()))
        } else {
            Err(EventCursorError { value: Excerpt::of(text) })
        }
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Where reading begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventPosition {
    /// With the oldest event that is kept.
    Oldest,
    /// After the latest event.
    Latest,
    /// After what a reader has read.
    After(EventCursor),
}

/// Selects events. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of these services; empty: of all.
    pub services: BTreeSet<ServiceId>,
    /// Only events of these kinds; empty: of all.
    pub kinds: BTreeSet<EventKind>,
}

impl EventFilter {
    /// Whether it selects an event.
    pub fn selects(&self, event: &BatchEvent) -> bool {
        (self.services.is_empty() || self.services.contains(&event.service_id))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
    }
}

/// An event with the position after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionedEvent {
    /// The event.
    pub event: BatchEvent,
    /// Where reading continues after the event.
    pub cursor: EventCursor,
}

/// Some events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events that the filter selects.
    pub events: Vec<PositionedEvent>,
    /// Where reading continues, past events that the filter does not select.
    pub next: EventCursor,
    /// Whether there was more to read.
    pub more: bool,
}

/// Why events cannot be read from a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventReadError {
    /// No store of this kind made the cursor.
    #[error("the cursor was not made by this store")]
    NotACursor,
    /// Events after it were removed, or the database went back to an earlier state.
    #[error("events after the cursor are not kept any more, or the database was restored")]
    Gone {
        /// The oldest position from which events can be read.
        oldest: EventCursor,
    },
}

/// Called after each commit that wrote events. It must return at once.
pub type EventListener = Arc<dyn Fn() + Send + Sync>;

/// Reads the events of batches.
///
/// Each event is written in the transaction of the change that it reports. A reader that continues from the cursor of
/// each page gets every selected event exactly once, and the events of a service in the order of its changes, even if
/// several instances write.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventStore: Send + Sync {
    /// Up to `limit` events from a position. With a filter, a page can be empty although there is more.
    fn events(
        &self,
        from: &EventPosition,
        filter: &EventFilter,
        limit: usize,
    ) -> BatchResult<Result<EventPage, EventReadError>>;

    /// All events of a batch in order; `None`: the batch is not stored.
    fn history(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<BatchEvent>>>;

    /// Calls `listener` after each commit of this process that wrote events, but not after those of other processes.
    fn on_events(&self, listener: EventListener);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_parse_as_they_are_written() {
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("finished".parse::<EventKind>().is_err());
    }

    #[test]
    fn cursor_is_a_short_word() {
        assert_eq!("e1.0-5".parse::<EventCursor>().unwrap().as_str(), "e1.0-5");
        for text in ["", "a b", "a\nb", "é", &"1".repeat(8193)] {
            assert!(text.parse::<EventCursor>().is_err(), "{text}");
        }
    }
}
