//! The schema of the database: its migrations, and which of them have run.
//!
//! Each migration records itself in `grid_batch_migrations`, so that it does not matter which program runs it.
//! Databases of earlier releases have a record in Diesel's table, which may be shared with the migrations of other
//! programs.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::OnceLock,
};

use log::info;

use super::{
    Connection, Dialect, Statement, StoreError,
    namespace::{Namespace, Place, tokens},
    schema_objects::schema_differences,
    url::DatabaseUrl,
};

mod parts;
mod source;

use parts::MigrationStep;
pub(super) use parts::{Part, installed_parts, part_of_table};
pub use source::Migrations;

/// The table with the versions of the migrations that have run.
const RECORD: &str = "grid_batch_migrations";
/// The table in which earlier releases record them.
const EARLIER_RECORD: &str = "__diesel_schema_migrations";
/// The tables that are not part of the schema.
pub(super) const RECORDS: [&str; 2] = [RECORD, EARLIER_RECORD];

/// The scripts of a migration, as in its folder.
pub(super) struct Script {
    name: &'static str,
    up: &'static str,
    down: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

fn scripts(dialect: Dialect) -> &'static [Script] {
    match dialect {
        #[cfg(feature = "postgres")]
        Dialect::Postgres => POSTGRES,
        #[cfg(feature = "sqlite")]
        Dialect::Sqlite => SQLITE,
    }
}

impl Script {
    /// The date and number of the name, in the format of Diesel's tools.
    fn version(&self) -> String {
        let (version, _) = self.name.split_once('_').unwrap_or((self.name, ""));
        version.replace('-', "")
    }
}

/// One migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlMigration {
    /// Migrations run in the order of their versions.
    pub version: String,
    /// The version and what the migration does.
    pub name: String,
    /// Runs the migration and records it in the table `grid_batch_migrations`. Run it in one transaction.
    pub up: String,
    /// Reverts the migration.
    pub down: String,
}

/// The migrations of this release for a database, in order. [`Store::open`](crate::Store::open) runs those that are
/// missing. A program that runs the migrations of its database itself runs these with its own, and then opens the store
/// with [`Store::open_existing`](crate::Store::open_existing) or [`Store::over`](crate::Store::over).
///
/// ```
/// use grid_batch_store::{Dialect, Namespace, migrations};
///
/// let namespace = Namespace::new("grid_batch")?;
/// for migration in migrations(Dialect::Sqlite, &namespace) {
///     println!("-- {}\n{}", migration.version, migration.up);
/// }
/// # Ok::<(), grid_batch_store::NamespaceError>(())
/// ```
pub fn migrations(dialect: Dialect, namespace: &Namespace) -> Vec<SqlMigration> {
    let installed = installed_parts();
    let steps = steps(dialect).iter();
    steps
        .filter(|step| step.part.is_none_or(|part| installed.contains(&part)))
        .map(|step| step.migration(dialect, namespace))
        .collect()
}

/// The steps of all migrations, in order, including those of parts that this build does not have.
fn steps(dialect: Dialect) -> &'static [MigrationStep] {
    #[cfg(feature = "postgres")]
    static POSTGRES_STEPS: OnceLock<Vec<MigrationStep>> = OnceLock::new();
    #[cfg(feature = "sqlite")]
    static SQLITE_STEPS: OnceLock<Vec<MigrationStep>> = OnceLock::new();
    let steps = match dialect {
        #[cfg(feature = "postgres")]
        Dialect::Postgres => &POSTGRES_STEPS,
        #[cfg(feature = "sqlite")]
        Dialect::Sqlite => &SQLITE_STEPS,
    };
    let names = stored_names(dialect);
    let divide = |script| MigrationStep::of(script, names);
    steps.get_or_init(|| scripts(dialect).iter().flat_map(divide).collect())
}

