//! The differences between the two databases.

use std::{borrow::Cow, time::Duration};

use diesel::{
    ConnectionError,
    result::{DatabaseErrorKind, Error as DieselError},
};

#[cfg(feature = "postgres")]
use super::network::server_settings;
use super::{migrations::RECORDS, namespace::Namespace};

/// One of the two supported databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres,
    /// SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite,
}

impl Dialect {
    /// The clause at the end of a SELECT that locks rows until the end of the transaction, such as
    /// `for update of s skip locked`.
    ///
    /// SQLite needs none: a writing transaction excludes all others from its start.
    pub(crate) fn locking(self, clause: &'static str) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => clause,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "",
        }
    }

    /// The time of the database's clock, which is the only clock by which leases expire.
    ///
    /// PostgreSQL's `now()` is the start of the transaction; after a wait for a lock it would be too
    /// early.
    pub(crate) fn clock(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "cast(unixepoch('subsec') * 1000000 as integer)",
        }
    }

    /// Whether the database may run on a machine with another clock than this process.
    pub(crate) fn has_own_clock(self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
        }
    }

    /// Sets up a new connection.
    pub(crate) fn settings(self, limits: SessionLimits) -> String {
        let needed = self.needed_settings(limits);
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let needed = needed.iter().map(|(name, value)| format!("set {name} = '{value}'; "));
                let needed: String = needed.collect();
                let of_server = server_settings(limits.idle_transaction);
                format!("set client_min_messages = warning; {needed}{of_server}")
            }
            // The log contains the whole page of each random key that a commit writes, so pages are small. The page
            // size can be set only for a new file that has no log yet. The log is copied to the file at 4 MB. Each
            // commit looks at all cached pages, so the cache is small.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let needed =
                    needed.iter().map(|(name, value)| format!("pragma {name} = {value}; "));
                let needed: String = needed.collect();
                format!(
                    "pragma page_size = 1024; {needed}pragma wal_autocheckpoint = 4000;
                     pragma cache_size = -4096"
                )
            }
        }
    }

    /// The settings that the store relies on, even on a connection of another program, with the values that
    /// [`settings_query`](Self::settings_query) returns.
    pub(crate) fn needed_settings(self, limits: SessionLimits) -> Vec<(&'static str, String)> {
        let lock_timeout = milliseconds(limits.lock).to_string();
        match self {
            // Every hot statement looks up a few rows by index. With statistics from when a table was
            // small, the planner would choose a sequential scan and keep it while the table grows. A
            // bitmap scan collects all matching rows before it returns the first.
            //
            // A process that is frozen or cut off in a transaction keeps its locks until the server ends the session.
            #[cfg(feature = "postgres")]
            Self::Postgres => vec![
                ("lock_timeout", lock_timeout),
                ("default_transaction_isolation", "read committed".to_owned()),
                ("jit", "off".to_owned()),
                ("enable_seqscan", "off".to_owned()),
                ("enable_hashjoin", "off".to_owned()),
                ("enable_mergejoin", "off".to_owned()),
                ("enable_bitmapscan", "off".to_owned()),
                (
                    "idle_in_transaction_session_timeout",
                    milliseconds(limits.idle_transaction).to_string(),
                ),
            ],
            // With `synchronous` below FULL (2), the last commits could be lost in a power failure. A frozen process
            // keeps its lock, but no other process claims services.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => vec![
                ("busy_timeout", lock_timeout),
                ("journal_mode", "wal".to_owned()),
                ("synchronous", "2".to_owned()),
                ("foreign_keys", "1".to_owned()),
            ],
        }
    }

    /// A query for the present settings of a connection. It also returns some that are not needed.
    pub(crate) fn settings_query(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "-- session_settings\n select name, setting from pg_settings",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                "-- session_settings
                 select 'busy_timeout' as name, cast(timeout as text) as setting from pragma_busy_timeout
                 union all select 'journal_mode', journal_mode from pragma_journal_mode
                 union all select 'synchronous', cast(synchronous as text) from pragma_synchronous
                 union all select 'foreign_keys', cast(foreign_keys as text) from pragma_foreign_keys"
            }
        }
    }

    /// A query for the name of the database of a connection, or for its file.
    pub(crate) fn database_name_query(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "-- database_name\n select current_database()::text as name",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                "-- database_name
                 select file as name from pragma_database_list where name = 'main'"
            }
        }
    }

    /// The settings of a new connection that only reads.
    pub(crate) fn read_settings(self, limits: SessionLimits) -> String {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                format!("{}; set default_transaction_read_only = on", self.settings(limits))
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let lock_timeout = milliseconds(limits.lock);
                format!("pragma busy_timeout = {lock_timeout}; {SMALL_CACHE}")
            }
        }
    }

    /// The setting of a connection whose cache serves only one transaction: each commit of another connection empties
    /// the cache of SQLite.
    pub(crate) fn small_cache(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => None,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Some(SMALL_CACHE),
        }
    }

    /// The id of the present transaction, by a function that also exists in PostgreSQL 12. `None`: writers exclude each
    /// other, so commits become visible in the order of their numbers.
    pub(crate) fn transaction_id(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some("txid_current()"),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// The first transaction id from which on changes are not visible, except for a few running transactions before it.
    pub(crate) fn first_invisible_transaction(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some("txid_snapshot_xmax(txid_current_snapshot())"),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// A query for the transactions whose changes are visible, and for the last visible group of events.
    pub(crate) fn snapshot_query(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some(
                "-- event_snapshot
                 select txid_current_snapshot()::text as snapshot,
                     (select coalesce(max(g.seq), 0) from event_groups g) as last_visible",
            ),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// The name of a table of this namespace in the catalog.
    pub(crate) fn name_in_catalog(self, namespace: &Namespace, table: &str) -> String {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => match namespace.name() {
                Some(schema) => format!("\"{schema}\".{table}"),
                None => table.to_owned(),
            },
            #[cfg(feature = "sqlite")]
            Self::Sqlite => format!("{}{table}", namespace.prefix()),
        }
    }

    /// Creates the schema of a namespace if it does not exist. A user without the right to create schemas can still use
    /// an existing one.
    pub(crate) fn create_schema(self, namespace: &Namespace) -> Option<String> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => namespace.name().map(|schema| {
                format!(
                    "do $$ begin\n    \
                     if to_regnamespace('{schema}') is null then create schema \"{schema}\"; end if;\n\
                     end $$;\n"
                )
            }),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// The type of a column with names that are compared bytewise.
    pub(crate) fn name_type(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "text collate \"C\"",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "text",
        }
    }

    /// A query for whether the catalog has a table.
    pub(crate) fn has_table_query(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                "-- has_table\n select (to_regclass(?) is not null)::int::bigint as found"
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                "-- has_table
                 select count(*) as found from sqlite_schema where type = 'table' and name = ?"
            }
        }
    }

    /// A query for the objects of the schema: the table, the column, index or foreign key, and whether it restricts
    /// what can be stored. Expressions and conditions are left out, because servers print them differently.
    pub(crate) fn schema_objects_query(self, namespace: &Namespace) -> String {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let [record, earlier_record] =
                    RECORDS.map(|table| self.name_in_catalog(namespace, table));
                format!("-- schema_objects
                 with t as (
                     select c.oid, c.relname::text as name from pg_class c
                     where c.relkind = 'r' and c.relname not in ('{}', '{}')
                         and c.relnamespace = (select m.relnamespace from pg_class m
                             where m.oid = coalesce(to_regclass('{record}'), to_regclass('{earlier_record}'))))
                 select t.name as table_name,
                     concat('column ', a.attname, ' ', format_type(a.atttypid, a.atttypmod),
                         case when a.attnotnull then ' not null' end,
                         case when a.atthasdef then ' default' end) as object,
                     a.attnotnull and not a.atthasdef and a.attidentity = '' as restricts
                 from t join pg_attribute a on a.attrelid = t.oid
                 where a.attnum > 0 and not a.attisdropped
                 union all
                 select t.name,
                     concat(case when x.indisunique then 'unique ' end, 'index ', i.relname, ' (', (
                         select string_agg(coalesce(a.attname, 'expression'), ', ' order by k.place)
                         from unnest(x.indkey::int2[]) with ordinality as k (number, place)
                         left join pg_attribute a on a.attrelid = t.oid and a.attnum = k.number
                             and k.number > 0
                     ), ')', case when x.indpred is not null then ' where' end),
                     x.indisunique
                 from t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid
                 union all
                 select t.name,
                     concat('foreign key (', (
                         select string_agg(a.attname, ', ' order by k.place)
                         from unnest(f.conkey) with ordinality as k (number, place)
                         join pg_attribute a on a.attrelid = t.oid and a.attnum = k.number
                     ), ') references ', r.relname),
                     true
                 from t join pg_constraint f on f.conrelid = t.oid and f.contype = 'f'
                 join pg_class r on r.oid = f.confrelid",
                    RECORDS[0], RECORDS[1]
                )
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let prefix = namespace.prefix();
                let start = prefix.len() + 1;
                let [record, earlier_record] =
                    RECORDS.map(|table| self.name_in_catalog(namespace, table));
                format!("-- schema_objects
                 with t as (
                     select l.name, substr(l.name, {start}) as table_name from pragma_table_list l
                     where l.schema = 'main' and l.type = 'table'
                         and substr(l.name, 1, {start} - 1) = '{prefix}'
                         and l.name not like 'sqlite\\_%' escape '\\'
                         and l.name not in ('{record}', '{earlier_record}'))
                 select t.table_name,
                     'column ' || c.name || ' ' || lower(c.type)
                         || case when c.\"notnull\" then ' not null' else '' end
                         || case when c.dflt_value is not null then ' default' else '' end as object,
                     c.\"notnull\" and c.dflt_value is null as restricts
                 from t join pragma_table_xinfo(t.name) c
                 union all
                 select t.table_name,
                     case when i.\"unique\" then 'unique ' else '' end || 'index '
                         || case when i.origin = 'c' then substr(i.name, {start}) || ' ' else '' end || '(' || (
                         select group_concat(coalesce(k.name, 'expression'), ', ' order by k.seqno)
                         from pragma_index_info(i.name) k)
                         || ')' || case when i.partial then ' where' else '' end,
                     i.\"unique\"
                 from t join pragma_index_list(t.name) i
                 union all
                 select t.table_name,
                     'foreign key (' || group_concat(f.\"from\", ', ' order by f.seq) || ') references '
                         || substr(f.\"table\", {start}),
                     true
                 from t join pragma_foreign_key_list(t.name) f
                 group by t.name, f.id"
                )
            }
        }
    }

    /// The result of [`schema_objects_query`](Self::schema_objects_query) for a database of this release.
    pub(crate) fn schema_objects(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => include_str!("../../migrations/postgres.objects"),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => include_str!("../../migrations/sqlite.objects"),
        }
    }

    /// A query for the journal mode, and the expected mode.
    pub(crate) fn journal_mode_query(self) -> Option<(&'static str, &'static str)> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => None,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                Some(("-- journal_mode\n select journal_mode from pragma_journal_mode", "wal"))
            }
        }
    }

    /// A query for the server that has the database, as `DatabaseServer` in `restored` reads it. `None`:
    /// the database is a file.
    ///
    /// The timeline is that of the write-ahead log: `pg_control_checkpoint()` shows the old one for some
    /// time after a promotion. It is not known during recovery. After a recovery to a point in time, the
    /// setting that named it usually remains.
    pub(crate) fn database_server_query(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some(
                "-- database_server
                 select concat_ws('/',
                         (select system_identifier from pg_control_system()),
                         (select oid from pg_database where datname = current_database()),
                         (select d.tableoid from database_state d where d.id = 1)) as id,
                     case when pg_is_in_recovery() then null
                         else pg_walfile_name(pg_current_wal_lsn()) end as wal_file,
                     current_setting('synchronous_standby_names') <> ''
                         and current_setting('synchronous_commit') not in ('local', 'off')
                         as synchronous,
                     concat(current_setting('recovery_target', true),
                         current_setting('recovery_target_lsn', true),
                         current_setting('recovery_target_name', true),
                         current_setting('recovery_target_time', true),
                         current_setting('recovery_target_xid', true)) <> '' as recovered_to_target",
            ),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// A query for the settings that decide whether a commit can be lost.
    pub(crate) fn durability_query(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => Some(
                "-- durability
                 select current_setting('synchronous_commit') as synchronous_commit,
                     current_setting('fsync') as fsync,
                     current_setting('full_page_writes') as full_page_writes,
                     current_setting('synchronous_standby_names') as synchronous_standby_names,
                     (select count(*) from pg_stat_replication) as standbys",
            ),
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// Starts a writing transaction.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "begin",
            // A transaction that reads first cannot write after another transaction has written.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "begin immediate",
        }
    }

    /// Starts a writing transaction that waits for each lock at most this long.
    ///
    /// On SQLite, a transaction waits for the whole file rather than for a part of it.
    pub(crate) fn begin_with_lock_limit(self, limit: Duration) -> Cow<'static, str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                format!("begin; set local lock_timeout = {}", milliseconds(limit)).into()
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => self.begin().into(),
        }
    }

    /// Whether the database is a file, which may be replaced with an earlier copy.
    pub(crate) fn is_file(self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => false,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => true,
        }
    }

    /// Whether transactions lock rows rather than the whole database.
    pub(crate) fn locks_rows(self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
        }
    }

    /// Starts a transaction that sees the database at one moment.
    pub(crate) fn begin_snapshot(self) -> &'static str {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => "begin isolation level repeatable read, read only",
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "begin",
        }
    }

    /// Excludes other migrations of the same tables until the transaction ends.
    pub(crate) fn lock_schema(self, namespace: &Namespace) -> Option<String> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let key = match namespace.name() {
                    Some(schema) => format!("hashtextextended('{schema}', 7310294857201)"),
                    None => "7310294857201".to_owned(),
                };
                Some(format!("select pg_advisory_xact_lock({key})"))
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => None,
        }
    }

    /// The number of connections that may write at the same time.
    pub(crate) fn writers(self, connections: u32) -> u32 {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres => connections,
            // A queue for one connection is fairer than SQLite's retries.
            #[cfg(feature = "sqlite")]
            Self::Sqlite => 1,
        }
    }
}

