//! The commands for operators: which database, which batches, several at once, as JSON, and with no more
//! than the right to read.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{BatchState, IntakeStore, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::process::{ProcessOutput, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{GRID_BATCH, harness::count_in_state};

const COMMANDS: [&[&str]; 5] = [
    &["held"],
    &["show", "a::b", "5a5a5a5a"],
    &["hold", "a::b", "5a5a5a5a", "--reason", "look first"],
    &["release", "a::b", "5a5a5a5a", "--reason", "looked at it"],
    &["decide", "a::b", "5a5a5a5a", "invalid", "--attempt", "0", "--reason", "not wanted"],
];

/// A database of three services, each with two batches.
struct Batches {
    _directory: TempDir,
    _server: Option<TestDatabase>,
    database: String,
    store: Store,
}

const SERVICES: [&str; 3] = ["a::b", "a::c", "x::y"];

/// The id of a batch, by its service and its position there.
fn id(service: usize, position: usize) -> String {
    format!("5a5a5a5a{service}{position}{}", "0".repeat(118))
}

impl Batches {
    fn on_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", directory.path().join("batches.db").display());
        Self::new(directory, None, database)
    }

    fn on_postgres() -> Self {
        let server = TestDatabase::create();
        let database = server.url().to_owned();
        Self::new(tempfile::tempdir().unwrap(), Some(server), database)
    }

    fn new(directory: TempDir, server: Option<TestDatabase>, database: String) -> Self {
        let store = Store::open(&database.parse().unwrap(), StoreOptions::default()).unwrap();
        for (number, service) in SERVICES.iter().enumerate() {
            let list = [0, 1].map(|position| {
                let batch_id = id(number, position).parse().unwrap();
                NewBatch {
                    service_id: service.parse().unwrap(),
                    batch_id,
                    transaction_ids: vec![batch_id],
                    serialized_batch: vec![1],
                    signer: None,
                    declared_access: None,
                    label: None,
                    client: None,
                    declared_new: false,
                    deadline: None,
                    trace: None,
                }
            });
            store.add(&[&list]).unwrap().remove(0).unwrap();
        }
        // It records the rules that commands follow, as a server does.
        let server_runs = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
        server_runs.release().unwrap();
        Self { _directory: directory, _server: server, database, store }
    }

    fn hold(&self, service: usize, position: usize, reason: &str) {
        let (name, id) = (SERVICES[service].parse().unwrap(), id(service, position));
        self.store.hold_batch(&name, &id.parse().unwrap(), reason).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> ProcessOutput {
        run_in(&self.database, arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.stderr, "", "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    /// The URL without the password.
    fn name(&self) -> String {
        let url: grid_batch_store::DatabaseUrl = self.database.parse().unwrap();
        url.to_string()
    }
}

fn command_in(database: &str, arguments: &[&str]) -> Command {
    GRID_BATCH.command(arguments.iter().chain(&["--database", database]))
}

fn run_in(database: &str, arguments: &[&str]) -> ProcessOutput {
    run(command_in(database, arguments))
}

fn held_ids(document: &Value) -> Vec<&str> {
    let batches = document["batches"].as_array().unwrap();
    batches.iter().map(|batch| batch["id"].as_str().unwrap()).collect()
}

#[test]
fn mistyped_path_creates_no_database() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("typo.db");
    let database = format!("sqlite://{}", file.display());
    for command in COMMANDS {
        let output = run_in(&database, command);
        let expected = format!("there is no database {database}; check its name");
        assert_eq!(output.error_message(), expected, "{command:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{command:?}");
    }
}

#[test]
fn database_that_no_server_used_gets_no_tables() {
    let database = TestDatabase::create();
    for command in COMMANDS {
        let output = run_in(database.url(), command);
        let message = output.error_message();
        assert!(message.starts_with("no server has used the database postgres"), "{message}");
    }
    let mut connection = PgConnection::establish(database.url()).unwrap();
    // It would fail if the table existed.
    connection.batch_execute("create table grid_batch_migrations (a int)").unwrap();
}

fn assert_database_is_named(batches: &Batches) {
    let name = batches.name();
    assert_eq!(batches.run(&["held"]).stdout, format!("nothing is held in {name}\n"));
    let missing = batches.run(&["show", "a::b", "5b5b5b5b"]);
    assert!(missing.error_message().contains(&name), "{missing:?}");
    for command in &COMMANDS[1..] {
        let exact = |text: &&'static str| if *text == "5a5a5a5a" { "5a5a5a5a00" } else { *text };
        let output = batches.run(&command.iter().map(exact).collect::<Vec<_>>());
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        let first_line = output.stdout.lines().next().unwrap();
        let words: Vec<_> = first_line.split_whitespace().collect();
        assert_eq!(words, ["database", name.as_str()], "{output:?}");
    }
}

#[test]
fn each_command_names_its_database() {
    assert_database_is_named(&Batches::on_sqlite());
}

#[test]
fn each_command_names_its_database_on_postgres() {
    assert_database_is_named(&Batches::on_postgres());
}

#[test]
fn first_characters_name_a_batch() {
    let batches = Batches::on_sqlite();
    let held = batches.run(&["hold", "a::b", "5a5a5a5a01", "--reason", "look first"]);
    assert_eq!(held.exit_code, Some(0), "{held:?}");
    assert_eq!(held_ids(&batches.json(&["held"])), [id(0, 1)]);
    let short = batches.run(&["show", "a::b", "5a5a5a5"]);
    assert_eq!(short.exit_code, Some(2), "{short:?}");
    assert!(short.stderr.contains("the first 8 to 128 characters"), "{short:?}");
}

#[test]
fn actions_are_logged_unless_they_are_dry_runs() {
    let batches = Batches::on_sqlite();
    let hold = ["hold", "a::b", "5a5a5a5a00", "--reason", "look first"];
    let dry = batches.run(&[&hold[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("nothing changed"), "{dry:?}");
    assert!(held_ids(&batches.json(&["held"])).is_empty());
    assert_eq!(batches.run(&hold).exit_code, Some(0));
    let pause = ["pause", "--all", "--reason", "maintenance"];
    assert_eq!(batches.run(&pause).exit_code, Some(0));
    let again = batches.run(&pause);
    assert!(again.error_message().contains("paused already"), "{again:?}");
    assert_eq!(batches.run(&["resume", "--all", "--reason", "done"]).exit_code, Some(0));

    let logged = batches.json(&["actions"]);
    let of = |field: &str| -> Vec<Value> {
        logged["actions"].as_array().unwrap().iter().map(|it| it[field].clone()).collect()
    };
    assert_eq!(of("verb"), ["resume", "pause", "hold"]);
    assert_eq!(of("reason"), ["done", "maintenance", "look first"]);
    assert_eq!(of("source"), ["command_line"; 3]);
    let of_batch = batches.json(&["actions", "--batch", &id(0, 0)]);
    assert_eq!(of_batch["actions"].as_array().unwrap().len(), 1);
}

#[test]
fn ambiguous_characters_list_the_candidates() {
    let batches = Batches::on_sqlite();
    let output = batches.run(&["hold", "a::b", "5a5a5a5a", "--reason", "look first"]);
    let message = output.error_message();
    assert!(message.starts_with("5a5a5a5a names 2 batches; give more characters"), "{message}");
    for candidate in ["a::b 5a5a5a5a00", "a::b 5a5a5a5a01"] {
        assert!(message.contains(candidate), "{message}");
    }
    let others = batches.run(&["show", "*", "5a5a5a5a"]);
    assert!(others.error_message().contains("names 6 batches"), "{others:?}");
    assert!(held_ids(&batches.json(&["held"])).is_empty());
}

#[test]
fn held_batches_are_filtered() {
    let batches = Batches::on_sqlite();
    (0..3).for_each(|service| batches.hold(service, 0, "look first"));
    batches.hold(1, 1, "and this");
    let all = batches.json(&["held"]);
    assert_eq!(held_ids(&all), [id(0, 0), id(1, 0), id(1, 1), id(2, 0)]);
    let of = |pattern| batches.json(&["held", "--service", pattern]);
    assert_eq!(held_ids(&of("a::*")), [id(0, 0), id(1, 0), id(1, 1)]);
    assert_eq!(held_ids(&of("x::y")), [id(2, 0)]);
    let matches_nothing = batches.run(&["held", "--service", "z*"]);
    assert!(matches_nothing.stdout.starts_with("nothing that is held matches"));
    assert!(held_ids(&batches.json(&["held", "--older-than", "1h"])).is_empty());
    assert_eq!(held_ids(&batches.json(&["held", "--older-than", "0s"])).len(), 4);
}

#[test]
fn held_batches_as_json_have_what_is_known() {
    let batches = Batches::on_sqlite();
    batches.hold(0, 0, "look first");
    batches.hold(0, 1, "and this");
    let document = batches.json(&["held"]);
    let [first, second] = document["batches"].as_array().unwrap().as_slice() else {
        panic!("{document}")
    };
    assert_eq!(first["service_id"], "a::b");
    assert_eq!((&first["attempts"], &first["state"]), (&json!(0), &json!("new")));
    assert_eq!((&first["ahead"], &first["behind"]), (&json!(0), &json!(1)));
    assert_eq!((&second["ahead"], &second["behind"]), (&json!(1), &json!(0)));
    let hold = &first["held"];
    assert_eq!(hold["reason"], "held by an operator: look first");
    assert_eq!(hold["until_decision"], true);
    assert!(hold["since"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn show_tells_why_a_waiting_batch_waits() {
    let batches = Batches::on_sqlite();
    batches.hold(0, 0, "look first, because the ledger was restored from a copy of last week");
    let shown = batches.run(&["show", "a::b", &id(0, 1)]).stdout;
    assert!(shown.contains("waits for  1 earlier batch of its service"), "{shown}");
    assert!(shown.contains("position   1 before it, 0 behind it"), "{shown}");
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    let document = batches.json(&["show", "a::*", &id(0, 1), &id(1, 0)]);
    let shown = &document["batches"];
    assert_eq!((&shown[0]["wait"]["cause"], &shown[0]["ahead"]), (&json!("behind"), &json!(1)));
    let head = &shown[0]["wait"]["behind"];
    assert_eq!(head["batch_id"], id(0, 0));
    assert!(head["wait"]["held"]["reason"].as_str().unwrap().contains("look first"));
    assert_eq!(
        (&shown[1]["wait"]["cause"], &shown[1]["behind"]),
        (&json!("submission"), &json!(1))
    );
}

/// One of three is refused: the others are decided, and each is reported.
fn assert_several_are_decided(batches: &Batches) {
    let [a, b, c] = [0, 1, 2].map(|service| format!("{}@0", &id(service, 0)[..10]));
    let wrong = format!("{}@7", &id(1, 1)[..10]);
    let output = batches.run(&["decide", "*", &a, &wrong, &c, "invalid", "--reason", "not wanted"]);
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert_eq!(output.stdout.matches("after attempt 0, the batch is invalid").count(), 2);
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(output.stderr.contains("the decision is about attempt 7"), "{output:?}");
    assert_eq!(count_in_state(&batches.store, BatchState::Invalid), 2);

    // A second time, as JSON.
    let arguments = ["decide", "*", &a, &b, "invalid", "--reason", "not wanted", "--json"];
    let again = batches.run(&arguments);
    assert_eq!((again.exit_code, again.stderr.as_str()), (Some(1), ""), "{again:?}");
    let results: Value = serde_json::from_str(&again.stdout).unwrap();
    let changed: Vec<_> = (0..2).map(|at| results["results"][at]["changed"].clone()).collect();
    assert_eq!(changed, [json!(false), json!(true)]);
    assert_eq!(count_in_state(&batches.store, BatchState::Invalid), 3);
}

#[test]
fn several_batches_are_decided_and_each_is_reported() {
    assert_several_are_decided(&Batches::on_sqlite());
}

#[test]
fn several_batches_are_decided_on_postgres() {
    assert_several_are_decided(&Batches::on_postgres());
}

#[test]
fn nothing_changes_if_one_batch_is_not_found() {
    let batches = Batches::on_sqlite();
    let missing = "5b5b5b5b";
    let output = batches.run(&["hold", "a::b", "5a5a5a5a00", missing, "--reason", "look first"]);
    assert!(output.error_message().contains(missing), "{output:?}");
    assert!(held_ids(&batches.json(&["held"])).is_empty());
}

#[test]
fn each_batch_needs_an_attempt() {
    let batches = Batches::on_sqlite();
    let named = format!("{}@0", &id(0, 0)[..10]);
    let output = batches.run(&["decide", "a::b", &named, "5a5a5a5a01", "invalid", "--reason", "x"]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
    assert!(output.stderr.contains("--attempt <NUMBER>"), "{output:?}");
    assert_eq!(count_in_state(&batches.store, BatchState::Invalid), 0);
}

/// A role that may only read sees what is held, and why.
#[test]
fn right_to_read_is_enough_on_postgres() {
    let batches = Batches::on_postgres();
    batches.hold(0, 0, "look first");
    let mut connection = PgConnection::establish(&batches.database).unwrap();
    let role = format!("reader_{}", std::process::id());
    connection
        .batch_execute(&format!(
            "create role {role} login password 'hidden';
             do $$ begin execute format('grant usage on schema %I to {role}', current_schema()); end $$;
             do $$ begin execute format('grant select on all tables in schema %I to {role}',
                 current_schema()); end $$"
        ))
        .unwrap();
    let reader = as_user(&batches.database, &role, "hidden");
    let listed = run_in(&reader, &["held"]);
    let shown = run_in(&reader, &["show", "a::b", &id(0, 1)]);
    let refused = run_in(&reader, &["hold", "a::b", &id(0, 0), "--reason", "look first"]);
    connection.batch_execute(&format!("drop owned by {role}; drop role {role}")).unwrap();
    assert!(listed.stdout.contains("held by an operator: look first"), "{listed:?}");
    assert!(!listed.stdout.contains("hidden"), "{listed:?}");
    assert!(shown.stdout.contains("1 earlier batch of its service"), "{shown:?}");
    assert!(refused.error_message().contains("permission denied"), "{refused:?}");
}

/// The same URL with another user and password.
fn as_user(url: &str, user: &str, password: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let address = address.split_once('@').map_or(address, |(_, address)| address);
    let others = parameters.split('&').filter(|parameter| !parameter.starts_with("user="));
    let parameters = others.collect::<Vec<_>>().join("&");
    format!("{scheme}://{user}:{password}@{address}?{parameters}")
}

/// A file in a folder without the right to write, which no server has open.
#[test]
fn file_that_cannot_be_written_can_be_read() {
    let batches = Batches::on_sqlite();
    batches.hold(0, 0, "look first");
    let Batches { _directory: directory, store, database, .. } = batches;
    drop(store);
    fs::copy(command_in(&database, &[]).get_program(), directory.path().join("program")).unwrap();
    let file = directory.path().join("batches.db");
    let read_only = |mode, folder| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(folder)).unwrap();
    };
    read_only(0o444, 0o555);
    let run =
        |arguments| run(as_unprivileged_user(directory.path(), command_in(&database, arguments)));
    let listed = run(&["held"]);
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let shown = run(&["show", "a::b", &id(0, 0)]);
    let after = fs::metadata(&file).unwrap().modified().unwrap();
    read_only(0o644, 0o755);
    assert!(listed.stdout.contains("held by an operator: look first"), "{listed:?}");
    assert!(shown.stdout.contains("an operator's decision"), "{shown:?}");
    assert_eq!(before, after);
}

/// The same command, run by an unprivileged user if the current user is root, because root may write to
/// read-only files.
fn as_unprivileged_user(directory: &Path, command: Command) -> Command {
    const UNPRIVILEGED_UID: u32 = 65_534;
    if fs::metadata(directory).unwrap().uid() != 0 {
        return command;
    }
    let mut unprivileged = Command::new(directory.join("program"));
    unprivileged.args(command.get_args()).env_clear().uid(UNPRIVILEGED_UID);
    unprivileged
}

#[test]
fn older_schema_is_refused_and_not_migrated() {
    let batches = Batches::on_postgres();
    let mut connection = PgConnection::establish(&batches.database).unwrap();
    connection
        .batch_execute("delete from grid_batch_migrations where version > '20261122'")
        .unwrap();
    for command in COMMANDS {
        let output = batches.run(command);
        let message = output.error_message();
        assert!(message.contains("start the server of this release"), "{command:?}: {message}");
    }
}
