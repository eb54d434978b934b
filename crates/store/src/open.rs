//! Opening a database, and what is done to one that no server uses.

use crate::{
    DatabaseUrl, Store, StoreError, StoreOptions, restored,
    sql::{
        Connection, RulesOf,
        migrations::{self, SchemaVersion},
        program_pool::ProgramPool,
        url::Access,
    },
};

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
    /// PostgreSQL, a [`ClaimStore`](crate::ClaimStore) that hears of the work of other instances keeps
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

    /// Opens a database that was brought back from a backup or moved, and brings its schema up to date. Does not look
    /// at whether it lost its latest commits: that is left to [`mark_restored`](Self::mark_restored) and
    /// [`mark_moved`](Self::mark_moved).
    pub fn open_restored(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        url.with_access(Access::Existing).check_exists()?;
        Self::connect(url, options, RulesOf::Options)
    }
}