#[cfg(feature = "sqlite")]
const SMALL_CACHE: &str = "pragma cache_size = -1024";

/// How long a session of the database may wait or be idle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    /// The longest wait for a lock.
    pub(crate) lock: Duration,
    /// The server ends a session that is idle in a transaction, or cut off, for this long.
    pub(crate) idle_transaction: Duration,
}

fn milliseconds(duration: Duration) -> u128 {
    duration.as_millis().clamp(1, 1 << 30)
}

/// Whether a later attempt to connect may succeed although nothing else is changed. libpq reports the
/// server's refusal by its English text only.
pub(crate) fn may_connect_later(error: &ConnectionError, is_file: bool) -> bool {
    const REFUSALS: [&str; 12] = [
        "authentication failed",
        "no password supplied",
        "no pg_hba.conf entry",
        "\" does not exist",
        "is not permitted to log in",
        // About TLS, by libpq itself or by the server.
        "certificate verify failed",
        "does not match host name",
        "certificate file \"",
        "private key file \"",
        "requires a valid client certificate",
        "SSL was required",
        "SSL support is not compiled in",
    ];
    match error {
        ConnectionError::BadConnection(message) => {
            !is_file && !REFUSALS.iter().any(|refusal| message.contains(refusal))
        }
        ConnectionError::CouldntSetupConfiguration(error) => {
            matches!(classify(error), Some(Failure::Locked | Failure::Unavailable))
        }
        _ => false,
    }
}

