use std::sync::Arc;

use axum::http::request::Parts;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{ActionSource, Operator, OperatorRequest};

use serde::{Deserialize, de::DeserializeOwned};
use utoipa::ToSchema;

use crate::{access::Caller, http::ApiError};

/// Why an operator asks for something, and whether only to say what would change.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ActionRequest {
    /// Why, for the log.
    pub(crate) reason: String,
    /// Says what would change, and changes nothing.
    pub(crate) dry_run: Option<bool>,
}

/// A body with the fields of an [`ActionRequest`].
pub(crate) trait ActionBody: DeserializeOwned {
    /// Takes these fields.
    fn take_action(&mut self) -> ActionRequest;
}

/// Implements [`ActionBody`].
macro_rules! action_bodies {
    ($($body:ty),+) => {$(
        impl crate::state::ActionBody for $body {
            fn take_action(&mut self) -> crate::state::ActionRequest {
                let reason = std::mem::take(&mut self.reason);
                crate::state::ActionRequest { reason, dry_run: self.dry_run }
            }
        }
    )+};
}

pub(crate) use action_bodies;

action_bodies!(ActionRequest);

/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;
/// The name that a client may give itself where requests are not authorized.
const ACTOR_HEADER: &str = "grid-batch-actor";
/// The name in the log for requests that are not authorized.
const LOCAL_ACTOR: &str = "local";

/// Returns the instance that this process is now: it may register again as another one.
pub(crate) type CurrentInstance = dyn Fn() -> Option<InstanceId> + Send + Sync;

/// Finds out who asks for what the log of operators shows.
#[derive(Clone)]
pub(crate) struct Actors {
    /// The instance whose interface this is now.
    pub(crate) instance: Arc<CurrentInstance>,
    /// Who runs the command in whose process the interface is.
    pub(crate) command_user: Option<String>,
}

impl Actors {
    /// Who asks, with the reason, which every action needs, and whether it is a dry run.
    pub(crate) fn request(
        &self,
        request: &Parts,
        reason: String,
        dry_run: Option<bool>,
    ) -> Result<OperatorRequest, ApiError> {
        let dry_run = dry_run.unwrap_or(false);
        let rule = match reason.trim().len() {
            0 => "it is empty; say why, for the log".to_owned(),
            1..=LONGEST_REASON => {
                let operator = self.operator(request)?;
                return Ok(OperatorRequest { operator, reason: Some(reason), dry_run });
            }
            _ => format!("it is longer than {LONGEST_REASON} bytes"),
        };
        Err(ApiError::invalid_value("reason", rule))
    }

    /// Who makes a request, as the log shows it.
    fn operator(&self, request: &Parts) -> Result<Operator, ApiError> {
        if let Some(name) = self.command_user.clone() {
            return Ok(Operator { name, source: ActionSource::CommandLine, instance: None });
        }
        let name = name_of(request)?;
        Ok(Operator { name, source: ActionSource::Http, instance: (self.instance)() })
    }
}

impl Default for Actors {
    fn default() -> Self {
        Self { instance: Arc::new(|| None), command_user: None }
    }
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
