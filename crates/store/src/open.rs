//! Opens databases, including those that no server uses.

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

    /// Like [`open`](Self::open), but neither creates nor migrates the database.
    pub fn open_existing(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let url = url.with_access(Access::Existing);
        restored::checked(Self::connect(&url, options, RulesOf::Options)?)
    }

    /// Opens a database that servers use for an operator's command. Like [`open_existing`](Self::open_existing), but
    /// with the scheduling rules that the last registered instance recorded, because the command may not have its
    /// settings.
    ///
    /// If no instance has recorded its rules, actions that depend on them are refused.
    pub fn open_for_command(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        let url = url.with_access(Access::Existing);
        restored::checked(Self::connect(&url, options, RulesOf::Database)?)
    }

    /// Like [`open`](Self::open), but uses a connection pool that the program has for its own database. The program
    /// must set [`SessionSettings`](crate::SessionSettings) on the pool and run the [`migrations`](crate::migrations())
    /// before; both are checked.
    ///
    /// The pool must have a connection for each thread that uses the store at the same time. On PostgreSQL, a
    /// [`ClaimStore`](crate::ClaimStore) that receives notifications of other instances keeps one more.
    pub fn over(pool: impl Into<ProgramPool>, options: StoreOptions) -> Result<Self, StoreError> {
        restored::checked(Self::connect_over(pool.into(), options)?)
    }

    /// Opens a database that a server uses for reading. Nothing is written, so the rights to read are sufficient.
    /// Methods that write fail.
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

    /// Opens a database that was restored from a backup or moved, and brings its schema up to date. It does not check
    /// whether the latest commits were lost, which is left to [`mark_restored`](Self::mark_restored) and
    /// [`mark_moved`](Self::mark_moved).
    pub fn open_restored(url: &DatabaseUrl, options: StoreOptions) -> Result<Self, StoreError> {
        url.with_access(Access::Existing).check_exists()?;
        Self::connect(url, options, RulesOf::Options)
    }
}
