//! A connection of a program, on which it has begun a transaction.

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
#[cfg(feature = "sqlite")]
use diesel::sqlite::SqliteConnection;
use diesel::{
    QueryResult,
    connection::{AnsiTransactionManager, TransactionManager},
};

use super::{
    Connection, Store, StoreError,
    connection::{Session, on_either},
};

/// A connection of a program to the database of a store, on which it has begun a transaction.
pub enum ProgramConnection<'c> {
    /// A connection to PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(&'c mut PgConnection),
    /// A connection to the file of SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(&'c mut SqliteConnection),
}

#[cfg(feature = "postgres")]
impl<'c> From<&'c mut PgConnection> for ProgramConnection<'c> {
    fn from(connection: &'c mut PgConnection) -> Self {
        Self::Postgres(connection)
    }
}

#[cfg(feature = "sqlite")]
impl<'c> From<&'c mut SqliteConnection> for ProgramConnection<'c> {
    fn from(connection: &'c mut SqliteConnection) -> Self {
        Self::Sqlite(connection)
    }
}

impl<'c> ProgramConnection<'c> {
    /// The connection as the store uses it, if it is to a database of the same kind and in a transaction.
    pub(crate) fn for_store(self, store: &Store) -> Result<Connection<'c>, StoreError> {
        let session = match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(connection) => Session::Postgres(Box::new(connection)),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(connection) => Session::Sqlite(Box::new(connection)),
        };
        let mut connection = Connection::new(session, store.pools.namespace().clone());
        if connection.dialect() != store.dialect() {
            let problem = "the connection is to a database of another kind";
            return Err(StoreError::ProgramTransaction { problem });
        }
        if !connection.is_in_transaction()? {
            let problem = "no transaction was begun on the connection";
            return Err(StoreError::ProgramTransaction { problem });
        }
        Ok(connection)
    }
}

impl Connection<'_> {
    fn is_in_transaction(&mut self) -> QueryResult<bool> {
        let depth = on_either!(self, inner => {
            AnsiTransactionManager::transaction_manager_status_mut(inner).transaction_depth()
        })?;
        Ok(depth.is_some())
    }
}
