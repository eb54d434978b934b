use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::{InstanceId, SubmittedBatch};
use grid_batch_core::operators::{
    ActionEffect, OperatorAction, OperatorTarget, OperatorVerb, RecordedAction,
};

use crate::http::{BatchStateName, Time, VerbName, json_types};

/// How many of the batches that are being sent are shown.
const MOST_SENT: usize = 100;

json_types! {
    /// What an action is about.
    pub(super) struct TargetJson(about: &OperatorTarget) {
        target: &'static str = about.kind(),
        #[serde(skip_serializing_if = "Option::is_none")]
        service_id: Option<String> = about.service_id().map(ServiceId::to_string),
        #[serde(skip_serializing_if = "Option::is_none")]
        batch_id: Option<String> = about.batch().map(|(id, _)| id.to_string()),
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32> = about.batch().and_then(|(_, attempt)| attempt),
        #[serde(skip_serializing_if = "Option::is_none")]
        instance_id: Option<String> = about.instance().map(InstanceId::to_string),
        /// The id of the token or webhook.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_id: Option<String> = about.other_id(),
    }

    /// What something was and is, in words.
    pub(super) struct ChangedJson(before: String, after: String) {
        from: String = before,
        to: String = after,
    }

    /// The batches that were being sent when the target was paused, drained or held. No others are sent.
    pub(super) struct BeingSentJson(sent: &[SubmittedBatch]) {
        /// How many.
        count: usize = sent.len(),
        /// The first hundred of them.
        batches: Vec<SentBatchJson> = sent.iter().take(MOST_SENT).map(SentBatchJson::new).collect(),
    }

    /// A batch that is being sent.
    struct SentBatchJson(batch: &SubmittedBatch) {
        service_id: String = batch.service_id.to_string(),
        batch_id: String = batch.batch_id.to_string(),
        attempt: u32 = batch.attempt_id.attempt,
    }

    /// An action that is done, or would be.
    pub(super) struct DoneJson(
        action: &OperatorAction,
        effect: ActionEffect,
        sent: Option<BeingSentJson>,
    ) {
        verb: VerbName = VerbName(action.verb),
        dry_run: bool = action.dry_run,
        #[serde(flatten)]
        target: TargetJson = TargetJson::new(&action.target),
        changed: ChangedJson = ChangedJson::new(effect.before, effect.after),
        /// The state of the batch now.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<BatchStateName> = effect.state.map(BatchStateName),
        /// What follows from it.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'static str> = note(action.verb, effect.state),
        /// Of a pause, a drain and a hold.
        #[serde(skip_serializing_if = "Option::is_none")]
        being_sent: Option<BeingSentJson> = sent,
    }

    /// An action that was refused.
    pub(super) struct RefusedJson(about: &OperatorTarget, why: String) {
        #[serde(flatten)]
        target: TargetJson = TargetJson::new(about),
        reason: String = why,
    }

    /// An action of the log.
    pub(crate) struct RecordedJson(recorded: RecordedAction) {
        id: i64 = recorded.id,
        acted_at: Time = Time(recorded.acted_at),
        actor: String = recorded.action.operator.name,
        source: &'static str = recorded.action.operator.source.as_str(),
        /// The instance that was asked.
        instance: Option<String> = recorded.action.operator.instance.map(|id| id.to_string()),
        verb: VerbName = VerbName(recorded.action.verb),
        #[serde(flatten)]
        target: TargetJson = TargetJson::new(&recorded.action.target),
        reason: Option<String> = recorded.action.reason,
        changed: ChangedJson = ChangedJson::new(recorded.before, recorded.after),
    }
}

impl DoneJson {
    /// Adds what follows from a decision if the ledger may have had the batch.
    pub(super) fn with_late_arrival(mut self) -> Self {
        self.note = Some(
            "The ledger may have had this batch. If it applies it after all, later batches of the service may have \
             been applied before it: the log then reports an error.",
        );
        self
    }

    /// Whether something of its target is being sent.
    pub(super) fn is_being_sent(&self) -> bool {
        self.being_sent.as_ref().is_some_and(|being_sent| being_sent.count > 0)
    }

    pub(super) fn set_being_sent(&mut self, batches: &[SubmittedBatch]) {
        self.being_sent = Some(BeingSentJson::new(batches));
    }
}

/// What follows from an action, for a person.
fn note(verb: OperatorVerb, state: Option<BatchState>) -> Option<&'static str> {
    Some(match (verb, state?) {
        (OperatorVerb::Hold, BatchState::Submitting) => {
            "it goes back within a second, unless it is being sent already"
        }
        (OperatorVerb::Hold, state) if state.awaits_queuer() => {
            "it is not sent before it is released or decided"
        }
        (OperatorVerb::Hold, _) => {
            "it is followed, and not sent again before it is released or decided"
        }
        (OperatorVerb::Retry, _) => "the batch is sent again now",
        (OperatorVerb::Continue, _) => "the batches that it stopped go on",
        (OperatorVerb::EndFollowing, _) => {
            "the batches that it stops end as invalid, without being sent"
        }
        _ => return None,
    })
}
