use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    migration::{Migration, MigrationSource},
    sql_types::{BigInt, Text},
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use log::info;

use super::{
    Connection, Dialect, Statement, StoreError, connection::on_either,
    schema_objects::schema_differences, url::DatabaseUrl,
};

#[cfg(feature = "postgres")]
const POSTGRES: EmbeddedMigrations = embed_migrations!("migrations/postgres");
#[cfg(feature = "sqlite")]
const SQLITE: EmbeddedMigrations = embed_migrations!("migrations/sqlite");

/// Runs the missing migrations in one transaction. Instances that start together wait for each
/// other.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let known = known_versions(connection.dialect())?;
    // A transaction of SQLite waits for every other writer, which may be for long. A command that
    // only reads must not.
    if connection.dialect().lock_schema().is_none() && applied_versions(connection)? == known {
        return expect_objects(connection);
    }
    connection.write_transaction(|connection| {
        if let Some(lock) = connection.dialect().lock_schema() {
            connection.batch_execute(lock)?;
        }
        let applied = applied_versions(connection)?;
        if let Some(found) = applied.difference(&known).last() {
            let known = known.last().cloned().unwrap_or_default();
            return Err(StoreError::SchemaNewer { found: found.clone(), known });
        }
        if applied != known {
            run_pending(connection)?;
            info!(from = applied.len(), to = known.len(); "migrated the schema of the database");
        }
        // In the transaction, so that a database of another build stays as it was.
        expect_objects(connection)
    })
}

/// The schema of a database, and that of this release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The latest migration that has run; `None` if there are no tables.
    pub found: Option<String>,
    /// The latest migration of this release.
    pub known: String,
    /// What is not as this release has made it, although the version is that of this release: an earlier
    /// build has made the tables.
    pub differences: Vec<String>,
}

impl SchemaVersion {
    /// Whether the database has the schema of this release.
    pub fn is_current(&self) -> bool {
        self.found.as_ref() == Some(&self.known) && self.differences.is_empty()
    }
}

/// Reads the version of the schema, without a write.
pub(crate) fn schema_version(connection: &mut Connection) -> Result<SchemaVersion, StoreError> {
    let found = recorded_versions(connection)?;
    let known = known_versions(connection.dialect())?;
    let differences = if found == known { schema_differences(connection)? } else { Vec::new() };
    Ok(SchemaVersion { found: found.last().cloned(), known: latest(&known), differences })
}

/// The version of a database that does not exist yet.
pub(crate) fn no_schema(dialect: Dialect) -> Result<SchemaVersion, StoreError> {
    let known = latest(&known_versions(dialect)?);
    Ok(SchemaVersion { found: None, known, differences: Vec::new() })
}

fn latest(versions: &BTreeSet<String>) -> String {
    versions.last().cloned().unwrap_or_default()
}

/// Checks that the database has the schema of this release, without a write.
pub(crate) fn check_schema(
    connection: &mut Connection,
    url: &DatabaseUrl,
) -> Result<(), StoreError> {
    let found = recorded_versions(connection)?;
    let known = known_versions(connection.dialect())?;
    if found.is_empty() {
        Err(StoreError::NoTables { url: url.to_string() })
    } else if found.last() > known.last() {
        Err(StoreError::SchemaNewer { found: latest(&found), known: latest(&known) })
    } else if found != known {
        Err(StoreError::SchemaOlder { found: latest(&found), known: latest(&known) })
    } else {
        expect_objects(connection)
    }
}

/// Fails if the tables are not those of this release.
fn expect_objects(connection: &mut Connection) -> Result<(), StoreError> {
    let differences = schema_differences(connection)?;
    match differences.is_empty() {
        true => Ok(()),
        false => Err(StoreError::SchemaDiffers { differences }),
    }
}

/// The migrations that have run. Diesel's own way to read them creates their table.
fn recorded_versions(connection: &mut Connection) -> Result<BTreeSet<String>, StoreError> {
    let dialect = connection.dialect();
    let found: Vec<FoundRow> =
        connection.load(&Statement::new(dialect, dialect.has_schema_query()))?;
    if found.first().is_none_or(|row| row.found == 0) {
        return Ok(BTreeSet::new());
    }
    let query = "-- schema_versions\n select version from __diesel_schema_migrations";
    let rows: Vec<VersionRow> = connection.load(&Statement::new(dialect, query))?;
    Ok(rows.into_iter().map(|row| row.version).collect())
}

#[derive(QueryableByName)]
struct FoundRow {
    #[diesel(sql_type = BigInt)]
    found: i64,
}

#[derive(QueryableByName)]
struct VersionRow {
    #[diesel(sql_type = Text)]
    version: String,
}

fn applied_versions(connection: &mut Connection) -> Result<BTreeSet<String>, StoreError> {
    let applied = on_either!(connection, inner => inner.applied_migrations()).map_err(failed)?;
    Ok(applied.iter().map(ToString::to_string).collect())
}

