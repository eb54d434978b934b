//! Makes changes together with their rows in the action log, in one commit.

use std::time::Duration;

use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};

use super::record_actions;
use crate::sql::{Connection, Store, StoreError};

/// The answer to a request, and the rows for the log: none if nothing changed.
pub(crate) struct Logged<T> {
    pub(crate) answer: T,
    pub(crate) changes: Vec<(OperatorTarget, ActionEffect)>,
}

impl<T> Logged<T> {
    /// Nothing changed.
    pub(crate) fn unchanged(answer: T) -> Self {
        Self { answer, changes: Vec::new() }
    }

    /// One thing changed.
    pub(crate) fn changed(answer: T, target: OperatorTarget, effect: ActionEffect) -> Self {
        Self { answer, changes: vec![(target, effect)] }
    }
}

/// Does and logs what an operator requests, in one commit. A dry run is rolled back.
pub(crate) fn logged<T>(
    store: &Store,
    request: &OperatorRequest,
    verb: OperatorVerb,
    lock_limit: Option<Duration>,
    work: impl FnOnce(&mut Connection) -> Result<Logged<T>, StoreError>,
) -> Result<T, StoreError> {
    let action = request.clone().action(verb, OperatorTarget::Database);
    let mut connection = store.pools.write()?;
    in_transaction(&mut connection, request.dry_run, lock_limit, |connection| {
        let Logged { answer, changes } = work(connection)?;
        let done: Vec<_> = changes.iter().map(|(target, effect)| (target, effect)).collect();
        record_actions(connection, &action, &done, store.now())?;
        Ok(answer)
    })
}

/// Runs `work` in a transaction, which is rolled back if it is a dry run.
pub(crate) fn in_transaction<T>(
    connection: &mut Connection,
    is_dry_run: bool,
    lock_limit: Option<Duration>,
    work: impl FnOnce(&mut Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if is_dry_run {
        dry_run(connection, lock_limit, work)
    } else {
        transaction(connection, lock_limit, work)
    }
}

/// Runs `work` in a transaction that is rolled back.
pub(crate) fn dry_run<T>(
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
