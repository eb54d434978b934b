//! `docs/backup-and-upgrade.md`: this release goes on with the databases of earlier ones.
//!
//! A database is recorded when its server was killed in the middle of its work. `tests/releases` has those of
//! earlier releases. `GRID_BATCH_TEST_RECORD_RELEASE=NAME` adds those of this release.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use diesel::{
    Connection, PgConnection, QueryResult, QueryableByName, RunQueryDsl, SqliteConnection,
    connection::SimpleConnection,
    sql_query,
    sql_types::{Nullable, Text},
};
use grid_batch_core::batches::BatchState;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, depending_batch, signed_batch, signed_batches},
    wait::wait_until,
};
use serde_json::json;

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// The folders of the recorded databases, one for each release.
const RELEASES: &str = "tests/releases";

/// Where it is recorded which migrations have run.
const RECORD: &str = "grid_batch_migrations";

/// Where releases up to 2026-11-27 record the migrations that have run.
const EARLIER_RECORD: &str = "__diesel_schema_migrations";

/// The number of the batch that one batch depends on, and which is submitted after the upgrade.
const MISSING: usize = 50;

const FLAGS: &[(&str, &str)] = &[
    ("--requests-options", "webhooks=private:127.0.0.1"),
    ("--claims-idle-expiry", "3s"),
    ("--claims-full-expiry", "8s"),
];
const PARALLEL: &[(&str, &str)] = &[("--services-strategy", "parallel")];

/// How the batches of a recorded database are scheduled.
#[derive(Clone, Copy)]
enum Schedule {
    ScabbardSerial,
    SawtoothParallel,
}

impl Schedule {
    const ALL: [Self; 2] = [Self::ScabbardSerial, Self::SawtoothParallel];

    fn name(self) -> &'static str {
        match self {
            Self::ScabbardSerial => "scabbard_serial",
            Self::SawtoothParallel => "sawtooth_parallel",
        }
    }

    /// A ledger that a recorded database may be used with, which has none of the batches.
    fn harness(self) -> BatchHarness {
        match self {
            Self::ScabbardSerial => BatchHarness::scabbard_with(2, |ledger| ledger.seed(1)),
            Self::SawtoothParallel => BatchHarness::sawtooth_with(|ledger| {
                ledger.seed(1).genesis(ItemId::from_bytes([7; 64]))
            }),
        }
    }

    fn serve(self, harness: &BatchHarness) -> BatchServer {
        let own = match self {
            Self::ScabbardSerial => &[],
            Self::SawtoothParallel => PARALLEL,
        };
        harness.serve_with(&[FLAGS, own].concat())
    }

    /// Runs a server until its database has batches in many states, and kills it.
    fn fill(self, harness: &BatchHarness) {
        let server = self.serve(harness);
        let webhook = json!({ "url": "http://127.0.0.1:9/", "reason": "a test" });
        assert_eq!(server.post_json("/v1/webhooks", &webhook).status, 201);
        let token = harness.run_command(&[
            "token", "create", "--name", "recorded", "--scope", "submit", "--reason", "a test",
        ]);
        assert_eq!(token.exit_code, Some(0), "{token:?}");
        harness.ledger.inject(Fault::Invalid, When::Next(1));
        let ended = signed_batches(&harness.services, 3);
        server.submit(&ended);
        let store = harness.store();
        let count = |state| count_in_state(&store, state);
        wait_until("all have ended", || {
            count(BatchState::Invalid) == 1 && count(BatchState::Committed) == ended.len() - 1
        });
        harness.ledger.freeze();
        let service = harness.services[0].as_str();
        let open: Vec<SignedBatch> = (10..14).map(|number| signed_batch(service, number)).collect();
        server.submit(&open);
        let missing = signed_batch(service, MISSING).transaction_ids();
        server.submit(&[depending_batch(service, MISSING + 1, &missing)]);
        wait_until("a batch is with a submitter", || count(BatchState::Submitting) > 0);
        let held = open[3].batch_id.to_string();
        let output = harness.run_command(&["hold", service, &held, "--reason", "look first"]);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        server.process.kill();
    }
}

/// A database of a test: a file of SQLite, or a database of a PostgreSQL server.
pub enum Database {
    Sqlite(PathBuf),
    Postgres(TestDatabase),
}

impl Database {
    const KINDS: [&str; 2] = ["sqlite", "postgres"];

