use super::server::DatabaseServer;
use crate::sql::{Connection, Rows, Statement, StoreError, last_seen::Seen, result_row};

result_row! {
    /// What the database knows about itself.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct DatabaseState {
        /// The server that it was on.
        pub(super) server: Option<String>,
        pub(super) timeline: Option<i64>,
        /// Whether commits waited for a standby.
        pub(super) synchronous: bool,
        pub(super) registrations: i64,
        pub(super) restored_at: Option<i64>,
        pub(super) restored_reason: Option<String>,
        /// How often the instance of this process has renewed its lease, if it has a row.
        pub(super) renewals: Option<i64>,
        /// The present time of the database.
        pub(super) now: i64,
    }
}

impl DatabaseState {
    pub(super) fn read(connection: &mut Connection, seen: &Seen) -> Result<Self, StoreError> {
        Self::load(connection, seen, "-- database_state", "")
    }

    /// Locks the state until the end of the transaction. If several instances notice the same, one acts and the others
    /// find it done.
    pub(super) fn lock(connection: &mut Connection, seen: &Seen) -> Result<Self, StoreError> {
        let lock = connection.dialect().locking("for update of d");
        Self::load(connection, seen, "-- lock_database_state", lock)
    }

    fn load(
        connection: &mut Connection,
        seen: &Seen,
        name: &str,
        lock: &str,
    ) -> Result<Self, StoreError> {
        let clock = connection.dialect().clock();
        let instance = seen.instance.as_ref().map_or("", |(id, _)| id.as_str());
        let statement = Statement::new(format!(
            "{name}
                 select d.server, d.timeline, d.synchronous, d.registrations, d.restored_at,
                     d.restored_reason,
                     (select i.renewals from instances i where i.instance_id = ?) as renewals,
                     {clock} as now
                 from database_state d where d.id = 1 {lock}"
        ))
        .text(instance);
        let rows: Vec<Self> = connection.load(&statement)?;
        rows.into_iter().next().ok_or_else(|| StoreError::corrupt("database_state has no row"))
    }

    /// Whether open batches were put in doubt since this process last checked.
    pub(super) fn is_restored_since(&self, seen: &Seen) -> bool {
        self.restored_at > seen.restored_at
    }

    /// The present state in the form of what this process has seen.
    pub(super) fn as_seen(&self, seen: &Seen) -> Seen {
        let instance = seen.instance.as_ref();
        Seen {
            instance: instance.map(|(id, known)| (id.clone(), self.renewals.unwrap_or(*known))),
            registrations: self.registrations,
            restored_at: self.restored_at,
        }
    }
}

/// Records the server that the database is on now.
pub(super) fn record_server(
    connection: &mut Connection,
    server: &DatabaseServer,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- record_server
         update database_state as d
         set server = x.server, timeline = x.timeline, synchronous = x.synchronous
         from {x} where d.id = 1",
        Rows::default()
            .text("server", [server.id.as_str()])
            .long("timeline", [server.timeline])
            .bool("synchronous", [server.synchronous]),
    )
}
