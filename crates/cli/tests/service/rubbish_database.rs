//! Databases that cannot be used: a line that says why, at the start; a refusal, while it runs.

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

use crate::{
    batches::{Made, batches},
    bench::{Bench, Serving},
    program::{Ended, after},
};

const QUIET: [(&str, &str); 2] = [("--log", "off"), ("--store-patience", "500ms")];

/// Why a start on this bench fails.
#[track_caller]
fn failure(bench: &Bench) -> String {
    Ended::of(bench.command(&QUIET)).failure().to_owned()
}

fn sqlite(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// A database with its tables, as a start leaves it.
fn made(bench: &Bench) -> SqliteConnection {
    bench.serve().stop();
    SqliteConnection::establish(bench.database_file().to_str().unwrap()).unwrap()
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let bench = Bench::scabbard(1);
    let text = "no database ".repeat(1_000);
    fs::write(bench.database_file(), &text).unwrap();
    let failure = failure(&bench);
    let file = bench.database_file();
    assert!(failure.contains(&file.display().to_string()), "{failure}");
    assert!(failure.contains("not a database"), "{failure}");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn a_file_in_no_directory_is_named() {
    let bench = Bench::scabbard(1).stored_in("sqlite:///nowhere/at/all.db");
    let failure = failure(&bench);
    assert!(failure.contains("/nowhere/at/all.db"), "{failure}");
}

#[test]
fn a_directory_instead_of_a_file_is_named() {
    let bench = Bench::scabbard(1);
    fs::create_dir(bench.database_file()).unwrap();
    let failure = failure(&bench);
    assert!(failure.contains(&bench.database_file().display().to_string()), "{failure}");
}

#[test]
fn a_newer_schema_is_left_to_the_release_that_brought_it() {
    let bench = Bench::scabbard(1);
    made(&bench)
        .batch_execute("insert into __diesel_schema_migrations (version) values ('29991231000000')")
        .unwrap();
    let failure = failure(&bench);
    assert!(failure.contains("start the release that brought it"), "{failure}");
}

#[test]
fn a_file_that_another_keeps_locked_is_said_to_be() {
    let bench = Bench::scabbard(1);
    let mut other = made(&bench);
    other.batch_execute("begin immediate").unwrap();
    let failure = failure(&bench);
    assert!(failure.contains("the database is locked"), "{failure}");
    other.batch_execute("rollback").unwrap();
    bench.serve().stop();
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let bench = Bench::scabbard(1).stored_in("postgresql://user:hidden@127.0.0.1:1/grid");
    let Ended { code, stderr, .. } = Ended::of(bench.command(&QUIET));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the database cannot be reached: "), "{stderr}");
    assert!(stderr.contains("127.0.0.1") && !stderr.contains("hidden"), "{stderr}");
}

#[test]
fn a_server_that_takes_no_writes_is_said_to_be_read_only() {
    let database = TestDatabase::create();
    let read_only = "options=-cdefault_transaction_read_only%3Don%20";
    let url = database.url().replacen("options=", read_only, 1);
    let failure = failure(&Bench::scabbard(1).stored_in(&url));
    assert!(failure.contains("the database is read-only"), "{failure}");
}

#[test]
fn a_file_that_may_not_be_written_is_named() {
    let bench = Bench::scabbard(1);
    drop(made(&bench));
    let dir = bench.path().join("read-only");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("batches.db");
    fs::copy(bench.database_file(), &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o555)).unwrap();
    let bench = bench.stored_in(&sqlite(&file));
    let ended = Ended::of(without_rights(&bench, bench.command(&QUIET)));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    let failure = ended.failure();
    assert!(failure.contains("readonly database"), "{failure}");
    assert!(failure.contains(&file.display().to_string()), "{failure}");
}

/// The same, run by somebody with no rights where we are root, who may write whatever is read-only.
fn without_rights(bench: &Bench, command: Command) -> Command {
    const NOBODY: u32 = 65_534;
    if fs::metadata(bench.path()).unwrap().uid() != 0 {
        return command;
    }
    let program = bench.path().join("program");
    fs::copy(command.get_program(), &program).unwrap();
    for path in [bench.path().to_owned(), bench.path().join("key")] {
        chown(path, Some(NOBODY), None).unwrap();
    }
    let mut by_nobody = Command::new(program);
    by_nobody
        .args(command.get_args())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .uid(NOBODY);
    by_nobody
}

#[test]
fn a_server_without_space_refuses_and_goes_on_when_it_has_some() {
    let database = TestDatabase::create();
    let bench = Bench::scabbard(2).stored_in(database.url());
    let serving = bench.serve();
    let all = batches(&bench.services, 5);
    let (before, after) = all.split_at(4);
    serving.hand_in(before);
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
    refuses(&serving, &after[..1]);
    other.batch_execute("drop trigger full_disk on batch_payloads").unwrap();
    serving.hand_in(after);
    bench.until_all_committed(&all);
    serving.stop();
}

/// A limit on the size of files is as good as a full disk.
#[test]
fn a_file_that_cannot_grow_refuses_and_what_was_taken_before_is_there_after_a_new_start() {
    let bench = Bench::scabbard(1);
    bench.ledger.freeze();
    let small = "trap '' XFSZ && ulimit -f 400";
    let serving = Serving::start(after(small, bench.command(&[("--log", "off")])));
    let all = batches(&bench.services, 1_000);
    let mut lists = all.chunks(50);
    let mut taken = 0;
    let refused = lists
        .find_map(|list| {
            let answer = serving.try_hand_in(list).unwrap();
            if answer.status == 202 {
                taken += list.len();
                return None;
            }
            Some(answer)
        })
        .unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    serving.program.kill();

    bench.ledger.thaw();
    let serving = bench.serve();
    bench.until_all_committed(&all[..taken]);
    serving.stop();
}

fn refuses(serving: &Serving, batches: &[Made]) {
    let answer = serving.try_hand_in(batches).unwrap();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &1012.into()));
}
