//! Unusable databases: the server does not start and says why, or it rejects requests while it runs.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use diesel::{Connection, PgConnection, SqliteConnection, connection::SimpleConnection};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    process::{ProcessOutput, run, with_shell_setup},
};

use crate::harness::{BatchHarness, BatchServer};

const QUICK_FAILURE: [(&str, &str); 2] = [("--log", "off"), ("--testing-lock-timeout", "500ms")];

/// Starts a server that must fail, and returns its error message.
#[track_caller]
fn start_error(harness: &BatchHarness) -> String {
    run(harness.command(&QUICK_FAILURE)).error_message().to_owned()
}

fn sqlite_url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// Has a server create the database, and opens it.
fn create_database(harness: &BatchHarness) -> SqliteConnection {
    harness.serve().stop();
    SqliteConnection::establish(harness.database_file().to_str().unwrap()).unwrap()
}

#[test]
fn file_that_is_not_a_database_is_named_and_not_changed() {
    let harness = BatchHarness::scabbard(1);
    let text = "no database ".repeat(1_000);
    fs::write(harness.database_file(), &text).unwrap();
    let message = start_error(&harness);
    let file = harness.database_file();
    assert!(message.contains(&file.display().to_string()), "{message}");
    assert!(message.contains("not a database"), "{message}");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn file_in_a_missing_directory_is_named() {
    let harness = BatchHarness::scabbard(1).with_database("sqlite:///nowhere/at/all.db");
    let message = start_error(&harness);
    assert!(message.contains("/nowhere/at/all.db"), "{message}");
}

#[test]
fn directory_instead_of_a_file_is_named() {
    let harness = BatchHarness::scabbard(1);
    fs::create_dir(harness.database_file()).unwrap();
    let message = start_error(&harness);
    assert!(message.contains(&harness.database_file().display().to_string()), "{message}");
}

#[test]
fn newer_schema_is_rejected() {
    let harness = BatchHarness::scabbard(1);
    create_database(&harness)
        .batch_execute("insert into grid_batch_migrations (version) values ('29991231000000')")
        .unwrap();
    let message = start_error(&harness);
    assert!(message.contains("run the release that migrated the database"), "{message}");
}

#[test]
fn locked_file_is_reported() {
    let harness = BatchHarness::scabbard(1);
    let mut other = create_database(&harness);
    other.batch_execute("begin immediate").unwrap();
    let message = start_error(&harness);
    assert!(message.contains("the database is locked"), "{message}");
    other.batch_execute("rollback").unwrap();
    harness.serve().stop();
}

#[test]
fn unreachable_server_is_named_without_its_password() {
    let harness =
        BatchHarness::scabbard(1).with_database("postgresql://user:hidden@127.0.0.1:1/grid");
    let ProcessOutput { exit_code, stderr, .. } = run(harness.command(&QUICK_FAILURE));
    assert_eq!(exit_code, Some(69));
    assert!(stderr.contains("the database cannot be reached: "), "{stderr}");
    assert!(stderr.contains("127.0.0.1") && !stderr.contains("hidden"), "{stderr}");
}

#[test]
fn read_only_server_is_reported() {
    let database = TestDatabase::create();
    let read_only = "options=-cdefault_transaction_read_only%3Don%20";
    let url = database.url().replacen("options=", read_only, 1);
    let message = start_error(&BatchHarness::scabbard(1).with_database(&url));
    assert!(message.contains("the database is read-only"), "{message}");
}

#[test]
fn file_without_write_permission_is_named() {
    let harness = BatchHarness::scabbard(1);
    drop(create_database(&harness));
    let directory = harness.path().join("read-only");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("batches.db");
    fs::copy(harness.database_file(), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o555)).unwrap();
    let harness = harness.with_database(&sqlite_url(&file));
    let output = run(as_unprivileged_user(&harness, harness.command(&QUICK_FAILURE)));
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let message = output.error_message();
    assert!(message.contains("readonly database"), "{message}");
    assert!(message.contains(&file.display().to_string()), "{message}");
}

/// The same command, run by an unprivileged user if the current user is root, because root may write
/// to read-only files.
fn as_unprivileged_user(harness: &BatchHarness, command: Command) -> Command {
    const UNPRIVILEGED_UID: u32 = 65_534;
    if fs::metadata(harness.path()).unwrap().uid() != 0 {
        return command;
    }
    let program = harness.path().join("program");
    fs::copy(command.get_program(), &program).unwrap();
    for path in [harness.path().to_owned(), harness.path().join("key")] {
        chown(path, Some(UNPRIVILEGED_UID), None).unwrap();
    }
    let mut unprivileged = Command::new(program);
    unprivileged
        .args(command.get_args())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .uid(UNPRIVILEGED_UID);
    unprivileged
}

#[test]
fn full_server_rejects_batches_until_it_has_space() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(2).with_database(database.url());
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 5);
    let (before, after) = batches.split_at(4);
    server.submit(before);
    let mut other = PgConnection::establish(database.url()).unwrap();
    other
        .batch_execute(
            "create function full_disk() returns trigger language plpgsql as
                 'begin raise exception using errcode = ''53100'',
                     message = ''could not extend file: No space left on device''; end';
             create trigger full_disk before insert on batch_payloads
                 for each row execute function full_disk();",
        )
        .unwrap();
    assert_rejected(&server, &after[..1]);
    other.batch_execute("drop trigger full_disk on batch_payloads").unwrap();
    server.submit(after);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// A limit on the size of files has the same effect as a full disk.
#[test]
fn full_file_system_rejects_batches_and_loses_none() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.freeze();
    let small_file_limit = "trap '' XFSZ && ulimit -f 1000";
    let server = BatchServer::start(with_shell_setup(
        small_file_limit,
        harness.command(&[("--log", "off")]),
    ));
    let batches = signed_batches(&harness.services, 1_000);
    let mut lists = batches.chunks(50);
    let mut accepted = 0;
    let rejected = lists
        .find_map(|list| {
            let response = server.post(list).unwrap();
            if response.status == 202 {
                accepted += list.len();
                return None;
            }
            Some(response)
        })
        .unwrap();
    assert_eq!(rejected.status, 503, "{rejected:?}");
    server.process.kill();

    harness.ledger.thaw();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches[..accepted]);
    server.stop();
}

fn assert_rejected(server: &BatchServer, batches: &[SignedBatch]) {
    let response = server.post(batches).unwrap();
    assert_eq!((response.status, &response.json()["error"]["code"]), (503, &1012.into()));
}
