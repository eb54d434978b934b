//! Carries out operators' actions. Each action is one commit together with its row in the log.

use grid_batch_core::batches::{ChangeOutcome, Decision, OperatorDecision};
use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::operators::{
    ActionEffect, ActionFilter, ActionOutcome, ActionRefusal, Operator, OperatorAction,
    OperatorStore, OperatorTarget, OperatorVerb, RecordedAction,
};
use grid_batch_core::queries::{Halt, HaltCursor};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::{
    batch_actions::act_on_batch,
    claims::{change_drain, release_claim},
    pauses::{change_pause, change_pause_of_all},
};
use crate::{
    action_log::{actions, in_transaction, record_action},
    sql::{Connection, Store, StoreError, groups::LOCK_LIMIT},
    submission::being_sent,
};

impl OperatorStore for Store {
    fn act(&self, action: &OperatorAction) -> BatchResult<ActionOutcome> {
        Ok(act(self, action)?)
    }

    fn actions(
        &self,
        filter: &ActionFilter,
        before: Option<i64>,
        limit: usize,
    ) -> BatchResult<Vec<RecordedAction>> {
        Ok(actions(self, filter, before, limit)?)
    }

    fn halts(&self, after: Option<&HaltCursor>, limit: usize) -> BatchResult<Vec<Halt>> {
        Ok(Self::halts(self, after, limit)?)
    }

    fn being_sent(&self, target: &OperatorTarget) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(being_sent(self, target)?)
    }
}

/// Actions of a program that names no operator.
impl Store {
    /// Holds an open batch for an operator, with a reason, which is also recorded in its attempts.
    ///
    /// A batch that the ledger does not have is not sent until it is released or decided. A batch at the ledger is
    /// followed, and ends if the ledger reports a final status or evidence proves that it was applied, but is not sent
    /// again. A submission under way is not stopped.
    pub fn hold_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: &str,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Hold, service_id, batch_id, None, Some(reason))
    }

    /// Ends any hold of a batch, so that it continues by the ordinary rules, which may hold it again.
    pub fn release_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Release, service_id, batch_id, None, reason)
    }

    /// Records an operator's decision about this attempt of an open batch, also in its list of failed attempts. The
    /// attempt is 0 for a batch that was never tried.
    ///
    /// The attempt is the one that the operator looked at. If the batch is at another one, nothing changes, because the
    /// decision is not about that one. Nothing changes either while the batch is with a submitter, because it may be on
    /// its way.
    pub fn decide(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        attempt: u32,
        decision: impl Into<OperatorDecision>,
    ) -> Result<ChangeOutcome, StoreError> {
        let OperatorDecision { decision, reason } = decision.into();
        let verb = match decision {
            Decision::Committed => OperatorVerb::EndCommitted,
            Decision::Invalid => OperatorVerb::EndInvalid,
            Decision::Absent => OperatorVerb::Resubmit,
        };
        self.act_on(verb, service_id, batch_id, Some(attempt), reason.as_deref())
    }

    /// Lets the batches that an invalid batch stops continue. Batches that depend on it end as invalid.
    pub fn continue_after(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::Continue, service_id, batch_id, None, reason)
    }

    /// Ends the batches that an invalid batch stops as invalid, without sending them. In the parallel strategy, these
    /// are the batches that wait for it, directly or indirectly; in the others, all batches of the service that were
    /// never sent. Batches that are added later are not affected.
    ///
    /// They end in steps, each with its own commit. If the process ends in between, a server ends the others.
    pub fn end_following(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        reason: &str,
    ) -> Result<ChangeOutcome, StoreError> {
        self.act_on(OperatorVerb::EndFollowing, service_id, batch_id, None, Some(reason))
    }

    /// Acts on one batch, as a program that names no operator.
    fn act_on(
        &self,
        verb: OperatorVerb,
        service_id: &ServiceId,
        batch_id: &ItemId,
        attempt: Option<u32>,
        reason: Option<&str>,
    ) -> Result<ChangeOutcome, StoreError> {
        let (service_id, batch_id) = (service_id.clone(), *batch_id);
        let outcome = act(
            self,
            &OperatorAction {
                verb,
                target: OperatorTarget::Batch { service_id, batch_id, attempt },
                reason: reason.map(str::to_owned),
                operator: Operator::program(),
                dry_run: false,
            },
        )?;
        match outcome {
            ActionOutcome::Done(ActionEffect { state: Some(state), next_waits, .. }) => {
                Ok(ChangeOutcome::Applied { state, next_waits })
            }
            ActionOutcome::Refused(ActionRefusal::Batch(stale)) => Ok(ChangeOutcome::Stale(stale)),
            ActionOutcome::NotFound => Ok(ChangeOutcome::NotFound),
            other => Err(StoreError::corrupt(format!("an action on a batch was {other:?}"))),
        }
    }
}

/// Does and logs an operator's action. A dry run does the same and is rolled back, so that it shows exactly what would
/// happen. An action on one service does not wait long for a transaction that keeps the service locked.
fn act(store: &Store, action: &OperatorAction) -> Result<ActionOutcome, StoreError> {
    let work = |connection: &mut Connection| {
        let outcome = carry_out(store, connection, action)?;
        if let ActionOutcome::Done(effect) = &outcome {
            record_action(connection, action, effect, store.now())?;
        }
        Ok(outcome)
    };
    let mut connection = store.pools.write()?;
    let lock_limit = action.target.service_id().map(|_| LOCK_LIMIT);
    let outcome = in_transaction(&mut connection, action.dry_run, lock_limit, work);
    drop(connection);
    let outcome = match outcome {
        Err(StoreError::Locked { .. }) if store.dialect().locks_rows() && lock_limit.is_some() => {
            return Ok(ActionOutcome::Refused(ActionRefusal::Locked));
        }
        other => other?,
    };
    if action.dry_run {
        return Ok(outcome);
    }
    if matches!(action.verb, OperatorVerb::Continue | OperatorVerb::EndFollowing) {
        store.free_all_dependents()?;
    }
    Ok(outcome)
}

fn carry_out(
    store: &Store,
    connection: &mut Connection,
    action: &OperatorAction,
) -> Result<ActionOutcome, StoreError> {
    if action.verb.follows_rules() && !store.scheduler.rules_are_known() {
        return Ok(ActionOutcome::Refused(ActionRefusal::UnknownRules));
    }
    match &action.target {
        OperatorTarget::Batch { service_id, batch_id, attempt } => {
            act_on_batch(store, connection, action, service_id, batch_id, *attempt)
        }
        OperatorTarget::Service(service_id) if is_pause(action.verb) => {
            change_pause(connection, action.verb, service_id, store.now())
        }
        OperatorTarget::Service(service_id) if action.verb == OperatorVerb::ReleaseClaim => {
            release_claim(connection, service_id)
        }
        OperatorTarget::AllServices if is_pause(action.verb) => {
            change_pause_of_all(connection, action.verb, store.now())
        }
        OperatorTarget::Instance(instance)
            if matches!(action.verb, OperatorVerb::Drain | OperatorVerb::Resume) =>
        {
            change_drain(connection, action.verb, instance)
        }
        OperatorTarget::Nonces { .. } | OperatorTarget::PaidNonce { .. } => {
            store.scheduler.hooks().act_on_nonces(store, connection, action)
        }
        _ => Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb: action.verb })),
    }
}

fn is_pause(verb: OperatorVerb) -> bool {
    matches!(verb, OperatorVerb::Pause | OperatorVerb::Resume)
}
