//! Opening a database, and what is done to one that no server uses.

use std::sync::Arc;

use crate::{
    DatabaseUrl, OpenBatchesInDoubt, Store, StoreError, StoreOptions, restored,
    sql::{
        Connection, RulesOf,
        file_lock::FileLock,
        migrations::{self, SchemaVersion},
        program_pool::ProgramPool,
        url::Access,
    },
};

/// Locks an SQLite file, which must exist, so that no process works on it meanwhile.
fn stopped_file(
    url: &DatabaseUrl,
    even_if_running: bool,
) -> Result<Option<Arc<FileLock>>, StoreError> {
    url.with_access(Access::Existing).check_exists()?;
    match even_if_running {
        true => Ok(None),
        false => FileLock::acquire(url),
    }
}

impl Store {
    /// Opens the database and brings its schema up to date. An SQLite file that does not exist is
    /// created.
    ///
    /// Each new connection to PostgreSQL is checked: if the database may have lost its latest commits,
    /// because it moved to another server or to another timeline, every open batch is put in doubt
    /// before anything else is done.
    pub fn open(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect(url, options, RulesOf::Options)?)
    }

    /// Opens a database that is neither created nor migrated. Otherwise as [`open`](Self::open).
    pub fn open_existing(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let url = url.with_access(Access::Existing);
        restored::checked(Self::connect(&url, options, RulesOf::Options)?)
    }

    /// Opens a database that servers use, for an operator's command: with the rules of scheduling that the
    /// instance recorded which registered last, because the command may not have its settings. Otherwise as
    /// [`open_existing`](Self::open_existing).
    ///
    /// If no instance has recorded its rules, what depends on them is refused.
    pub fn open_for_command(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let url = url.with_access(Access::Existing);
        restored::checked(Self::connect(&url, options, RulesOf::Database)?)
    }

    /// Uses a pool of connections that the program has for its own database. The program puts
    /// [`SessionSettings`](crate::SessionSettings) on the pool, and runs the
    /// [`migrations`](crate::migrations()) before; both are checked. Otherwise as [`open`](Self::open).
    ///
    /// The pool must have a connection for each thread that uses the store at the same time. On
    /// PostgreSQL, a [`ClaimStore`](crate::ClaimStore) that is told of the work of other instances keeps
    /// one more.
    pub fn over(pool: impl Into<ProgramPool>, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect_over(pool.into(), options)?)
    }

    /// Opens a database that a server uses, to read: nothing is written, so that the rights to read are
    /// enough. Methods that write fail.
    pub fn open_to_read(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        Self::connect(&url.with_access(Access::Read), options, RulesOf::Database)
    }

    /// Opens one connection and closes it again, to find out whether the database can be used now.
    pub fn check_reachable(url: &DatabaseUrl, options: &StoreOptions) -> Result<(), StoreError> {
        let connection = Connection::open(url, options.session_limits(), &options.namespace);
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        connection.map(|_: Connection| ()).map_err(failed)
    }

    /// The version of a database's schema. Nothing is written. An SQLite file that does not exist has none.
    pub fn schema_version(
        url: &DatabaseUrl,
        options: &StoreOptions,
    ) -> Result<SchemaVersion, StoreError> {
        if url.file().is_some_and(|file| !file.exists()) {
            return Ok(migrations::no_schema(url.dialect()));
        }
        let url = url.with_access(Access::Read);
        let connection = Connection::open(&url, options.session_limits(), &options.namespace);
        let failed = |source| StoreError::Connect { url: url.to_string(), source };
        migrations::schema_version(&mut connection.map_err(failed)?)
    }

    /// Puts every open batch of a database in doubt that was restored from a backup: in the time that
    /// was lost, each may have been sent. Nothing that is open now is submitted before evidence or an
    /// operator's decision; batches that are added later are not affected.
    ///
    /// Refuses while an instance runs, unless `even_if_running`. Repeating it is safe.
    pub fn mark_restored(
        url: &DatabaseUrl,
        options: StoreOptions,
        even_if_running: bool,
    ) -> Result<OpenBatchesInDoubt, StoreError> {
        let lock = stopped_file(url, even_if_running)?;
        let in_doubt = restored::mark_restored(url, options, even_if_running)?;
        lock.map_or(Ok(()), |lock| lock.forget())?;
        Ok(in_doubt)
    }

    /// Records that a database has moved to another server without any loss, so that no batch is put in
    /// doubt when it is opened. Refuses while an instance runs.
    pub fn mark_moved(url: &DatabaseUrl, options: StoreOptions) -> Result<(), StoreError> {
        let lock = stopped_file(url, false)?;
        restored::mark_moved(url, options)?;
        lock.map_or(Ok(()), |lock| lock.forget())
    }
}
