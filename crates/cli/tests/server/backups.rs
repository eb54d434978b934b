//! `docs/backup-and-upgrade.md`: its commands run, and neighboring releases work side by side.

use diesel::connection::SimpleConnection;
use grid_batch_core::batches::BatchState;
use grid_batch_test_postgres::{PostgresServer, TestDatabase};
use grid_batch_test_support::{batches::signed_batches, process::TestProcess};
use serde_json::json;

use crate::{
    client_commands::{blocks, run_script},
    harness::{BatchHarness, count_in_state},
    instances::group::InstanceGroup,
};

const PAGE: &str = include_str!("../../../../docs/backup-and-upgrade.md");

/// The blocks of SQLite, and those of PostgreSQL: a backup and a restore of each.
fn blocks_of_databases() -> [Vec<&'static str>; 2] {
    let (of_postgres, of_sqlite) =
        blocks(PAGE).into_iter().partition(|it| it.contains("DATABASE_URL"));
    [of_sqlite, of_postgres]
}

/// A backup with an open batch is restored after the batch was committed: nothing is applied twice.
fn assert_restored(
    harness: &BatchHarness,
    [backup, restore]: [&str; 2],
    variables: &[(&str, &str)],
) {
    let reason = json!({"reason": "a backup"});
    let server = harness.serve();
    assert_eq!(server.post_json("/v1/pause", &reason).status, 200);
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    server.stop();
    let run = |block: &str| {
        let output = run_script(block, harness.path(), variables);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(backup);
    let server = harness.serve();
    assert_eq!(server.post_json("/v1/resume", &reason).status, 200);
    harness.wait_until_all_committed(&batches);
    server.stop();
    let printed = run(restore);
    assert!(printed.contains("1 batches of 1 services are in doubt"), "{printed}");
    assert_eq!(count_in_state(&harness.store(), BatchState::Committed), 0);
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn commands_of_the_page_restore_a_backup() {
    let [of_sqlite, _] = blocks_of_databases();
    let harness = BatchHarness::sawtooth();
    let file = harness.path().join("grid-batch.db");
    let harness = harness.with_database(&format!("sqlite://{}", file.display()));
    assert_restored(&harness, of_sqlite.try_into().unwrap(), &[]);
}

#[test]
fn commands_of_the_page_restore_a_backup_of_postgres() {
    let [_, of_postgres] = blocks_of_databases();
    // The commands write and restore all schemas, and other tests have theirs in the shared database.
    let server = PostgresServer::start();
    let database = TestDatabase::create_on(&server);
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let variables = [("DATABASE_URL", database.url())];
    assert_restored(&harness, of_postgres.try_into().unwrap(), &variables);
}

#[test]
fn restored_waits_for_leases_of_the_backup() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let server = harness.serve_with(&[("--claims-idle-expiry", "3s")]);
    let renewed = harness.run_command(&["restored", "--reason", "a test"]);
    assert_eq!(renewed.exit_code, Some(1), "an instance runs: {renewed:?}");
    assert!(renewed.stderr.contains("instances are running"), "{renewed:?}");
    server.process.kill();
    let restored = harness.run_command(&["restored", "--reason", "a test"]);
    assert_eq!(restored.exit_code, Some(0), "{restored:?}");
    assert!(restored.stderr.contains("for the end of the leases"), "{restored:?}");
}

/// What a migration of the next release may do.
const ADDITIONS: &str = "alter table batches add column added_by_the_next_release text;
    create table added_by_the_next_release (id bigint primary key, text text not null);
    create index added_by_the_next_release_index on batches (added_by_the_next_release);
    insert into grid_batch_migrations (version) values ('29991231000000');";

#[test]
fn instance_goes_on_beside_one_of_the_next_release() {
    let group = InstanceGroup::new(2);
    let [first, second] = ["first", "second"].map(|name| group.start(name));
    let before = group.batches(0);
    first.submit(&before);
    group.connect().batch_execute(ADDITIONS).unwrap();
    let after = group.batches(1);
    second.submit(&after);
    for batch in [before, after].concat() {
        let path = format!("/v1/batches/{}?wait=60", batch.batch_id);
        assert_eq!(first.get(&path)["state"], "committed");
    }
    second.stop();
    // The old release does not start again with the new schema, and says why.
    let flags = InstanceGroup::flags("second", &[]);
    let refused = TestProcess::spawn(group.harness.command(&flags)).wait();
    assert_ne!(refused.exit_code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("29991231000000"), "{refused:?}");
    // `migrate --check`, by which the page decides about a rollback, says the same.
    let checked = group.harness.run_command(&["migrate", "--check"]);
    assert_eq!(checked.exit_code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("29991231000000 is of a later release"), "{checked:?}");
    first.stop();
}