    pub fn create(kind: &str, folder: &Path) -> Self {
        match kind {
            "sqlite" => Self::Sqlite(folder.join("recorded.db")),
            _ => Self::Postgres(TestDatabase::create()),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite://{}", file.display()),
            Self::Postgres(database) => database.url().to_owned(),
        }
    }

    /// The statements that make this database again.
    fn dump(&self) -> String {
        match self {
            Self::Sqlite(file) => dump_of_file(&mut open_file(file)).unwrap(),
            Self::Postgres(database) => dump_of_postgres(database.url()),
        }
    }

    fn restore(&self, dump: &str) {
        match self {
            Self::Sqlite(file) => open_file(file).batch_execute(dump).unwrap(),
            Self::Postgres(database) => restore_to_postgres(database.url(), dump),
        }
    }

    /// The migrations that this table says have run.
    fn versions(&self, table: &str) -> Vec<String> {
        let select = sql_query(format!("select version as text from {table} order by version"));
        let rows: QueryResult<Vec<TextRow>> = match self {
            Self::Sqlite(file) => select.load(&mut open_file(file)),
            Self::Postgres(database) => {
                select.load(&mut PgConnection::establish(database.url()).unwrap())
            }
        };
        rows.unwrap().into_iter().map(|row| row.text).collect()
    }

    fn execute(&self, statements: &str) {
        match self {
            Self::Sqlite(file) => open_file(file).batch_execute(statements).unwrap(),
            Self::Postgres(database) => {
                let mut connection = PgConnection::establish(database.url()).unwrap();
                connection.batch_execute(statements).unwrap();
            }
        }
    }

    /// All columns, indexes and functions.
    fn objects(&self) -> Vec<String> {
        const OF_SQLITE: &str =
            "select m.name || '.' || c.name || ' ' || c.type || ' ' || c.\"notnull\" as text
            from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table'
            union all select 'index ' || name from sqlite_master where type = 'index'";
        const OF_POSTGRES: &str = "select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
                as text
            from information_schema.columns where table_schema = current_schema()
            union all select 'index ' || indexname from pg_indexes where schemaname = current_schema()
            union all select 'function ' || routine_name from information_schema.routines
            where routine_schema = current_schema()";
        let rows: QueryResult<Vec<TextRow>> = match self {
            Self::Sqlite(file) => sql_query(OF_SQLITE).load(&mut open_file(file)),
            Self::Postgres(database) => {
                sql_query(OF_POSTGRES).load(&mut PgConnection::establish(database.url()).unwrap())
            }
        };
        let mut texts: Vec<String> = rows.unwrap().into_iter().map(|row| row.text).collect();
        texts.sort();
        texts
    }

    /// Brings the schema back to that of the release that knows only these migrations, by the rules of the manual.
    pub fn roll_back(&self, kind: &str, known: &BTreeSet<String>) {
        for (version, folder) in migrations(kind).into_iter().rev() {
            if known.contains(&version) {
                continue;
            }
            self.execute(&fs::read_to_string(folder.join("down.sql")).unwrap());
            for table in self.records() {
                self.execute(&format!("delete from {table} where version like '{version}%'"));
            }
        }
    }

    /// Where it is recorded which migrations have run.
    fn records(&self) -> Vec<&'static str> {
        let objects = self.objects();
        let exists = |table: &&str| objects.iter().any(|it| it.starts_with(&format!("{table}.")));
        [RECORD, EARLIER_RECORD].into_iter().filter(exists).collect()
    }

    /// The migrations that have run, without their parts, which an earlier release does not record.
    pub fn known(&self) -> BTreeSet<String> {
        let mut versions: BTreeSet<String> =
            self.records().into_iter().flat_map(|table| self.versions(table)).collect();
        versions.retain(|version| !version.contains('_'));
        versions
    }

    /// The batches, in their order, before the upgrade.
    fn batches(&self) -> Vec<RecordedBatch> {
        let select = |id: &str| {
            sql_query(format!(
                "select service_id, {id} as batch_id,
                     case when ended_at is not null then lower(dlt_status) end as ended
                 from batches order by seq"
            ))
        };
        match self {
            Self::Sqlite(file) => select("lower(hex(batch_id))").load(&mut open_file(file)),
            Self::Postgres(database) => select("encode(batch_id, 'hex')")
                .load(&mut PgConnection::establish(database.url()).unwrap()),
        }
        .unwrap()
    }
}

#[derive(QueryableByName)]
struct RecordedBatch {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Text)]
    batch_id: String,
    /// How it has ended, if it has.
    #[diesel(sql_type = Nullable<Text>)]
    ended: Option<String>,
}

