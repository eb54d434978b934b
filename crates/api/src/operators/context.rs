use std::{slice, sync::Arc};

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::{
    ActionEffect, ActionOutcome, ActionSource, BatchQueryStore, InstanceId, ItemId, Operator,
    OperatorAction, OperatorStore, OperatorTarget, ServiceId, StoredBatch,
};

use crate::{
    access::Caller,
    batches::{BatchRequestError, NamedBatch},
    http::{ApiError, JsonObject, RequestError, json_content_type},
    state::{ApiState, StoreAccess, StoredCallback},
};

/// The longest body of a request about one thing.
pub(super) const BODY_LIMIT: usize = 64 * 1024;
/// How many actions are carried out at once.
const WRITES: usize = 4;
/// How many requests about many batches are. They take long, and a pause must not wait for them.
const MANY: usize = 2;
/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;
/// The name that a client may give itself where requests are not authorized.
const ACTOR_HEADER: &str = "grid-batch-actor";
/// The name in the log for requests that are not authorized.
const LOCAL_ACTOR: &str = "local";

/// Returns the instance that this process is now: it may register again as another one.
pub(crate) type CurrentInstance = dyn Fn() -> Option<InstanceId> + Send + Sync;

/// Calls back the batches that this instance has taken and not sent, and that an operator has stopped since.
pub(crate) type RecallFn = dyn Fn() + Send + Sync;

/// What carries out what operators ask for.
#[derive(Clone)]
pub(crate) struct OperatorParts {
    pub(crate) store: Arc<dyn OperatorStore>,
    /// The instance whose interface this is now, for the log.
    pub(crate) instance: Arc<CurrentInstance>,
    /// Who runs the command in whose process the interface is.
    pub(crate) command_user: Option<String>,
}

/// What the handlers of operators need.
pub(crate) struct OperatorContext {
    pub(super) api: Arc<ApiState>,
    pub(super) queries: Arc<dyn BatchQueryStore>,
    pub(super) store: Arc<dyn OperatorStore>,
    pub(super) writes: StoreAccess,
    pub(super) writes_of_many: StoreAccess,
    instance: Arc<CurrentInstance>,
    command_user: Option<String>,
    stored: StoredCallback,
    pub(super) recall: Arc<RecallFn>,
}

impl OperatorContext {
    pub(crate) fn new(
        api: Arc<ApiState>,
        queries: Arc<dyn BatchQueryStore>,
        parts: OperatorParts,
        stored: StoredCallback,
        recall: Arc<RecallFn>,
    ) -> Self {
        let access = |permits| {
            StoreAccess::new(permits, api.database.clone(), ApiError::write_interrupted())
        };
        let (writes, writes_of_many) = (access(WRITES), access(MANY));
        let OperatorParts { store, instance, command_user } = parts;
        Self { api, queries, store, writes, writes_of_many, instance, command_user, stored, recall }
    }

    /// Reads a request whose body is a JSON object of the `known` fields, and has up to `limit` bytes.
    pub(super) async fn read_json(
        &self,
        request: Request,
        known: &'static [&'static str],
        limit: usize,
    ) -> Result<(Parts, JsonObject), ApiError> {
        let (request, body) = request.into_parts();
        let body = self.api.bodies.read(&request.headers, body, limit).await?;
        json_content_type(&request.headers).map_err(RequestError::JsonContentType)?;
        Ok((request, JsonObject::parse(&body.bytes, known)?))
    }

    /// Who makes a request, as the log shows it.
    pub(super) fn operator(&self, request: &Parts) -> Result<Operator, ApiError> {
        if let Some(name) = self.command_user.clone() {
            return Ok(Operator { name, source: ActionSource::CommandLine, instance: None });
        }
        let name = name_of(request)?;
        Ok(Operator { name, source: ActionSource::Http, instance: (self.instance)() })
    }

    /// The one batch that is named and that the caller may act on.
    pub(super) fn find(&self, named: &NamedBatch) -> Result<StoredBatch, ApiError> {
        named.find_in(&*self.queries).map_err(|error| match error.get() {
            Some(BatchRequestError::BatchNotFound(_)) => {
                RequestError::UnknownTarget { kind: "batch" }.into()
            }
            _ => error,
        })
    }

    /// Does it, and wakes the queue of its service.
    pub(super) fn act(&self, action: &OperatorAction) -> Result<ActionEffect, ApiError> {
        let kind = action.target.kind();
        match self.store.act(action).map_err(ApiError::write_failed)? {
            ActionOutcome::Done(effect) => {
                if let (Some(service), false) = (action.target.service_id(), action.dry_run) {
                    self.stored.notify(slice::from_ref(service));
                }
                Ok(effect)
            }
            ActionOutcome::Refused(refusal) => Err(refusal.into()),
            ActionOutcome::NotFound => Err(RequestError::UnknownTarget { kind }.into()),
        }
    }
}

/// Takes the reason, which every action needs.
pub(super) fn take_reason(fields: &mut JsonObject) -> Result<String, ApiError> {
    let reason = fields.string("reason")?;
    let rule = match reason.trim().len() {
        0 => "it is empty; say why, for the log".to_owned(),
        1..=LONGEST_REASON => return Ok(reason),
        _ => format!("it is longer than {LONGEST_REASON} bytes"),
    };
    Err(ApiError::invalid_value("reason", rule))
}

/// A batch of a service.
pub(super) fn batch(
    service_id: ServiceId,
    batch_id: ItemId,
    attempt: Option<u32>,
) -> OperatorTarget {
    OperatorTarget::Batch { service_id, batch_id, attempt }
}

/// The name by which the log shows who makes a request. A name that a client gives itself is marked, so
/// that it cannot be taken for one that was authorized.
fn name_of(request: &Parts) -> Result<String, ApiError> {
    if let Some(name) = Caller::of(request)?.authorized_name() {
        return Ok(name);
    }
    let Some(given) = request.headers.get(ACTOR_HEADER) else { return Ok(LOCAL_ACTOR.to_owned()) };
    match given.to_str() {
        Ok(name) if (1..=100).contains(&name.len()) => Ok(format!("{LOCAL_ACTOR}/{name}")),
        _ => Err(ApiError::invalid_value(
            "Grid-Batch-Actor",
            "it must have 1 to 100 visible ASCII characters",
        )),
    }
}
