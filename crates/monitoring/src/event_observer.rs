use grid_batch_core::ServiceId;
use grid_batch_poller::EventFollower;
use grid_batch_submitter::SubmitterObserver;

use crate::StageTimes;

/// Subscribes to the events of a service when one of its batches is submitted, and measures how long its submission
/// takes.
pub struct EventObserver {
    /// The event streams, if the ledger has them.
    pub follower: Option<EventFollower>,
    /// How long the stages of batches take.
    pub stages: StageTimes,
}

impl SubmitterObserver for EventObserver {
    type Id = ServiceId;

    fn notify(
        &self,
        batch_id: String,
        service_id: ServiceId,
        status: Option<u16>,
        message: Option<String>,
    ) {
        match (status, message) {
            (None, None) => self.stages.taken(&batch_id),
            _ => self.stages.answered(&batch_id),
        }
        if let Some(follower) = &self.follower {
            follower.follow(service_id.as_str());
        }
    }
}
