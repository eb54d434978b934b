//! The commands `held` and `decide`.

use grid_batch_core::batches::{BatchState, Change, Event, IntakeStore, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};
use grid_batch_test_support::process::{ProcessOutput, run};
use tempfile::TempDir;

use crate::{GRID_BATCH, harness::count_in_state};

const SERVICE: &str = "abc::d";

/// A database with one held batch.
struct HeldBatch {
    _directory: TempDir,
    database: String,
    store: Store,
    claims: ClaimStore,
    batch_id: String,
}

impl HeldBatch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", directory.path().join("batches.db").display());
        let store = Store::open(&database.parse().unwrap(), StoreOptions::default()).unwrap();
        let batch_id = "5a".repeat(64);
        let batch = NewBatch {
            service_id: SERVICE.parse().unwrap(),
            batch_id: batch_id.parse().unwrap(),
            signer: None,
            transaction_ids: vec![batch_id.parse().unwrap()],
            serialized_batch: vec![1],
            declared_access: None,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        };
        store.add(&[&[batch]]).unwrap().remove(0).unwrap();
        let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
        claims.take(1).unwrap();
        let held = Self { _directory: directory, database, store, claims, batch_id };
        held.hold_next_attempt();
        held
    }

    /// Takes the batch, whose outcome is then unknown.
    fn hold_next_attempt(&self) {
        let taken = self.claims.take_next(&[SERVICE.parse().unwrap()]).unwrap().remove(0);
        let attempt = taken.attempt;
        let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
        let ambiguous = change(Event::Outcome { attempt, outcome: Outcome::Ambiguous });
        let inconclusive = change(Event::Evidence { attempt, evidence: Evidence::Inconclusive });
        let hold = Change { hold: Some("no evidence found".to_owned()), ..inconclusive };
        self.store.record(&[ambiguous, hold]).unwrap();
    }

    fn run_command(&self, arguments: &[&str]) -> ProcessOutput {
        let mut database = vec!["--database", self.database.as_str()];
        if arguments[0] == "decide" {
            database.extend(["--reason", "a test"]);
        }
        run(GRID_BATCH.command(arguments.iter().chain(&database)))
    }
}

#[test]
fn held_batch_is_listed_with_its_reason() {
    let held = HeldBatch::new();
    let listed = held.run_command(&["held"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines[0], format!("{SERVICE} {:.32}", held.batch_id));
    assert!(lines[1].starts_with("    attempt 1, in doubt, held "), "{listed}");
    assert!(lines[1].ends_with(" s ago, 0 behind it"), "{listed}");
    assert_eq!(lines[2], "    no evidence found");
    assert_eq!(lines[3..], [format!("1 batch is held in {}", held.database)]);
}

#[test]
fn operator_can_decide_once() {
    for (decision, expected, state) in [
        ("committed", "after attempt 1, the batch is committed", BatchState::Committed),
        ("invalid", "after attempt 1, the batch is invalid", BatchState::Invalid),
        ("absent", "after attempt 1, the batch is absent", BatchState::Absent),
    ] {
        let held = HeldBatch::new();
        let decide = ["decide", SERVICE, &held.batch_id, decision, "--attempt", "1"];
        let output = held.run_command(&decide).stdout;
        assert!(output.contains(expected), "{output}");
        assert_eq!(
            output.contains("The ledger may have had this batch."),
            state == BatchState::Invalid,
            "{output}"
        );
        assert_eq!(count_in_state(&held.store, state), 1);
        let listed = held.run_command(&["held"]).stdout;
        assert_eq!(listed, format!("nothing is held in {}\n", held.database));
        let second = held.run_command(&decide);
        assert_eq!(second.exit_code, Some(1), "{second:?}");
        assert!(second.error_message().contains("nothing changed: "), "{second:?}");
    }
}

#[test]
fn decision_about_a_missing_batch_fails() {
    let held = HeldBatch::new();
    let other = "5b".repeat(64);
    let output = held.run_command(&["decide", SERVICE, &other, "absent", "--attempt", "1"]);
    assert!(output.error_message().contains("there is no such batch"), "{output:?}");
    assert_eq!(count_in_state(&held.store, BatchState::InDoubt), 1);
}

#[test]
fn decision_without_an_attempt_is_refused() {
    let held = HeldBatch::new();
    let output = held.run_command(&["decide", SERVICE, &held.batch_id, "absent"]);
    assert_eq!(output.exit_code, Some(2), "{output:?}");
    assert!(output.stderr.contains("--attempt <NUMBER>"), "{output:?}");
    assert_eq!(count_in_state(&held.store, BatchState::InDoubt), 1);
}

#[test]
fn decision_names_the_attempt_that_was_looked_at() {
    let held = HeldBatch::new();
    let decide = |decision, attempt| {
        held.run_command(&["decide", SERVICE, &held.batch_id, decision, "--attempt", attempt])
    };
    let decided = |output: ProcessOutput, text| assert!(output.stdout.contains(text), "{output:?}");
    decided(decide("absent", "1"), "after attempt 1, the batch is absent");
    held.hold_next_attempt();

    let late = decide("committed", "1");
    assert_eq!(late.exit_code, Some(1), "{late:?}");
    let refusal = "the decision is about attempt 1; the batch is at attempt 2";
    assert!(late.error_message().contains(refusal), "{late:?}");
    assert_eq!(count_in_state(&held.store, BatchState::InDoubt), 1);
    decided(decide("committed", "2"), "after attempt 2, the batch is committed");
}
