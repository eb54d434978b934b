use std::collections::BTreeSet;

use diesel::migration::{Migration, MigrationSource};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use log::info;

use crate::{
    StoreError,
    connection::{Connection, on_either},
};

#[cfg(feature = "postgres")]
const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");
#[cfg(feature = "sqlite")]
const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");

/// Brings the schema up to date: all of it or nothing, one instance at a time.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    connection.transaction(|connection| {
        if let Some(lock) = connection.dialect().lock_schema() {
            connection.batch_execute(lock)?;
        }
        let known = known_versions(connection)?;
        let applied: BTreeSet<String> = on_either!(connection, inner => inner.applied_migrations())
            .map_err(failed)?
            .iter()
            .map(ToString::to_string)
            .collect();
        if let Some(found) = applied.difference(&known).last() {
            let known = known.last().cloned().unwrap_or_default();
            return Err(StoreError::SchemaNewer { found: found.clone(), known });
        }
        if applied != known {
            run_pending(connection)?;
            info!(from = applied.len(), to = known.len(); "the schema was brought up to date");
        }
        Ok(())
    })
}

fn known_versions(connection: &Connection) -> Result<BTreeSet<String>, StoreError> {
    fn of<DB: diesel::backend::Backend>(
        migrations: Vec<Box<dyn Migration<DB>>>,
    ) -> BTreeSet<String> {
        migrations.iter().map(|migration| migration.name().version().to_string()).collect()
    }
    Ok(match connection {
        #[cfg(feature = "postgres")]
        Connection::Postgres(_) => of::<diesel::pg::Pg>(POSTGRES.migrations().map_err(failed)?),
        #[cfg(feature = "sqlite")]
        Connection::Sqlite(_) => of::<diesel::sqlite::Sqlite>(SQLITE.migrations().map_err(failed)?),
    })
}

fn run_pending(connection: &mut Connection) -> Result<(), StoreError> {
    match connection {
        #[cfg(feature = "postgres")]
        Connection::Postgres(inner) => inner.run_pending_migrations(POSTGRES).map(drop),
        #[cfg(feature = "sqlite")]
        Connection::Sqlite(inner) => inner.run_pending_migrations(SQLITE).map(drop),
    }
    .map_err(failed)
}

fn failed(error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    match error.downcast::<diesel::result::Error>() {
        Ok(error) => StoreError::from(*error),
        Err(error) => StoreError::Migration { message: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_test_postgres::TestDatabase;

    use super::*;

    fn undo_and_do_again(url: &str) {
        let mut connection =
            Connection::open(&url.parse().unwrap(), Duration::from_secs(9)).unwrap();
        migrate(&mut connection).unwrap();
        let undone = match &mut connection {
            Connection::Postgres(inner) => inner.revert_all_migrations(POSTGRES).unwrap().len(),
            Connection::Sqlite(inner) => inner.revert_all_migrations(SQLITE).unwrap().len(),
        };
        assert_eq!(undone, known_versions(&connection).unwrap().len());
        migrate(&mut connection).unwrap();
    }

    #[test]
    fn on_postgres_all_can_be_undone() {
        undo_and_do_again(TestDatabase::create().url());
    }

    #[test]
    fn on_sqlite_all_can_be_undone() {
        let dir = tempfile::tempdir().unwrap();
        undo_and_do_again(&format!("sqlite://{}/undone.db", dir.path().display()));
    }
}
