use std::sync::Arc;

use grid_batch_core::Clock;
use log::{error, info, warn};

use super::{
    mark::{OpenBatchesInDoubt, mark},
    server::DatabaseServer,
    state::{DatabaseState, record_server},
};
use crate::sql::{
    Connection, EventSink, Store, StoreError,
    last_seen::{LastSeen, Seen},
};

/// The result of checking the database.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ServerFinding {
    Unchanged,
    /// The server, or whether commits wait for a standby, has changed and must be recorded.
    Moved,
    /// The latest commits may be lost, for this reason.
    Restored(String),
}

/// Checks the database of an opened store, and from now on each new connection before it is used.
pub(crate) fn checked(store: Store) -> Result<Store, StoreError> {
    check(&mut *store.pools.write()?, &store.last_seen, store.scheduler.events(), store.clock())?;
    let (last_seen, clock) = (Arc::clone(&store.last_seen), store.clock().clone());
    let scheduler = Arc::clone(&store.scheduler);
    store.pools.check_new_connections(move |connection| {
        check(connection, &last_seen, scheduler.events(), &clock)
    });
    Ok(store)
}

/// Checks whether the database may have lost its latest commits. If so, puts every open batch in doubt.
pub(crate) fn check(
    connection: &mut Connection,
    last_seen: &LastSeen,
    sink: &EventSink,
    clock: &dyn Clock,
) -> Result<(), StoreError> {
    let server = DatabaseServer::read(connection)?;
    let seen = last_seen.get();
    let state = DatabaseState::read(connection, &seen)?;
    if examine(&state, server.as_ref(), &seen) == ServerFinding::Unchanged {
        if state.is_restored_since(&seen) {
            log_restored(&state, &seen);
            last_seen.found(state.as_seen(&seen));
        }
        return Ok(());
    }
    let state = connection.write_transaction(|connection| {
        let state = DatabaseState::lock(connection, &seen)?;
        let finding = examine(&state, server.as_ref(), &seen);
        if let ServerFinding::Restored(reason) = &finding {
            let in_doubt = mark(connection, sink, &state, reason, clock.now())?;
            log_loss(reason, in_doubt);
        }
        if let (ServerFinding::Moved | ServerFinding::Restored(_), Some(server)) =
            (&finding, &server)
        {
            record_server(connection, server)?;
            info!(timeline = server.timeline, synchronous = server.synchronous;
                "recorded the server that the database is on");
        }
        DatabaseState::read(connection, &seen)
    })?;
    last_seen.found(state.as_seen(&seen));
    Ok(())
}

fn log_loss(reason: &str, in_doubt: OpenBatchesInDoubt) {
    error!(reason = reason, batches = in_doubt.batches, services = in_doubt.services;
        "the database may have lost its latest commits. Every open batch is in doubt until evidence or \
         an operator decides: see \"A database that goes back\" in docs/operations.md");
}

/// Logs a warning that another process has put open batches in doubt, unless this happened before this process became
/// an instance.
fn log_restored(state: &DatabaseState, seen: &Seen) {
    if seen.instance.is_some() {
        warn!(reason = state.restored_reason.as_deref().unwrap_or_default();
            "the database may have lost its latest commits. Another process has put every open batch in \
             doubt");
    }
}

fn examine(state: &DatabaseState, server: Option<&DatabaseServer>, seen: &Seen) -> ServerFinding {
    if let Some(reason) = missing(state, seen) {
        return ServerFinding::Restored(reason);
    }
    let Some(server) = server else { return ServerFinding::Unchanged };
    let (Some(id), Some(timeline)) = (&state.server, state.timeline) else {
        return ServerFinding::Moved;
    };
    if *id != server.id {
        return ServerFinding::Restored(
            "the database is on another server or was created again".to_owned(),
        );
    }
    if timeline != server.timeline && server.recovered_to_target {
        return ServerFinding::Restored("the server was recovered to a point in time".to_owned());
    }
    if timeline != server.timeline && !state.synchronous {
        let present = server.timeline;
        return ServerFinding::Restored(format!(
            "the server has gone from timeline {timeline} to {present}, and commits did not wait for \
             a standby"
        ));
    }
    if (timeline, state.synchronous) == (server.timeline, server.synchronous) {
        ServerFinding::Unchanged
    } else {
        ServerFinding::Moved
    }
}

