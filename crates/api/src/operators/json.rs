use grid_batch_core::{
    ActionEffect, InstanceId, OperatorAction, OperatorTarget, RecordedAction, ServiceId,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::rfc3339;

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
        }
    }
}

/// What something was and is, in words.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedJson {
    from: String,
    to: String,
}

/// An action that is done, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DoneJson {
    verb: &'static str,
    dry_run: bool,
    #[serde(flatten)]
    target: TargetJson,
    changed: ChangedJson,
}

impl DoneJson {
    pub(super) fn new(action: &OperatorAction, effect: ActionEffect) -> Self {
        Self {
            verb: action.verb.as_str(),
            dry_run: action.dry_run,
            target: TargetJson::from(&action.target),
            changed: ChangedJson { from: effect.before, to: effect.after },
        }
    }
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
            acted_at: rfc3339(acted_at),
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
