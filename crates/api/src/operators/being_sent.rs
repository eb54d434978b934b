//! Which batches are being sent although an operator has stopped them.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::operators::{ActionEffect, OperatorAction};
use serde::Deserialize;
use tokio::{
    select,
    time::{Instant, sleep_until},
};
use utoipa::IntoParams;

use super::{
    context::OperatorContext,
    json::{BeingSentJson, DoneJson},
};
use crate::http::{ApiError, WaitSeconds};

/// The time between two reads of which batches are still being sent.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// The longest wait that a request can ask for.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The parameters of requests that stop something.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SendingWait {
    /// For how many seconds to wait until none of the batches is being sent: at most 60
    #[param(value_type = Option<u32>)]
    pub(super) wait: Option<WaitSeconds>,
}

/// The parameters of requests that stop a batch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct BatchSendingWait {
    /// The service, if the batch is stored for several
    pub(super) service_id: Option<String>,
    /// For how many seconds to wait until none of the batches is being sent: at most 60
    #[param(value_type = Option<u32>)]
    pub(super) wait: Option<WaitSeconds>,
}

impl OperatorContext {
    /// Does the action. If it stops something, the answer names the batches that are being sent.
    pub(super) fn act_and_name(&self, action: &OperatorAction) -> Result<DoneJson, ApiError> {
        let effect = self.act(action)?;
        let being_sent = if action.verb.stops_sending() {
            Some(BeingSentJson::new(&self.being_sent(action, &effect)?))
        } else {
            None
        };
        Ok(DoneJson::new(action, effect, being_sent))
    }

    /// The batches of the target that are being sent after it was stopped. This instance has called back its others.
    fn being_sent(
        &self,
        action: &OperatorAction,
        effect: &ActionEffect,
    ) -> Result<Vec<SubmittedBatch>, ApiError> {
        if effect.state.is_some_and(|state| state != BatchState::Submitting) {
            return Ok(Vec::new());
        }
        if !action.dry_run {
            (self.recall)();
        }
        self.store.store.being_sent(&action.target).map_err(ApiError::write_failed)
    }

    /// Waits up to `wait` until no batch of the target is being sent any more.
    pub(super) async fn wait_until_sent(
        self: &Arc<Self>,
        action: &Arc<OperatorAction>,
        mut done: DoneJson,
        wait: Duration,
    ) -> Result<DoneJson, ApiError> {
        let deadline = Instant::now() + wait;
        while done.is_being_sent() {
            let next = (Instant::now() + READ_INTERVAL).min(deadline);
            select! {
                () = self.api.shutdown.requested() => break,
                () = sleep_until(next) => {}
            }
            let action = Arc::clone(action);
            let sent = self.store.write(move |store| store.being_sent(&action.target)).await?;
            done.set_being_sent(&sent);
            if next >= deadline {
                break;
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Query;

    #[test]
    fn wait_is_a_limited_number_of_seconds() {
        let wait = |text| {
            let params: Result<SendingWait, ApiError> = Query::parse(Some(text)).unwrap().params();
            params.map(|params| params.wait.map(|wait| wait.at_most(LONGEST_WAIT).as_secs()))
        };
        assert_eq!(wait("").unwrap(), None);
        assert_eq!(wait("wait=30").unwrap(), Some(30));
        assert_eq!(wait("wait=61").unwrap(), Some(60));
        for text in ["wait=-1", "wait=soon", "wait="] {
            assert!(wait(text).is_err(), "{text}");
        }
    }
}