impl MigrationStep {
    fn migration(&self, dialect: Dialect, namespace: &Namespace) -> SqlMigration {
        let version = self.version();
        let is_first = self.part.is_none() && self.script.name == scripts(dialect)[0].name;
        let (create, forget) = if is_first {
            (create_record(dialect, namespace), format!("drop table {RECORD};\n"))
        } else {
            (String::new(), format!("delete from {RECORD} where version = '{version}';\n"))
        };
        let up = self.up.clone() + "\n" + &record(RECORD, &version);
        let down = self.down.clone() + "\n" + &forget;
        let name = self.script.name.replacen(&self.script.version(), &version, 1);
        let [up, down] = [up, down].map(|sql| namespace.qualify_script(dialect, &sql));
        SqlMigration { version, name, up: create + &up, down }
    }
}

/// Creates the table with the versions and its schema.
fn create_record(dialect: Dialect, namespace: &Namespace) -> String {
    let schema = dialect.create_schema(namespace).unwrap_or_default();
    let name = dialect.name_type();
    let table = format!("create table if not exists {RECORD} (version {name} primary key);\n");
    schema + &namespace.qualify_script(dialect, &table)
}

/// The names that the migrations have given.
#[derive(Debug)]
pub(super) struct StoredNames {
    /// The tables, views and functions.
    pub(super) tables: HashSet<&'static str>,
    /// The indexes, with their tables.
    pub(super) indexes: HashMap<&'static str, &'static str>,
}

pub(super) fn stored_names(dialect: Dialect) -> &'static StoredNames {
    #[cfg(feature = "postgres")]
    static POSTGRES_NAMES: OnceLock<StoredNames> = OnceLock::new();
    #[cfg(feature = "sqlite")]
    static SQLITE_NAMES: OnceLock<StoredNames> = OnceLock::new();
    let names = match dialect {
        #[cfg(feature = "postgres")]
        Dialect::Postgres => &POSTGRES_NAMES,
        #[cfg(feature = "sqlite")]
        Dialect::Sqlite => &SQLITE_NAMES,
    };
    names.get_or_init(|| StoredNames::of(scripts(dialect)))
}

impl StoredNames {
    fn of(scripts: &[Script]) -> Self {
        let tables = HashSet::from(RECORDS);
        let mut names = Self { tables, indexes: HashMap::new() };
        for script in scripts {
            let mut place = Place::default();
            let mut index = None;
            for (token, _) in tokens(script.up) {
                if let Some(name) = token.name {
                    match (place.before_previous, place.previous) {
                        ("create", "table" | "view" | "function") => {
                            names.tables.insert(name);
                        }
                        ("create" | "unique", "index") => index = Some(name),
                        (_, "on") => {
                            names.indexes.extend(index.take().map(|index| (index, name)));
                        }
                        _ => {}
                    }
                }
                place.after(token);
            }
        }
        names
    }
}

/// Runs the missing migrations in one transaction. Instances that start together wait for each
/// other.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    migrate_parts(connection, &installed_parts())
}