/// What a database error means for the caller, if this is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Locked,
    ReadOnly,
    Full,
    Unavailable,
    SharedSessions,
}

/// Classifies an error by Diesel's kind, or else by its message.
///
/// Diesel maps a few SQLSTATEs to kinds and hides the rest: `DatabaseErrorInformation` has no
/// SQLSTATE, and SQLite errors have no kind but those of constraints. So lock timeouts (55P03),
/// deadlocks (40P01), a full disk (53100) and a server that shuts down (57P01) are distinguished by
/// their English messages. A server with other `lc_messages` reports these as `Refused`.
pub(crate) fn classify(error: &DieselError) -> Option<Failure> {
    let DieselError::DatabaseError(kind, information) = error else { return None };
    match kind {
        DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => {
            Some(Failure::Unavailable)
        }
        DatabaseErrorKind::SerializationFailure => Some(Failure::Locked),
        DatabaseErrorKind::ReadOnlyTransaction => Some(Failure::ReadOnly),
        DatabaseErrorKind::UniqueViolation
        | DatabaseErrorKind::ForeignKeyViolation
        | DatabaseErrorKind::NotNullViolation
        | DatabaseErrorKind::CheckViolation => None,
        _ => classify_message(information.message()),
    }
}

fn classify_message(message: &str) -> Option<Failure> {
    const MESSAGES: &[(Failure, &[&str])] = &[
        (
            Failure::Locked,
            &[
                "database is locked",
                "database table is locked",
                "deadlock detected",
                "lock timeout",
                "statement timeout",
            ],
        ),
        // The names of prepared statements are never used twice in a session of our own.
        (Failure::SharedSessions, &["prepared statement \""]),
        (Failure::ReadOnly, &["readonly database", "read-only transaction"]),
        (Failure::Full, &["disk is full", "No space left on device", "could not extend file"]),
        (
            Failure::Unavailable,
            &[
                "server closed the connection",
                "terminating connection",
                "connection to server",
                "the database system is",
                "disk I/O error",
                "unable to open database file",
            ],
        ),
    ];
    let (failure, _) =
        MESSAGES.iter().find(|(_, texts)| texts.iter().any(|text| message.contains(text)))?;
    Some(*failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_classified() {
        for (message, failure) in [
            ("database is locked", Some(Failure::Locked)),
            ("canceling statement due to lock timeout", Some(Failure::Locked)),
            ("attempt to write a readonly database", Some(Failure::ReadOnly)),
            ("could not extend file \"base/5/1\": No space left on device", Some(Failure::Full)),
            ("database or disk is full", Some(Failure::Full)),
            ("terminating connection due to administrator command", Some(Failure::Unavailable)),
            ("prepared statement \"s0\" already exists", Some(Failure::SharedSessions)),
            ("syntax error at or near", None),
        ] {
            assert_eq!(classify_message(message), failure, "{message}");
        }
    }
}