fn known_versions(dialect: Dialect) -> Result<BTreeSet<String>, StoreError> {
    fn of<DB: diesel::backend::Backend>(
        migrations: Vec<Box<dyn Migration<DB>>>,
    ) -> BTreeSet<String> {
        migrations.iter().map(|migration| migration.name().version().to_string()).collect()
    }
    Ok(match dialect {
        #[cfg(feature = "postgres")]
        Dialect::Postgres => of::<diesel::pg::Pg>(POSTGRES.migrations().map_err(failed)?),
        #[cfg(feature = "sqlite")]
        Dialect::Sqlite => of::<diesel::sqlite::Sqlite>(SQLITE.migrations().map_err(failed)?),
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
        Err(source) => StoreError::Migration { source },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use diesel::sql_types::Integer;
    use grid_batch_test_postgres::TestDatabase;

    use super::*;
    use crate::sql::dialect::SessionLimits;

    const LIMIT: Duration = Duration::from_secs(9);

    fn revert_and_migrate_again(url: &str) {
        let limits = SessionLimits { lock: LIMIT, idle_transaction: LIMIT };
        let mut connection = Connection::open(&url.parse().unwrap(), limits).unwrap();
        migrate(&mut connection).unwrap();
        let reverted = match &mut connection {
            Connection::Postgres(inner) => inner.revert_all_migrations(POSTGRES).unwrap().len(),
            Connection::Sqlite(inner) => inner.revert_all_migrations(SQLITE).unwrap().len(),
        };
        assert_eq!(reverted, known_versions(connection.dialect()).unwrap().len());
        migrate(&mut connection).unwrap();
    }

    /// Has a gas admin with a lane of a parked pool and one of another pool, whose withdrawal is held, and reverts the
    /// migrations that the build before parked pools does not know.
    fn revert_parked_pools(url: &str) {
        const FIRST: &str = "20261124000013";
        let limits = SessionLimits { lock: LIMIT, idle_transaction: LIMIT };
        let mut connection = Connection::open(&url.parse().unwrap(), limits).unwrap();
        migrate(&mut connection).unwrap();
        let id = |byte: &str| match connection.dialect() {
            Dialect::Postgres => format!("decode('{}', 'hex')", byte.repeat(64)),
            Dialect::Sqlite => format!("x'{}'", byte.repeat(64)),
        };
        let [first, second] = ["01", "02"].map(id);
        let rows = format!(
            "insert into services (service_id, last_created_at, added) values ('a', 20, 2);
             insert into batches (service_id, batch_id, created_at)
             values ('a', {first}, 10), ('a', {second}, 20);
             insert into lanes (service_id, lane, batch_seq, batch_id, created_at, ended, by_pool)
             select 'a', case created_at when 10 then 1 else 0 end, seq, batch_id, created_at, 3, true
             from batches;
             update lanes set held_at = 5, held_reason = 'held', held_until_decision = true
             where lane = 0;"
        );
        connection.batch_execute(&rows).unwrap();
        while applied_versions(&mut connection).unwrap().iter().any(|it| it.as_str() >= FIRST) {
            match &mut connection {
                Connection::Postgres(inner) => inner.revert_last_migration(POSTGRES).map(drop),
                Connection::Sqlite(inner) => inner.revert_last_migration(SQLITE).map(drop),
            }
            .unwrap();
        }
        let lanes = Statement::new(
            connection.dialect(),
            "-- lanes_after_downgrade
             select l.lane, l.created_at, l.ended, (
                 select count(*) from waiting_holds h join batches b on b.seq = h.batch_seq
                 where b.created_at = 20) as holds
             from lanes l",
        );
        let lanes: Vec<LeftRow> = connection.load(&lanes).unwrap();
        assert_eq!(lanes, [LeftRow { lane: 0, created_at: 10, ended: 6, holds: 1 }]);
    }

    #[derive(Debug, PartialEq, Eq, QueryableByName)]
    struct LeftRow {
        #[diesel(sql_type = Integer)]
        lane: i32,
        #[diesel(sql_type = BigInt)]
        created_at: i64,
        #[diesel(sql_type = BigInt)]
        ended: i64,
        #[diesel(sql_type = BigInt)]
        holds: i64,
    }

    #[test]
    fn downgrade_leaves_one_lane_of_a_gas_admin_on_postgres() {
        revert_parked_pools(TestDatabase::create().url());
    }

    #[test]
    fn downgrade_leaves_one_lane_of_a_gas_admin_on_sqlite() {
        let dir = tempfile::tempdir().unwrap();
        revert_parked_pools(&format!("sqlite://{}/reverted.db", dir.path().display()));
    }

    #[test]
    fn all_migrations_revert_on_postgres() {
        revert_and_migrate_again(TestDatabase::create().url());
    }

    #[test]
    fn all_migrations_revert_on_sqlite() {
        let dir = tempfile::tempdir().unwrap();
        revert_and_migrate_again(&format!("sqlite://{}/reverted.db", dir.path().display()));
    }
}