fn migrate_parts(connection: &mut Connection, parts: &[&'static Part]) -> Result<(), StoreError> {
    // The first call divides the scripts. In the transaction, the database could end a session that is idle for so long.
    steps(connection.dialect());
    let lock = connection.dialect().lock_schema(connection.namespace());
    // An SQLite transaction waits for every other writer, which may take long. A command that only reads must not wait.
    if lock.is_none() && Recorded::read(connection)?.is_complete(parts) {
        return expect_objects(connection, parts);
    }
    connection.write_transaction(|connection| {
        if let Some(lock) = lock {
            connection.batch_execute(&lock)?;
        }
        let recorded = Recorded::read(connection)?;
        if let Some(found) = recorded.unknown().pop() {
            return Err(StoreError::SchemaNewer { found, known: recorded.latest_known() });
        }
        adopt(connection, &recorded)?;
        run_missing(connection, &recorded, parts)?;
        // This fails if the database is read-only. Otherwise the first batch would fail.
        connection.batch_execute(&format!("delete from {RECORD} where false"))?;
        // This is checked in the transaction, so that a database of another build is not changed.
        expect_objects(connection, parts)
    })
}

/// Like [`migrate`], with the parts that this build does not have.
#[cfg(test)]
pub(super) fn migrate_all_parts(connection: &mut Connection) -> Result<(), StoreError> {
    migrate_parts(connection, &parts::PARTS.iter().collect::<Vec<_>>())
}

/// Records the migrations that an earlier release has run. That release's own record is kept, because an instance of it
/// that is restarted would otherwise find no schema and run all its migrations.
fn adopt(connection: &mut Connection, recorded: &Recorded) -> Result<(), StoreError> {
    if !recorded.is_to_adopt() {
        return Ok(());
    }
    let create = create_record(connection.dialect(), connection.namespace());
    connection.batch_execute(&create)?;
    for version in &recorded.earlier {
        connection.batch_execute(&record(RECORD, version))?;
    }
    Ok(())
}

fn run_missing(
    connection: &mut Connection,
    recorded: &Recorded,
    parts: &[&'static Part],
) -> Result<(), StoreError> {
    let (dialect, namespace) = (connection.dialect(), connection.namespace().clone());
    let missing = recorded.missing(parts);
    for step in &missing {
        let migration = step.migration(dialect, &namespace);
        connection.batch_execute(&migration.up)?;
        if !recorded.earlier.is_empty() && step.part.is_none() {
            // Earlier releases refuse a schema with a migration that they do not know.
            connection.batch_execute(&record(EARLIER_RECORD, &migration.version))?;
        }
    }
    if !missing.is_empty() {
        let to = recorded.latest_known();
        info!(steps = missing.len(), to = to.as_str(); "migrated the schema of the database");
    }
    Ok(())
}

fn record(table: &str, version: &str) -> String {
    format!("insert into {table} (version) values ('{version}');\n")
}

/// The schema of a database, and that of this release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The latest migration that has run; `None` if there are no tables.
    pub found: Option<String>,
    /// The latest migration of this release.
    pub known: String,
    /// The latest migration that this release does not know, because a later one has run it.
    pub later: Option<String>,
    /// What a server or `migrate` would run.
    pub missing: Vec<String>,
    /// Differences from the tables of this release, although nothing is missing. They exist if an earlier build has
    /// created the tables.
    pub differences: Vec<String>,
}

impl SchemaVersion {
    /// Whether the database has the schema of this release.
    pub fn is_current(&self) -> bool {
        self.later.is_none() && self.missing.is_empty() && self.differences.is_empty()
    }
}

/// Reads the version of the schema without writing.
pub(crate) fn schema_version(connection: &mut Connection) -> Result<SchemaVersion, StoreError> {
    let recorded = Recorded::read(connection)?;
    let mut version = recorded.version(&installed_parts());
    if version.is_current() {
        version.differences = schema_differences(connection, &installed_parts())?;
    }
    Ok(version)
}

/// The version of a database that does not exist yet.
pub(crate) fn no_schema(dialect: Dialect) -> SchemaVersion {
    Recorded { steps: steps(dialect), ..Recorded::default() }.version(&installed_parts())
}

/// Checks that the database has the schema of this release without writing.
pub(crate) fn check_schema(
    connection: &mut Connection,
    url: &DatabaseUrl,
) -> Result<(), StoreError> {
    let SchemaVersion { found, known, later, mut missing, differences } =
        schema_version(connection)?;
    let Some(found) = found else { return Err(StoreError::NoTables { url: url.to_string() }) };
    if let Some(found) = later {
        return Err(StoreError::SchemaNewer { found, known });
    }
    match missing.pop() {
        Some(known) => Err(StoreError::SchemaOlder { found, known }),
        None if differences.is_empty() => Ok(()),
        None => Err(StoreError::SchemaDiffers { differences }),
    }
}

/// Fails if the database has withdrawals. A build that does not know them would end their batches without recording the
/// consequences for the withdrawals.
pub(crate) fn expect_no_withdrawals(connection: &mut Connection) -> Result<(), StoreError> {
    if !has_table(connection, "withdrawals")? {
        return Ok(());
    }
    let query = Statement::new(
        "-- has_withdrawals
         select count(*) as found from (select w.seq from withdrawals w limit 1) x",
    );
    let found: Vec<i64> = connection.load_column(&query)?;
    if found.iter().all(|found| *found == 0) { Ok(()) } else { Err(StoreError::HasWithdrawals) }
}

/// Fails if the tables are not those of this release.
fn expect_objects(connection: &mut Connection, parts: &[&'static Part]) -> Result<(), StoreError> {
    let differences = schema_differences(connection, parts)?;
    if differences.is_empty() { Ok(()) } else { Err(StoreError::SchemaDiffers { differences }) }
}

/// The steps of migrations that have run.
#[derive(Default)]
struct Recorded {
    /// All steps that this release knows.
    steps: &'static [MigrationStep],
    /// The recorded steps; `None` if the table does not exist.
    own: Option<BTreeSet<String>>,
    /// The versions in the record of earlier releases, which run all steps of a migration.
    earlier: BTreeSet<String>,
}

impl Recorded {
    fn read(connection: &mut Connection) -> Result<Self, StoreError> {
        let steps = steps(connection.dialect());
        let own = read_versions(connection, RECORD)?;
        // Other programs also record their migrations there.
        let earlier = read_versions(connection, EARLIER_RECORD)?.unwrap_or_default();
        let has_run = |step: &&MigrationStep| earlier.contains(&step.script.version());
        let earlier = steps.iter().filter(has_run).map(|step| step.version()).collect();
        Ok(Self { steps, own, earlier })
    }

    fn versions(&self) -> &BTreeSet<String> {
        self.own.as_ref().unwrap_or(&self.earlier)
    }

    fn is_to_adopt(&self) -> bool {
        self.own.is_none() && !self.earlier.is_empty()
    }

    /// The steps of these parts, and of the parts that the database has, that have not run.
    fn missing(&self, parts: &[&'static Part]) -> Vec<&'static MigrationStep> {
        let runs = |step: &&MigrationStep| {
            !self.versions().contains(&step.version())
                && step.part.is_none_or(|part| parts.contains(&part) || self.has(part))
        };
        self.steps.iter().filter(runs).collect()
    }

    fn has(&self, part: &'static Part) -> bool {
        let mut steps = self.steps.iter().filter(|step| step.part == Some(part));
        steps.any(|step| self.versions().contains(&step.version()))
    }

    /// The migrations that a later release has run.
    fn unknown(&self) -> Vec<String> {
        let known: BTreeSet<String> = self.steps.iter().map(|step| step.version()).collect();
        self.versions().difference(&known).cloned().collect()
    }

    /// Whether nothing is left to do.
    fn is_complete(&self, parts: &[&'static Part]) -> bool {
        !self.is_to_adopt() && self.unknown().is_empty() && self.missing(parts).is_empty()
    }

    fn version(&self, parts: &[&'static Part]) -> SchemaVersion {
        SchemaVersion {
            found: self.latest(),
            known: self.latest_known(),
            later: self.unknown().pop(),
            missing: self.missing(parts).iter().map(|step| step.version()).collect(),
            differences: Vec::new(),
        }
    }

    /// The version of the latest migration, without the part.
    fn latest(&self) -> Option<String> {
        let version = self.versions().last()?;
        Some(version.split('_').next().unwrap_or(version).to_owned())
    }

    fn latest_known(&self) -> String {
        self.steps.last().map(|step| step.script.version()).unwrap_or_default()
    }
}

/// The versions in a table, if it exists.
fn read_versions(
    connection: &mut Connection,
    table: &str,
) -> Result<Option<BTreeSet<String>>, StoreError> {
    if !has_table(connection, table)? {
        return Ok(None);
    }
    let query = Statement::new(format!("-- schema_versions\n select version from {table}"));
    Ok(Some(connection.load_column(&query)?.into_iter().collect()))
}

fn has_table(connection: &mut Connection, table: &str) -> Result<bool, StoreError> {
    let dialect = connection.dialect();
    let name = dialect.name_in_catalog(connection.namespace(), table);
    let query = Statement::new(dialect.has_table_query()).text(&name);
    let found: Vec<i64> = connection.load_column(&query)?;
    Ok(found.first().is_some_and(|found| *found > 0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_test_postgres::TestDatabase;

    use super::*;
    use crate::sql::dialect::SessionLimits;
    use crate::sql::result_row;

    const LIMIT: Duration = Duration::from_secs(9);

    fn revert_and_migrate_again(url: &str) {
        for namespace in [Namespace::default(), Namespace::new("apart").unwrap()] {
            let mut connection = open(url, &namespace);
            migrate(&mut connection).unwrap();
            revert_from(&mut connection, "0");
            assert!(Recorded::read(&mut connection).unwrap().versions().is_empty());
            migrate(&mut connection).unwrap();
        }
    }

    /// Creates only the tables of batches, and adds all parts later.
    fn add_parts(url: &str) {
        let namespace = Namespace::new("parts").unwrap();
        let mut connection = open(url, &namespace);
        let all: Vec<&Part> = parts::PARTS.iter().collect();
        let has = |connection: &mut Connection| -> Vec<bool> {
            let tables = all.iter().flat_map(|part| part.tables);
            tables.map(|table| has_table(connection, table).unwrap()).collect()
        };
        migrate_parts(&mut connection, &[]).unwrap();
        assert!(!has(&mut connection).contains(&true));
        // They are missing; they do not differ.
        let version = schema_version(&mut connection).unwrap();
        assert_eq!(version.found.as_ref(), Some(&version.known));
        assert!(version.missing.iter().any(|it| it.ends_with("_tokens")), "{version:?}");
        assert!(version.differences.is_empty() && !version.is_current(), "{version:?}");
        for part in &all {
            migrate_parts(&mut connection, &[part]).unwrap();
        }
        assert!(!has(&mut connection).contains(&false));
        assert!(schema_version(&mut connection).unwrap().is_current());
        // The tables are the same as in a database that had all parts from the start.
        migrate_parts(&mut connection, &all).unwrap();
        // A build without parts ignores their tables.
        migrate_parts(&mut connection, &[]).unwrap();
    }

    #[test]
    fn parts_are_added_to_a_database_without_them_on_postgres() {
        add_parts(TestDatabase::create().url());
    }

    #[test]
    fn parts_are_added_to_a_database_without_them_on_sqlite() {
        let dir = tempfile::tempdir().unwrap();
        add_parts(&format!("sqlite://{}/parts.db", dir.path().display()));
    }

    fn open(url: &str, namespace: &Namespace) -> Connection<'static> {
        let limits = SessionLimits { lock: LIMIT, idle_transaction: LIMIT };
        Connection::open(&url.parse().unwrap(), limits, namespace).unwrap()
    }

    /// Reverts the migrations from this version on.
    fn revert_from(connection: &mut Connection, first: &str) {
        let migrations = migrations(connection.dialect(), connection.namespace());
        for migration in migrations.iter().rev().take_while(|it| it.version.as_str() >= first) {
            connection.batch_execute(&migration.down).unwrap();
        }
    }

    /// Creates a gas admin with a lane of a parked pool and a lane of another pool whose withdrawal is held, and
    /// reverts the migrations that a build without parked pools does not know.
    fn revert_parked_pools(url: &str) {
        const FIRST: &str = "20261124000013";
        let mut connection = open(url, &Namespace::default());
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
        revert_from(&mut connection, FIRST);
        let lanes = Statement::new(
            "-- lanes_after_downgrade
             select l.lane, l.created_at, l.ended, (
                 select count(*) from waiting_holds h join batches b on b.seq = h.batch_seq
                 where b.created_at = 20) as holds
             from lanes l",
        );
        let lanes: Vec<LeftRow> = connection.load(&lanes).unwrap();
        assert_eq!(lanes, [LeftRow { lane: 0, created_at: 10, ended: 6, holds: 1 }]);
    }

    result_row! {
        #[derive(Debug, PartialEq, Eq)]
        struct LeftRow {
            lane: i32,
            created_at: i64,
            ended: i64,
            holds: i64,
        }
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
