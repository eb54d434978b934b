//! Everything in which the two databases differ, and nothing else.

use std::time::Duration;

use crate::{
    StoreError,
    connection::Connection,
    statement::{Column, Rows},
};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "sqlite")]
    Sqlite,
}

impl Dialect {
    /// What stands at the end of a SELECT that locks rows to the end of the transaction, as
    /// `for update of s skip locked`.
    ///
    /// On SQLite a transaction that writes is alone with the database from its beginning.
    pub(crate) fn locking(self, clause: &'static str) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => clause,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "",
        }
    }

    /// What time it is by the database's own clock: the only one that says whether an instance lives.
    ///
    /// It is read when a row is looked at. `now()` would be the beginning of the transaction, and
    /// what has waited since then would be taken for younger than it is.
    pub(crate) fn clock(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "cast(unixepoch('subsec') * 1000000 as integer)",
        }
    }

    /// A group of rows as a table of the statement.
    ///
    /// PostgreSQL is sent one array for each column, and the statement once. SQLite has no arrays
    /// and no round trips: it runs the statement once for each row.
    pub(crate) fn table(self, rows: &Rows<'_>) -> String {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let array = |column: &Column<'_>| match column.pg_type() {
                    // Sorted as the tables are, whatever the database's own language.
                    "text" => "?::text[] collate \"C\"".to_owned(),
                    other => format!("?::{other}[]"),
                };
                let arrays: Vec<_> = rows.columns().map(array).collect();
                let names: Vec<_> = rows.columns().map(|c| c.name()).collect();
                format!("unnest({}) as x({})", arrays.join(", "), names.join(", "))
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let values: Vec<_> = rows.columns().map(|c| format!("? as {}", c.name())).collect();
                format!("(select {}) as x", values.join(", "))
            }
        }
    }

    /// What a new connection is told first; it waits for others no longer than `patience`.
    pub(crate) fn greeting(self, patience: Duration) -> String {
        let patience = patience.as_millis().clamp(1, 1 << 30);
        match self {
            // Every statement on a batch's way looks up a handful of rows by index. A planner that
            // last saw a table when it was small would scan it, and go on doing so while it grows. A
            // bitmap finds all rows before it gives the first, where a step needs a few.
            #[cfg(feature = "postgres")]
            Self::Postgres => format!(
                "set client_min_messages = warning; set lock_timeout = {patience};
                 set default_transaction_isolation = 'read committed'; set jit = off;
                 set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
                 set enable_bitmapscan = off"
            ),
            // FULL: with NORMAL the last commits may be lost when the power fails.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => format!(
                "pragma busy_timeout = {patience}; pragma journal_mode = wal;
                 pragma synchronous = full; pragma foreign_keys = on; pragma cache_size = -32768"
            ),
        }
    }

    /// What a connection that was greeted must answer to `journal_mode`, where it matters: on some
    /// file systems SQLite keeps no write-ahead log, and says so only when asked.
    pub(crate) fn journal_mode(self) -> Option<(&'static str, &'static str)> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => None,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Some(("select journal_mode as answer from pragma_journal_mode", "wal")),
        }
    }

    /// How a transaction that writes begins.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "begin",
            // A transaction that first reads and then writes may find that another has written.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "begin immediate",
        }
    }

    /// How a transaction begins that reads everything as it is at one moment.
    pub(crate) fn begin_reading(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "begin isolation level repeatable read, read only",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "begin",
        }
    }

    /// Keeps other instances from migrating until the transaction ends.
    pub(crate) fn lock_schema(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some("select pg_advisory_xact_lock(7310294857201)"),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// How many connections may write at the same time.
    pub(crate) fn writers(self, connections: u32) -> u32 {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => connections,
            // One queue of our own is fairer than SQLite's retries.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => 1,
        }
    }
}

impl Connection {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }
}

pub(crate) fn is_locked(error: &diesel::result::Error) -> bool {
    says(&error.to_string(), LOCKED)
}

const LOCKED: &[&str] = &[
    "database is locked",
    "database table is locked",
    "deadlock detected",
    "lock timeout",
    "statement timeout",
];

fn says(message: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| message.contains(part))
}

/// What Diesel does not tell apart by kind.
pub(crate) fn classify(message: String) -> Option<StoreError> {
    const READ_ONLY: &[&str] = &["readonly database", "read-only transaction"];
    const FULL: &[&str] = &["disk is full", "No space left on device", "could not extend file"];
    const UNAVAILABLE: &[&str] = &[
        "server closed the connection",
        "terminating connection",
        "connection to server",
        "the database system is",
        "disk I/O error",
        "unable to open database file",
    ];
    if says(&message, LOCKED) {
        Some(StoreError::Locked { message })
    } else if says(&message, READ_ONLY) {
        Some(StoreError::ReadOnly { message })
    } else if says(&message, FULL) {
        Some(StoreError::Full { message })
    } else if says(&message, UNAVAILABLE) {
        Some(StoreError::Unavailable { message })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_databases_say_is_told_apart() {
        let classified = |message: &str| classify(message.to_owned());
        let locked = classified("database is locked");
        assert!(matches!(locked, Some(StoreError::Locked { .. })));
        let timeout = classified("canceling statement due to lock timeout");
        assert!(matches!(timeout, Some(StoreError::Locked { .. })));
        let read_only = classified("attempt to write a readonly database");
        assert!(matches!(read_only, Some(StoreError::ReadOnly { .. })));
        let full = classified("could not extend file \"base/5/1\": No space left on device");
        assert!(matches!(full, Some(StoreError::Full { .. })));
        let full = classified("database or disk is full");
        assert!(matches!(full, Some(StoreError::Full { .. })));
        let gone = classified("terminating connection due to administrator command");
        assert!(matches!(gone, Some(StoreError::Unavailable { .. })));
        assert!(classified("syntax error at or near").is_none());
    }
}
