use grid_batch_core::{BatchState, Change, Event, Evidence, Outcome};

use super::lane::Lane;

/// What an event says about a change beside its kind and the state: what went wrong, or who decided what.
pub(super) fn event_detail(lane: &Lane, change: &Change) -> Option<String> {
    let word = match change.event {
        Event::Outcome { outcome: Outcome::Accepted | Outcome::Committed, .. } => None,
        Event::Outcome { outcome, .. } => Some(outcome.to_string()),
        Event::Evidence { evidence, .. } => Some(evidence_word(evidence).to_owned()),
        Event::Decided { decision, .. } => Some(decision.to_string()),
        _ => None,
    };
    let receipt = change.receipts.iter().map(|receipt| receipt.error_message.as_str());
    let invalid = lane.progress().state == BatchState::Invalid || lane.progress().invalid_reported;
    let receipt = receipt.filter(|_| invalid).find(|message| !message.is_empty());
    match (word, receipt.or(change.error.as_deref())) {
        (Some(word), Some(error)) => Some(format!("{word}: {error}")),
        (word, error) => word.or_else(|| error.map(str::to_owned)),
    }
}

fn evidence_word(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Committed => "committed",
        Evidence::Present => "present",
        Evidence::Absent => "absent",
        Evidence::Repeatable => "to be repeated",
        Evidence::Lost => "lost",
        Evidence::StoppedNode => "a node stopped answering",
        Evidence::NeverApplicable => "never applicable",
        Evidence::Expired => "expired",
        Evidence::Inconclusive => "inconclusive",
    }
}
