//! Carries out what operators ask for: each action is one commit with its row in the log.

use grid_batch_core::{ActionOutcome, ActionRefusal, OperatorAction, OperatorTarget, OperatorVerb};

use super::{
    action_log::record_action,
    batch_actions::act_on_batch,
    drain::change_drain,
    pauses::{change_pause, change_pause_of_all},
    released_claim::release_claim,
};
use crate::sql::{Connection, Store, StoreError};

/// Does it and logs it. A dry run does the same and is rolled back, so that it finds out exactly what would
/// happen.
pub(crate) fn act(store: &Store, action: &OperatorAction) -> Result<ActionOutcome, StoreError> {
    let work = |connection: &mut Connection| {
        let outcome = carry_out(store, connection, action)?;
        if let ActionOutcome::Done(effect) = &outcome {
            record_action(connection, action, effect, store.now())?;
        }
        Ok(outcome)
    };
    let mut connection = store.pools.write()?;
    let outcome = match action.dry_run {
        true => return dry_run(&mut connection, work),
        false => connection.write_transaction(work)?,
    };
    drop(connection);
    if matches!(action.verb, OperatorVerb::Continue | OperatorVerb::EndFollowing) {
        store.free_all_dependents()?;
    }
    Ok(outcome)
}

/// Runs `work` in a transaction that is rolled back.
pub(super) fn dry_run<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let ended = connection.write_transaction(|connection| match work(connection) {
        Ok(found) => Err::<(), _>(RolledBack::Found(found)),
        Err(error) => Err(RolledBack::Failed(error)),
    });
    match ended {
        Err(RolledBack::Found(found)) => Ok(found),
        Err(RolledBack::Failed(error)) => Err(error),
        Ok(()) => Err(StoreError::corrupt("a dry run was committed")),
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
        OperatorTarget::Service(_) | OperatorTarget::AllServices | OperatorTarget::Instance(_) => {
            Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb: action.verb }))
        }
    }
}

fn is_pause(verb: OperatorVerb) -> bool {
    matches!(verb, OperatorVerb::Pause | OperatorVerb::Resume)
}
