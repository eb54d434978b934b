use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::{InstanceId, SubmittedBatch};
use grid_batch_core::operators::{
    ActionEffect, OperatorAction, OperatorTarget, OperatorVerb, RecordedAction,
};
use serde::Serialize;
use utoipa::ToSchema;

/// What an action is about.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TargetJson {
    target: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    /// The id of the token or webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_id: Option<String>,
}

impl From<&OperatorTarget> for TargetJson {
    fn from(target: &OperatorTarget) -> Self {
        let batch = target.batch();
        Self {
            target: target.kind(),
            service_id: target.service_id().map(ServiceId::to_string),
            batch_id: batch.map(|(id, _)| id.to_string()),
            attempt: batch.and_then(|(_, attempt)| attempt),
            instance_id: target.instance().map(InstanceId::to_string),
            target_id: target.other_id(),
        }
    }
}

/// What something was and is, in words.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedJson {
    from: String,
    to: String,
}

/// The batches that were being sent when the target was paused, drained or held. No others are sent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BeingSentJson {
    /// How many.
    count: usize,
    /// The first hundred of them.
    batches: Vec<SentBatchJson>,
}

/// A batch that is being sent.
#[derive(Debug, Serialize, ToSchema)]
struct SentBatchJson {
    service_id: String,
    batch_id: String,
    attempt: u32,
}

impl BeingSentJson {
    const MOST: usize = 100;

    pub(super) fn new(batches: &[SubmittedBatch]) -> Self {
        let batch = |batch: &SubmittedBatch| SentBatchJson {
            service_id: batch.service_id.to_string(),
            batch_id: batch.batch_id.to_string(),
            attempt: batch.attempt_id.attempt,
        };
        let count = batches.len();
        Self { count, batches: batches.iter().take(Self::MOST).map(batch).collect() }
    }
}

/// An action that is done, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DoneJson {
    verb: &'static str,
    dry_run: bool,
    #[serde(flatten)]
    target: TargetJson,
    changed: ChangedJson,
    /// The state of the batch now.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// What follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// Of a pause, a drain and a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    being_sent: Option<BeingSentJson>,
}

impl DoneJson {
    pub(super) fn new(
        action: &OperatorAction,
        effect: ActionEffect,
        being_sent: Option<BeingSentJson>,
    ) -> Self {
        Self {
            verb: action.verb.as_str(),
            dry_run: action.dry_run,
            target: TargetJson::from(&action.target),
            state: effect.state.map(BatchState::as_str),
            note: note(action.verb, &effect),
            changed: ChangedJson { from: effect.before, to: effect.after },
            being_sent,
        }
    }

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
fn note(verb: OperatorVerb, effect: &ActionEffect) -> Option<&'static str> {
    Some(match (verb, effect.state?) {
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

/// An action that was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusedJson {
    #[serde(flatten)]
    target: TargetJson,
    reason: String,
}

impl RefusedJson {
    pub(super) fn new(target: &OperatorTarget, reason: String) -> Self {
        Self { target: TargetJson::from(target), reason }
    }
}

/// An action of the log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordedJson {
    id: i64,
    acted_at: String,
    actor: String,
    source: &'static str,
    /// The instance that was asked.
    instance: Option<String>,
    verb: &'static str,
    #[serde(flatten)]
    target: TargetJson,
    reason: Option<String>,
    changed: ChangedJson,
}

impl From<RecordedAction> for RecordedJson {
    fn from(recorded: RecordedAction) -> Self {
        let RecordedAction { id, acted_at, action, before, after } = recorded;
        Self {
            id,
            acted_at: acted_at.rfc3339_micros(),
            actor: action.operator.name,
            source: action.operator.source.as_str(),
            instance: action.operator.instance.map(|instance| instance.to_string()),
            verb: action.verb.as_str(),
            target: TargetJson::from(&action.target),
            reason: action.reason,
            changed: ChangedJson { from: before, to: after },
        }
    }
}
