//! The database of the server, and what it has been asked to do.

mod plain;
mod postgres;
mod sqlite;

use std::{io, path::Path, str::FromStr, time::Duration};

use self::{postgres::Postgres, sqlite::Sqlite};
use crate::requests::Request;

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A file; its CPU time is that of the server.
    Sqlite,
    /// A server of its own.
    Postgres,
}

impl DatabaseKind {
    /// Its name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

impl FromStr for DatabaseKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err(format!("{text} is neither sqlite nor postgres")),
        }
    }
}

/// What a database has done since it was started. What its kind does not count is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseUsage {
    /// The CPU time of its processes.
    pub cpu: Option<Duration>,
    /// Transactions; on SQLite only those that have written.
    pub commits: u64,
    /// Statements.
    pub statements: Option<u64>,
    /// Rows that statements have returned or changed.
    pub rows: Option<u64>,
    /// Bytes of its write-ahead log.
    pub log_bytes: u64,
}

impl DatabaseUsage {
    /// What was used since another reading.
    pub fn since(self, before: Self) -> Self {
        fn difference<T: std::ops::Sub<Output = T>>(now: Option<T>, then: Option<T>) -> Option<T> {
            Some(now? - then?)
        }
        Self {
            cpu: difference(self.cpu, before.cpu),
            commits: self.commits.saturating_sub(before.commits),
            statements: difference(self.statements, before.statements),
            rows: difference(self.rows, before.rows),
            log_bytes: self.log_bytes.saturating_sub(before.log_bytes),
        }
    }
}

/// A statement of the server and how often it was executed.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Its text, with parameters.
    pub text: String,
    /// Executions.
    pub calls: i64,
    /// Rows that it has returned or changed.
    pub rows: i64,
    /// The time of all executions, in milliseconds.
    pub milliseconds: f64,
}

/// A database that was created for a run.
pub enum Database {
    /// A file in the directory of the run.
    Sqlite(Sqlite),
    /// A PostgreSQL server that was started for the run.
    Postgres(Box<Postgres>),
}

impl Database {
    /// Creates an empty database.
    pub fn create(kind: DatabaseKind, directory: &Path) -> Self {
        match kind {
            DatabaseKind::Sqlite => Self::Sqlite(Sqlite::new(directory)),
            DatabaseKind::Postgres => Self::Postgres(Box::new(Postgres::start())),
        }
    }

    /// The URL for the server.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(sqlite) => sqlite.url(),
            Self::Postgres(postgres) => postgres.url().to_owned(),
        }
    }

    /// What it has done until now.
    pub fn usage(&mut self) -> DatabaseUsage {
        match self {
            Self::Sqlite(sqlite) => sqlite.usage(),
            Self::Postgres(postgres) => postgres.usage(),
        }
    }

    /// The number of batches that have not ended.
    pub fn open_batches(&mut self) -> io::Result<i64> {
        match self {
            Self::Sqlite(sqlite) => sqlite.open_batches(),
            Self::Postgres(postgres) => postgres.open_batches(),
        }
    }

    /// Inserts the rows that a server inserts for a group of new batches, in one transaction and without
    /// keeping an order or looking for duplicates. `first` is the number of the first row.
    pub fn insert_plainly(&mut self, first: i64, group: &[Request]) {
        match self {
            Self::Sqlite(sqlite) => plain::insert_sqlite(sqlite.writer(), first, group),
            Self::Postgres(postgres) => plain::insert_postgres(postgres.connection(), first, group),
        }
    }

    /// Starts to count statements from zero.
    pub fn reset_statements(&mut self) {
        if let Self::Postgres(postgres) = self {
            postgres.reset_statements();
        }
    }

    /// The statements that were counted, by time; none on SQLite.
    pub fn statements(&mut self) -> Vec<Statement> {
        match self {
            Self::Sqlite(_) => Vec::new(),
            Self::Postgres(postgres) => postgres.statements(),
        }
    }
}
