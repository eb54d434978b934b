//! Where hints go after a change was recorded. A lost hint only costs time: queue and poller look
//! at every service periodically.

use std::time::Duration;

use crate::{BatchState, Change, ServiceId};

/// Receives wake-ups: hints that a service has a batch to submit.
pub trait WakeUps: Send + Sync {
    /// The service has a batch that can be submitted now.
    fn wake(&self, service_id: &ServiceId);

    /// The service has a batch that can be submitted after this delay.
    fn wake_after(&self, service_id: &ServiceId, delay: Duration);
}

/// Receives triggers: hints that a service's batches should be polled now.
pub trait PollTriggers: Send + Sync {
    /// Polls the service now.
    fn trigger(&self, service_id: &ServiceId);

    /// A ledger has accepted a batch of the service, and the store has recorded that.
    ///
    /// An event about the batch may have arrived earlier, when there was nothing to poll. Then the
    /// service is polled now.
    fn submitted(&self, service_id: &ServiceId);
}

/// Receives the services whose ledger events are wanted.
pub trait EventSubscriptions: Send + Sync {
    /// Subscribes to the events of the service, if it is not subscribed to. Call it whenever a batch
    /// of the service is on its way.
    fn follow(&self, service_id: &ServiceId);

    /// A ledger has accepted a batch of the service: an event must tell of its commit.
    fn accepted(&self, service_id: &ServiceId);

    /// A batch of the service has ended as committed, whether or not an event told of it.
    fn committed(&self, service_id: &ServiceId);
}

/// Receives the services whose next batches the ledger should be asked about.
pub trait AskAheadRequests: Send + Sync {
    /// A batch of the service was stored, and may wait behind another one.
    fn stored(&self, service_id: &ServiceId);

    /// A ledger has accepted a batch of the service: another one may wait behind it.
    fn accepted(&self, service_id: &ServiceId);
}

/// Receives what is recorded about batches that are under way.
pub trait InFlightUpdates: Send + Sync {
    /// The change was recorded; its batch is in this state now.
    fn recorded(&self, change: &Change, state: BatchState);

    /// The instance has claimed services, which may have batches under way.
    fn claimed(&self);
}
