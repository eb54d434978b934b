use grid_batch_claims::ChangeFollowUp;
use grid_batch_core::ServiceId;
use grid_batch_submitter::SubmitterObserver;

use super::metrics::StageTimes;

/// Subscribes to the events of a service whenever a batch of it was submitted, and measures that.
pub(super) struct EventObserver {
    follow_up: ChangeFollowUp,
    stages: StageTimes,
}

impl EventObserver {
    pub(super) fn new(follow_up: ChangeFollowUp, stages: StageTimes) -> Self {
        Self { follow_up, stages }
    }
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
        self.follow_up.follow_events(&service_id);
    }
}