/// The migrations of this release, with their folders, in their order.
fn migrations(kind: &str) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(Path::new("../../migrations").join(kind)).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let version = |folder: &PathBuf| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        name.split('_').next().unwrap().replace('-', "")
    };
    folders.map(|folder| (version(&folder), folder)).collect()
}

fn open_file(file: &Path) -> SqliteConnection {
    SqliteConnection::establish(file.to_str().unwrap()).unwrap()
}

#[derive(QueryableByName)]
struct TextRow {
    #[diesel(sql_type = Text)]
    text: String,
}

fn texts(connection: &mut SqliteConnection, select: &str) -> QueryResult<Vec<String>> {
    let rows: Vec<TextRow> = sql_query(select).load(connection)?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

fn dump_of_file(connection: &mut SqliteConnection) -> QueryResult<String> {
    let of_objects = |column: &str, kind: &str| {
        format!(
            "select {column} as text from sqlite_master
             where type {kind} and sql is not null and name not like 'sqlite%' order by rowid"
        )
    };
    let mut statements = texts(connection, &of_objects("sql", "= 'table'"))?;
    for table in texts(connection, &of_objects("name", "= 'table'"))? {
        let columns = format!("select name as text from pragma_table_info('{table}')");
        let columns = texts(connection, &columns)?;
        let values: Vec<String> = columns.iter().map(|it| format!("quote({it})")).collect();
        let insert = format!("insert into {table} ({}) values (", columns.join(", "));
        let rows = format!(
            "select '{insert}' || {} || ')' as text from {table}",
            values.join(" || ', ' || ")
        );
        statements.extend(texts(connection, &rows)?);
    }
    statements.extend(texts(connection, &of_objects("sql", "<> 'table'"))?);
    Ok(format!("begin;\n{};\ncommit;\n", statements.join(";\n")))
}

/// A database of a test is a schema: the dump does not name it.
fn dump_of_postgres(url: &str) -> String {
    let mut connection = PgConnection::establish(url).unwrap();
    let schema: Vec<TextRow> =
        sql_query("select current_schema()::text as text").load(&mut connection).unwrap();
    let schema = &schema[0].text;
    let output = Command::new("pg_dump")
        .args(["--inserts", "--no-owner", "--schema", schema, url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let dump = String::from_utf8(output.stdout).unwrap().replace(&format!("{schema}."), "");
    let names_schema = |line: &str| {
        ["\\", "CREATE SCHEMA", "SELECT pg_catalog.set_config('search_path'"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let statements = dump.lines().filter(|line| !names_schema(line));
    statements.fold(String::new(), |all, line| all + line + "\n")
}

/// Restores a database as if this server had always had it: after a move to another one, each open batch is put in
/// doubt, which other tests show.
fn restore_to_postgres(url: &str, dump: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.sql");
    let same_server = "update database_state set server = null;\n";
    fs::write(&file, [dump, same_server].concat()).unwrap();
    let output = Command::new("psql")
        .args(["--quiet", "--set", "ON_ERROR_STOP=1", url, "--file"])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Upgrades the database of an earlier release, sends a batch, and brings the schema back. Returns the batch.
fn upgrade_and_roll_back(
    schedule: Schedule,
    kind: &str,
    database: &Database,
    harness: &BatchHarness,
) -> SignedBatch {
    let check = || harness.run_command(&["migrate", "--check"]);
    let (mut objects, known) = (database.objects(), database.known());
    let older = check();
    assert_eq!(older.exit_code, Some(1), "{older:?}");
    assert!(older.stdout.contains("`grid-batch migrate` brings it to"), "{older:?}");
    let server = schedule.serve(harness);
    let current = check();
    assert_eq!(current.exit_code, Some(0), "{current:?}");
    let batch = signed_batch(harness.services.last().unwrap(), 20);
    server.submit(std::slice::from_ref(&batch));
    wait_until("this release has sent a batch", || !harness.ledger.record().is_empty());
    server.process.kill();
    database.roll_back(kind, &known);
    // Releases up to 2026-11-27 ignore this table.
    let mut rolled_back = database.objects();
    for objects in [&mut objects, &mut rolled_back] {
        objects.retain(|object| !object.contains(RECORD));
    }
    assert_eq!(rolled_back, objects, "{kind}");
    assert_eq!(database.known(), known);
    assert_eq!(check().stdout, older.stdout);
    batch
}

/// Restores a recorded database, starts this release with it, and waits until every batch has ended.
fn assert_goes_on(schedule: Schedule, kind: &str, dump: &str) {
    let harness = schedule.harness();
    let database = Database::create(kind, harness.path());
    database.restore(dump);
    let harness = harness.with_database(&database.url());
    let recorded = database.batches();
    let is_earlier = migrations(kind).len() > database.known().len();
    let mut sent = Vec::new();
    if is_earlier {
        sent.push(upgrade_and_roll_back(schedule, kind, &database, &harness));
    }
    let server = schedule.serve(&harness);
    let service = harness.services[0].as_str();
    let held = signed_batch(service, 13).batch_id.to_string();
    let output = harness.run_command(&["release", service, &held, "--reason", "looked at it"]);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let missing = signed_batch(service, MISSING);
    server.submit(std::slice::from_ref(&missing));
    sent.push(missing);
    let store = harness.store();
    let state = |service_id: &str, batch_id: &str| {
        let path = format!("/v1/batches/{batch_id}?service_id={service_id}");
        server.get(&path)["state"].as_str().unwrap().to_owned()
    };
    let (ended, open): (Vec<_>, Vec<_>) = recorded.iter().partition(|it| it.ended.is_some());
    assert!(ended.len() >= 3 && open.len() == 5, "{} ended, {} open", ended.len(), open.len());
    wait_until("the open batches are committed", || {
        harness.decide_held_batches(&store);
        open.iter().all(|it| state(&it.service_id, &it.batch_id) == "committed")
            && sent
                .iter()
                .all(|it| state(it.service_id.as_str(), &it.batch_id.to_string()) == "committed")
    });
    for batch in ended {
        let state = state(&batch.service_id, &batch.batch_id);
        assert_eq!(Some(state), batch.ended, "{}", batch.batch_id);
    }
    let key = |batch: &&RecordedBatch| -> (ServiceId, ItemId) {
        (batch.service_id.parse().unwrap(), batch.batch_id.parse().unwrap())
    };
    let mut promised: Vec<_> = open.iter().map(key).collect();
    promised.extend(batch_ids(&sent));
    let executed: BTreeSet<ItemId> = harness.ledger.record().iter().map(|it| it.batch_id).collect();
    let expected: BTreeSet<ItemId> = promised.iter().map(|(_, batch_id)| *batch_id).collect();
    assert_eq!(executed, expected, "nothing that had ended was sent again");
    let audit = harness.ledger.audit(&promised);
    match schedule {
        Schedule::ScabbardSerial => assert!(audit.is_clean(), "{audit:?}"),
        // Batches without conflicts may overtake each other.
        Schedule::SawtoothParallel => assert_eq!(audit.applied, promised.len(), "{audit:?}"),
    }
    let webhooks = server.get("/v1/webhooks");
    assert_eq!(webhooks["data"][0]["url"], "http://127.0.0.1:9/", "{webhooks}");
    let tokens = harness.run_command(&["token", "list"]);
    assert!(tokens.stdout.contains("recorded"), "{tokens:?}");
    server.stop();
    if dump.contains(EARLIER_RECORD) {
        // Releases that read this table start beside this one if it has the migrations that they know.
        let mut own = database.versions(RECORD);
        // They do not know parts of migrations.
        own.retain(|version| !version.contains('_'));
        assert_eq!(database.versions(EARLIER_RECORD), own);
    }
}

#[test]
fn killed_server_goes_on_with_a_restored_dump() {
    let release = env::var_os("GRID_BATCH_TEST_RECORD_RELEASE");
    for schedule in Schedule::ALL {
        for kind in Database::KINDS {
            let harness = schedule.harness();
            let database = Database::create(kind, harness.path());
            let harness = harness.with_database(&database.url());
            schedule.fill(&harness);
            let dump = database.dump();
            if let Some(release) = &release {
                let folder = Path::new(RELEASES).join(release);
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(format!("{}.{kind}.sql", schedule.name())), &dump).unwrap();
            }
            assert_goes_on(schedule, kind, &dump);
        }
    }
}

#[test]
fn databases_of_earlier_releases_are_upgraded() {
    let mut upgraded = 0;
    for release in fs::read_dir(RELEASES).unwrap() {
        let folder = release.unwrap().path();
        println!("from {}", folder.display());
        for schedule in Schedule::ALL {
            for kind in Database::KINDS {
                let file = folder.join(format!("{}.{kind}.sql", schedule.name()));
                assert_goes_on(schedule, kind, &fs::read_to_string(file).unwrap());
                upgraded += 1;
            }
        }
    }
    assert!(upgraded > 0, "{RELEASES} has no databases");
}
