use grid_batch_core::Timestamp;
use grid_batch_core::queries::WaitReason;

use super::reading::{Reading, ServiceReading, WaitReading};

/// What a service does, or what keeps it from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) text: String,
    /// What ends the first thing that keeps it from working.
    pub(super) ends: Option<String>,
    /// 0 is the most urgent for an operator.
    rank: usize,
}

/// The state of a service in words. States that need an operator come first.
pub(super) fn state(service: &ServiceReading, reading: &Reading) -> State {
    let held = (service.held > 0).then(|| held(service, reading));
    let stopped = (service.halts > 0).then(|| "stopped: an invalid batch stops it".to_owned());
    let unclaimed =
        (!service.is_claimed).then(|| "not claimed: no instance works on it".to_owned());
    let paused = service.paused.as_ref().map(|reason| format!("paused: {reason}"));
    let failing = service.failing.as_ref().map(|error| format!("failing: {error}"));
    let parked = service.parked.as_ref().map(|reason| format!("parked: {reason}"));
    let since = Timestamp::default();
    let told = [
        (held, WaitReason::Held),
        (stopped, WaitReason::Halt { since }),
        (unclaimed, WaitReason::Lease { expired: None }),
        (paused, WaitReason::Paused { since, pause: None }),
        (failing, WaitReason::Delayed),
        (parked, WaitReason::Parked),
    ];
    let told = told.into_iter().filter_map(|(text, reason)| {
        Some(WaitReading { text: text?, ends: reason.about().ends.to_owned() })
    });
    let waits: Vec<WaitReading> = told.chain(service.waits.iter().cloned()).collect();
    let text = if waits.is_empty() {
        "running".to_owned()
    } else {
        waits.iter().map(|wait| wait.text.as_str()).collect::<Vec<_>>().join("; ")
    };
    let ends = waits.into_iter().next().map(|first| first.ends);
    State { text, ends, rank: rank(service) }
}

/// The position of a state in a list that is sorted by state.
pub(super) fn rank(service: &ServiceReading) -> usize {
    let states = [
        service.held > 0,
        service.halts > 0,
        !service.is_claimed,
        service.paused.is_some(),
        service.failing.is_some(),
        service.parked.is_some(),
        !service.waits.is_empty(),
    ];
    states.iter().position(|applies| *applies).unwrap_or(states.len())
}

impl State {
    pub(super) fn needs_operator(&self) -> bool {
        self.rank < 3
    }

    pub(super) fn is_running(&self) -> bool {
        self.rank > 6
    }
}

fn held(service: &ServiceReading, reading: &Reading) -> String {
    let batch = reading.held.iter().find(|batch| batch.service == service.id);
    let reason = batch.map_or("", |batch| batch.reason.as_str());
    match (service.held, reason) {
        // The reason is `held by …`.
        (1, reason) if reason.starts_with("held") => reason.to_owned(),
        (1, "") => "held".to_owned(),
        (1, reason) => format!("held: {reason}"),
        (count, "") => format!("{count} batches held"),
        (count, reason) => format!("{count} batches held: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::reading::HeldReading;

    #[test]
    fn state_says_what_needs_an_operator_first() {
        let held = HeldReading {
            service: "a::b".to_owned(),
            reason: "no proof".to_owned(),
            ..HeldReading::default()
        };
        let reading = Reading { held: vec![held], ..Reading::default() };
        let running =
            ServiceReading { id: "a::b".to_owned(), is_claimed: true, ..ServiceReading::default() };
        assert_eq!(state(&running, &reading).text, "running");
        assert!(state(&running, &reading).is_running());
        let paused = ServiceReading { paused: Some("update".to_owned()), ..running.clone() };
        assert_eq!(state(&paused, &reading).text, "paused: update");
        assert!(!state(&paused, &reading).needs_operator());
        let failing = ServiceReading { failing: Some("503".to_owned()), ..paused.clone() };
        assert_eq!(state(&failing, &reading).text, "paused: update; failing: 503");
        let parked = ServiceReading { parked: Some("300 gwei".to_owned()), ..running.clone() };
        assert_eq!(state(&parked, &reading).text, "parked: 300 gwei");
        assert!(!state(&parked, &reading).is_running());
        assert!(!state(&parked, &reading).needs_operator());
        let service = ServiceReading { held: 1, ..paused.clone() };
        assert_eq!(state(&service, &reading).text, "held: no proof; paused: update");
        assert_eq!(state(&service, &reading).ends.as_deref(), Some(WaitReason::Held.about().ends));
        let outage =
            WaitReading { text: "The node a hangs".to_owned(), ends: "an answer".to_owned() };
        let service = ServiceReading { waits: vec![outage], ..running.clone() };
        let waiting = state(&service, &reading);
        assert_eq!(
            (waiting.text.as_str(), waiting.ends.as_deref()),
            ("The node a hangs", Some("an answer"))
        );
        assert!(!waiting.is_running() && !waiting.needs_operator());
        let service = ServiceReading { held: 2, halts: 1, is_claimed: false, ..running };
        let text = state(&service, &reading).text;
        assert!(text.starts_with("2 batches held: no proof; stopped: "), "{text}");
        assert!(text.ends_with("no instance works on it"), "{text}");
    }
}
