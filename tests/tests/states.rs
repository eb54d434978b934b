//! docs/states.md shows the edges that core's `transition` has.

use std::{collections::BTreeMap, env, fs, path::Path};

use grid_batch_core::batches::{BatchState, Decision, Event, LedgerStatus, Progress, transition};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;

const ATTEMPT: u32 = 1;

#[test]
fn state_diagram_shows_the_transitions() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/states.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once("```mermaid\n").unwrap();
    let (present, after) = rest.split_once("```").unwrap();
    let expected = diagram();
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, format!("{before}```mermaid\n{expected}```{after}")).unwrap();
    } else {
        assert_eq!(present, expected, "run this test with UPDATE_DOCS=1 to update docs/states.md");
    }
}

/// One arrow for each pair of states, labeled with the events that lead from one to the other.
fn diagram() -> String {
    let mut labels: BTreeMap<(BatchState, BatchState), Vec<String>> = BTreeMap::new();
    for from in BatchState::ALL {
        for (label, event) in events() {
            let progress = Progress { state: from, attempts: ATTEMPT, ..Progress::NEW };
            if let Ok(to) = transition(progress, event)
                && to.state != from
            {
                labels.entry((from, to.state)).or_default().push(label);
            }
        }
    }
    let mut lines = vec!["stateDiagram-v2".to_owned(), "    [*] --> New".to_owned()];
    for ((from, to), labels) in labels {
        lines.push(format!("    {from:?} --> {to:?} : {}", labels.join(", ")));
    }
    for state in BatchState::ALL.into_iter().filter(|state| state.is_terminal()) {
        lines.push(format!("    {state:?} --> [*]"));
    }
    lines.join("\n") + "\n"
}

fn events() -> Vec<(String, Event)> {
    let outcomes = [
        Outcome::Accepted,
        Outcome::Committed,
        Outcome::Busy,
        Outcome::NotSent,
        Outcome::Parked,
        Outcome::PoolParked,
        Outcome::RefusedBatch,
        Outcome::NotProvedNew,
        Outcome::Rejected,
        Outcome::Refused,
        Outcome::Ambiguous,
    ]
    .map(|outcome| (outcome.to_string(), Event::Outcome { attempt: ATTEMPT, outcome }));
    let statuses = [
        LedgerStatus::Pending,
        LedgerStatus::Valid,
        LedgerStatus::Invalid,
        LedgerStatus::Committed,
        LedgerStatus::NotReported,
    ]
    .map(|status| (format!("status {status:?}"), Event::status(status)));
    let evidence = [
        Evidence::Committed,
        Evidence::Present,
        Evidence::Absent,
        Evidence::Repeatable,
        Evidence::Lost,
        Evidence::StoppedNode,
        Evidence::NeverApplicable,
        Evidence::Expired,
        Evidence::Inconclusive,
    ]
    .map(|evidence| {
        (format!("evidence {evidence:?}"), Event::Evidence { attempt: ATTEMPT, evidence })
    });
    let decisions = [Decision::Committed, Decision::Invalid, Decision::Absent].map(|decision| {
        (format!("decided {decision}"), Event::Decided { attempt: ATTEMPT, decision })
    });
    [("taken".to_owned(), Event::Taken)]
        .into_iter()
        .chain(outcomes)
        .chain([
            ("owner lost".to_owned(), Event::OwnerLost { attempt: ATTEMPT }),
            ("database restored".to_owned(), Event::DatabaseRestored),
            ("dependency invalid".to_owned(), Event::DependencyInvalid),
        ])
        .chain(statuses)
        .chain(evidence)
        .chain(decisions)
        .collect()
}