/// Why the database is older than the state that this process, or the previous one on the same file, has seen. `None`:
/// it is not older, or open batches were put in doubt since.
fn missing(state: &DatabaseState, seen: &Seen) -> Option<String> {
    if state.is_restored_since(seen) {
        return None;
    }
    if state.registrations < seen.registrations {
        return Some("the database does not have the last registration of an instance".to_owned());
    }
    match (&seen.instance, state.renewals) {
        (Some((_, known)), Some(renewals)) if renewals < *known => {
            Some("the database does not have the last renewals of an instance".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> DatabaseServer {
        DatabaseServer {
            id: "1/2/3".to_owned(),
            timeline: 4,
            synchronous: false,
            recovered_to_target: false,
        }
    }

    fn state() -> DatabaseState {
        DatabaseState {
            server: Some(server().id),
            timeline: Some(4),
            synchronous: false,
            registrations: 5,
            restored_at: Some(6),
            restored_reason: Some("a standby was promoted".to_owned()),
            renewals: Some(7),
            now: 8,
        }
    }

    fn seen() -> Seen {
        state().as_seen(&Seen { instance: Some(("north".to_owned(), 0)), ..Seen::default() })
    }

    fn is_restored(finding: &ServerFinding) -> bool {
        matches!(finding, ServerFinding::Restored(_))
    }

    #[test]
    fn server_decides_what_a_new_timeline_means() {
        use ServerFinding::{Moved, Unchanged};
        let synchronous = DatabaseState { synchronous: true, ..state() };
        let promoted = DatabaseServer { timeline: 5, ..server() };
        assert_eq!(examine(&state(), Some(&server()), &seen()), Unchanged);
        assert_eq!(examine(&state(), None, &seen()), Unchanged);
        let first_start = DatabaseState { server: None, timeline: None, ..state() };
        assert_eq!(examine(&first_start, Some(&server()), &seen()), Moved);
        assert_eq!(examine(&synchronous, Some(&server()), &seen()), Moved);
        assert_eq!(examine(&synchronous, Some(&promoted), &seen()), Moved);

        let recovered = DatabaseServer { recovered_to_target: true, ..promoted.clone() };
        let copied = DatabaseServer { id: "1/9/3".to_owned(), ..server() };
        for (state, server) in [
            (state(), &promoted),
            (synchronous.clone(), &recovered),
            (state(), &copied),
            (synchronous, &copied),
        ] {
            assert!(is_restored(&examine(&state, Some(server), &seen())), "{state:?} {server:?}");
        }
        // The setting remains after a recovery whose consequence was recorded.
        let later = DatabaseServer { recovered_to_target: true, ..server() };
        assert_eq!(examine(&state(), Some(&later), &seen()), Unchanged);
    }

    #[test]
    fn smaller_numbers_than_this_process_saw_show_a_loss() {
        let fewer_renewals = DatabaseState { renewals: Some(6), ..state() };
        let fewer_registrations = DatabaseState { registrations: 4, renewals: None, ..state() };
        for lost in [fewer_renewals, fewer_registrations] {
            assert!(is_restored(&examine(&lost, None, &seen())), "{lost:?}");
            let dealt_with = DatabaseState { restored_at: Some(7), ..lost };
            assert_eq!(examine(&dealt_with, None, &seen()), ServerFinding::Unchanged);
        }
        // Another process may have removed the instance.
        let removed = DatabaseState { renewals: None, ..state() };
        assert_eq!(examine(&removed, None, &seen()), ServerFinding::Unchanged);
    }
}
