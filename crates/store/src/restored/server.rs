use std::sync::Once;

use log::warn;

use crate::sql::{Connection, Statement, StoreError, result_row};

/// The server that a database is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DatabaseServer {
    /// Its system identifier and the oids of the database and of a table. They differ in a copy.
    pub(super) id: String,
    /// The timeline of its write-ahead log. Each promotion and each recovery starts a new one.
    pub(super) timeline: i64,
    /// Whether commits wait for a standby.
    pub(super) synchronous: bool,
    /// Whether it was recovered to a point in time.
    pub(super) recovered_to_target: bool,
}

impl DatabaseServer {
    /// The server of this connection; `None` for a file, or if the server does not report it.
    pub(super) fn read(connection: &mut Connection) -> Result<Option<Self>, StoreError> {
        let Some(query) = connection.dialect().database_server_query() else { return Ok(None) };
        let rows = connection.load::<ServerRow>(&Statement::new(query));
        match rows {
            Ok(rows) => rows.into_iter().next().map(ServerRow::into_server).transpose(),
            Err(StoreError::Refused(error)) => {
                static WARNED: Once = Once::new();
                WARNED.call_once(|| warn!(error:% = error;
                    "the server does not report which one it is; it will not be noticed that a standby \
                     was promoted or a backup restored"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

result_row! {
    struct ServerRow {
        id: String,
        wal_file: Option<String>,
        synchronous: bool,
        recovered_to_target: bool,
    }
}

impl ServerRow {
    fn into_server(self) -> Result<DatabaseServer, StoreError> {
        let Self { id, wal_file, synchronous, recovered_to_target } = self;
        let Some(wal_file) = wal_file else {
            let source = "the server is a standby; it must be promoted first".into();
            return Err(StoreError::ReadOnly { source });
        };
        // The name of a file of the log starts with the timeline, in eight hexadecimal digits.
        let timeline = wal_file.get(..8).map(|digits| i64::from_str_radix(digits, 16));
        match timeline {
            Some(Ok(timeline)) => {
                Ok(DatabaseServer { id, timeline, synchronous, recovered_to_target })
            }
            _ => Err(StoreError::corrupt(format!("the write-ahead log has a file {wal_file:?}"))),
        }
    }
}
