//! The migrations in the form that Diesel's tools use.

use diesel::{
    backend::Backend,
    connection::BoxableConnection,
    migration::{
        Migration, MigrationMetadata, MigrationName, MigrationSource, MigrationVersion, Result,
    },
};

use super::{super::Dialect, Namespace, SqlMigration, migrations};

/// The migrations of the store as a source for Diesel, which runs and records them together with those of the program.
///
/// ```no_run
/// use diesel::{Connection as _, sqlite::SqliteConnection};
/// use diesel_migrations::MigrationHarness as _;
/// use grid_batch_store::{Migrations, Namespace};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let mut connection = SqliteConnection::establish("program.db")?;
/// connection.run_pending_migrations(Migrations::new(Namespace::new("grid_batch")?))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Migrations {
    namespace: Namespace,
}

impl Migrations {
    /// The migrations for tables in this namespace.
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    fn boxed<DB: Backend>(&self, dialect: Dialect) -> Vec<Box<dyn Migration<DB>>> {
        let boxed = |it: SqlMigration| -> Box<dyn Migration<DB>> { Box::new(it) };
        migrations(dialect, &self.namespace).into_iter().map(boxed).collect()
    }
}

#[cfg(feature = "postgres")]
impl MigrationSource<diesel::pg::Pg> for Migrations {
    fn migrations(&self) -> Result<Vec<Box<dyn Migration<diesel::pg::Pg>>>> {
        Ok(self.boxed(Dialect::Postgres))
    }
}

#[cfg(feature = "sqlite")]
impl MigrationSource<diesel::sqlite::Sqlite> for Migrations {
    fn migrations(&self) -> Result<Vec<Box<dyn Migration<diesel::sqlite::Sqlite>>>> {
        Ok(self.boxed(Dialect::Sqlite))
    }
}

impl<DB: Backend> Migration<DB> for SqlMigration {
    fn run(&self, connection: &mut dyn BoxableConnection<DB>) -> Result<()> {
        Ok(connection.batch_execute(&self.up)?)
    }

    fn revert(&self, connection: &mut dyn BoxableConnection<DB>) -> Result<()> {
        Ok(connection.batch_execute(&self.down)?)
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        &InTransaction
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}

impl MigrationName for SqlMigration {
    fn version(&self) -> MigrationVersion<'_> {
        MigrationVersion::from(&self.version)
    }
}

impl std::fmt::Display for SqlMigration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

struct InTransaction;

impl MigrationMetadata for InTransaction {}
