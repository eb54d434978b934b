//! Carries out what operators ask for: each action is one commit with its row in the log.

use std::time::Duration;

use grid_batch_core::{ActionOutcome, ActionRefusal, OperatorAction, OperatorTarget, OperatorVerb};

use super::{
    action_log::record_action,
    batch_actions::act_on_batch,
    drain::change_drain,
    pauses::{change_pause, change_pause_of_all},
    released_claim::release_claim,
};
use crate::sql::{Connection, Store, StoreError, groups::LOCK_LIMIT};

/// Does it and logs it. A dry run does the same and is rolled back, so that it finds out exactly what would
/// happen. What is about one service does not wait long for a transaction that keeps the service locked.
pub(crate) fn act(store: &Store, action: &OperatorAction) -> Result<ActionOutcome, StoreError> {
    let work = |connection: &mut Connection| {
        let outcome = carry_out(store, connection, action)?;
        if let ActionOutcome::Done(effect) = &outcome {
            record_action(connection, action, effect, store.now())?;
        }
        Ok(outcome)
    };
    let mut connection = store.pools.write()?;
    let lock_limit = action.target.service_id().map(|_| LOCK_LIMIT);
    let outcome = match action.dry_run {
        true => dry_run(&mut connection, lock_limit, work),
        false => transaction(&mut connection, lock_limit, work),
    };
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

/// Runs `work` in a transaction that is rolled back.
pub(super) fn dry_run<T>(
    connection: &mut Connection,
    lock_limit: Option<Duration>,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let ended = transaction(connection, lock_limit, |connection| match work(connection) {
        Ok(found) => Err::<(), _>(RolledBack::Found(found)),
        Err(error) => Err(RolledBack::Failed(error)),
    });
    match ended {
        Err(RolledBack::Found(found)) => Ok(found),
        Err(RolledBack::Failed(error)) => Err(error),
        Ok(()) => Err(StoreError::corrupt("a dry run was committed")),
    }
}

fn transaction<T, E: From<StoreError>>(
    connection: &mut Connection,
    lock_limit: Option<Duration>,
    work: impl FnOnce(&mut Connection) -> Result<T, E>,
) -> Result<T, E> {
    match lock_limit {
        Some(limit) => connection.transaction_with_lock_limit(limit, work),
        None => connection.write_transaction(work),
    }
}

/// Why a transaction is rolled back.
enum RolledBack<T> {
    Found(T),
    Failed(StoreError),
}

impl<T> From<StoreError> for RolledBack<T> {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

fn carry_out(
    store: &Store,
    connection: &mut Connection,
    action: &OperatorAction,
) -> Result<ActionOutcome, StoreError> {
    match &action.target {
        OperatorTarget::Batch { service_id, batch_id, attempt } => {
            act_on_batch(store, connection, action, (service_id, batch_id, *attempt))
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
        OperatorTarget::Nonces { .. } => {
            store.scheduler.hooks().act_on_nonces(store, connection, action)
        }
        OperatorTarget::Service(_) | OperatorTarget::AllServices | OperatorTarget::Instance(_) => {
            Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb: action.verb }))
        }
    }
}

fn is_pause(verb: OperatorVerb) -> bool {
    matches!(verb, OperatorVerb::Pause | OperatorVerb::Resume)
}
