use std::time::Duration;

use grid_batch_core::BatchError;
use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::{Evidence, EvidenceReport, Resolution, UnresolvedBatch};

use crate::{InconclusivePolicy, MonitorOptions, failure_log::FailureLog};

/// How long a batch must be in its state before evidence is searched. `None`: evidence is not searched in this state.
///
/// Evidence is due at once if the ledger does not report a batch that it had accepted, because it may have lost the
/// batch.
pub(crate) fn evidence_due_after(
    batch: &UnresolvedBatch,
    is_due: bool,
    options: &MonitorOptions,
) -> Option<Duration> {
    match batch.state {
        BatchState::InDoubt => Some(Duration::ZERO),
        BatchState::Pending | BatchState::Valid if is_due => Some(Duration::ZERO),
        BatchState::Pending | BatchState::Valid => Some(options.quiet_after),
        _ => None,
    }
}

/// The report to use: inconclusive if the facts of the ledger do not allow its evidence. This is logged once for each
/// service.
pub(crate) fn admitted(
    batch: &UnresolvedBatch,
    report: EvidenceReport,
    options: &MonitorOptions,
    log: &mut FailureLog,
) -> EvidenceReport {
    if options.facts.is_none_or(|facts| facts.admit(report.evidence)) {
        return report;
    }
    let UnresolvedBatch { batch_id, .. } = batch;
    let error = format!(
        "the facts of the ledger do not admit {:?} of the batch {batch_id}; it is taken as inconclusive",
        report.evidence
    );
    log.failed(batch.service_id.as_str(), &BatchError::InvalidAnswer(error));
    EvidenceReport { evidence: Evidence::Inconclusive, provable_in: None, ..report }
}

/// Whether it is too early to use this evidence about a batch that has been in its state for `time_in_state`.
///
/// A ledger may fail to report an accepted batch for a while. Until the batch is quiet, evidence that depends on such
/// reports does not cause it to be submitted again. A hold only waits for `hold_after`.
pub(crate) fn is_too_early(
    batch: &UnresolvedBatch,
    evidence: Evidence,
    time_in_state: Duration,
    options: &MonitorOptions,
    policy: InconclusivePolicy,
) -> bool {
    let was_accepted = matches!(batch.state, BatchState::Pending | BatchState::Valid);
    let may_resubmit = match evidence {
        Evidence::Absent | Evidence::Repeatable => true,
        Evidence::Inconclusive => policy == InconclusivePolicy::Resubmit,
        _ => false,
    };
    was_accepted && may_resubmit && time_in_state < options.quiet_after
}

/// The resolution that follows from evidence about a batch that this process has observed in its attempt and state for
/// `seen_for`.
pub(crate) fn resolve(
    batch: &UnresolvedBatch,
    report: &EvidenceReport,
    seen_for: Duration,
    options: &MonitorOptions,
    policy: InconclusivePolicy,
) -> Resolution {
    if batch.invalid_reported {
        return resolve_invalid(batch, report.evidence, seen_for, options);
    }
    let with_detail = |reason: &str| with_detail(reason, report.detail.as_deref());
    match report.evidence {
        Evidence::Committed => Resolution::Evidence(Evidence::Committed),
        Evidence::Present if seen_for >= options.give_up_after => {
            let reason = "the ledger has the batch but does not apply it";
            hold(batch, seen_for, &with_detail(reason))
        }
        Evidence::Present => Resolution::Evidence(Evidence::Present),
        Evidence::Absent | Evidence::Lost | Evidence::Repeatable | Evidence::Inconclusive
            if batch.held_until_decision =>
        {
            no_change()
        }
        Evidence::Repeatable => Resolution::Evidence(Evidence::Repeatable),
        Evidence::Absent if seen_for < options.absence_counts_after(batch) => no_change(),
        Evidence::Absent => resubmit(batch, Evidence::Absent, seen_for, options),
        Evidence::Lost => resubmit(batch, Evidence::Lost, seen_for, options),
        Evidence::StoppedNode => {
            let reason = "a node stopped answering while it had the batch, and the ledger does not \
                          have it any more; sent again, it may stop the node again";
            hold_until_decision(batch, seen_for, &with_detail(reason))
        }
        Evidence::NeverApplicable | Evidence::Expired => {
            Resolution::Invalid(report.evidence, why_invalid(batch, report))
        }
        Evidence::Inconclusive if seen_for < options.hold_after => no_change(),
        Evidence::Inconclusive if report.provable_in.is_some() => no_change(),
        Evidence::Inconclusive => match policy {
            InconclusivePolicy::Resubmit => resubmit(batch, Evidence::Absent, seen_for, options),
            InconclusivePolicy::Hold => {
                hold(batch, seen_for, &with_detail(&without_evidence(batch)))
            }
        },
    }
}

fn with_detail(reason: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => format!("{reason}: {detail}"),
        None => reason.to_owned(),
    }
}

fn why_invalid(batch: &UnresolvedBatch, report: &EvidenceReport) -> String {
    let detail = report.detail.as_deref();
    match (report.evidence, batch.deadline) {
        (Evidence::Expired, Some(deadline)) => with_detail(
            &format!("expired: the ledger has passed its deadline, {deadline:#}"),
            detail,
        ),
        (Evidence::Expired, None) => with_detail("expired", detail),
        _ => {
            detail.unwrap_or("a transaction of the batch was applied with another batch").to_owned()
        }
    }
}

/// Why evidence is inconclusive, with the last error, which may help an operator.
fn without_evidence(batch: &UnresolvedBatch) -> String {
    let reason = "no evidence shows whether the ledger has the batch";
    match &batch.last_error {
        Some(error) => format!("{reason} (last error: {error})"),
        None => reason.to_owned(),
    }
}

/// The resolution that follows from evidence about a batch that the ledger has reported as invalid. Such a batch is
/// never sent again.
fn resolve_invalid(
    batch: &UnresolvedBatch,
    evidence: Evidence,
    seen_for: Duration,
    options: &MonitorOptions,
) -> Resolution {
    match evidence {
        Evidence::Committed | Evidence::NeverApplicable | Evidence::Expired => {
            Resolution::Evidence(evidence)
        }
        _ if batch.earlier_may_arrive => no_change(),
        Evidence::Lost => Resolution::Evidence(evidence),
        Evidence::Absent | Evidence::Repeatable | Evidence::StoppedNode
            if seen_for >= options.believe_absence_after =>
        {
            Resolution::Evidence(match evidence {
                Evidence::StoppedNode => Evidence::Absent,
                _ => evidence,
            })
        }
        Evidence::Present if seen_for >= options.give_up_after => {
            hold(batch, seen_for, "the ledger reported the batch as invalid and has it again")
        }
        Evidence::Inconclusive if seen_for >= options.hold_after => {
            let reason = "the ledger reported the batch as invalid and no longer does, and no \
                          evidence shows whether an earlier attempt was applied";
            hold(batch, seen_for, reason)
        }
        _ => no_change(),
    }
}

fn resubmit(
    batch: &UnresolvedBatch,
    evidence: Evidence,
    seen_for: Duration,
    options: &MonitorOptions,
) -> Resolution {
    let attempts = batch.attempt_id.attempt.saturating_sub(batch.not_accepted);
    if attempts >= options.max_attempts {
        let reason = format!("the ledger does not have the batch after {attempts} attempts");
        return hold(batch, seen_for, &reason);
    }
    Resolution::Evidence(evidence)
}

/// Holds the batch, unless it is held already.
fn hold(batch: &UnresolvedBatch, seen_for: Duration, reason: &str) -> Resolution {
    if batch.held { no_change() } else { Resolution::Hold(hold_reason(batch, seen_for, reason)) }
}

/// Holds the batch so that evidence does not cause it to be submitted again.
fn hold_until_decision(batch: &UnresolvedBatch, seen_for: Duration, reason: &str) -> Resolution {
    if batch.held_until_decision {
        no_change()
    } else {
        Resolution::HoldUntilDecision(hold_reason(batch, seen_for, reason))
    }
}

fn hold_reason(batch: &UnresolvedBatch, seen_for: Duration, reason: &str) -> String {
    let (state, time) = (batch.state, whole_units(seen_for));
    format!("{state} for {time}: {reason}; an operator must decide")
}

fn no_change() -> Resolution {
    Resolution::Evidence(Evidence::Inconclusive)
}

/// The duration in whole seconds, minutes or hours.
fn whole_units(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::ledger::{AttemptId, LedgerFacts};
    use grid_batch_test_support::log_lines::RecordingLog;

    use super::*;

    const S: u64 = 1;
    const MIN: u64 = 60 * S;
    const H: u64 = 60 * MIN;

    const COMMITTED: Resolution = Resolution::Evidence(Evidence::Committed);
    const PRESENT: Resolution = Resolution::Evidence(Evidence::Present);
    const ABSENT: Resolution = Resolution::Evidence(Evidence::Absent);
    const REPEATABLE: Resolution = Resolution::Evidence(Evidence::Repeatable);
    const NO_CHANGE: Resolution = Resolution::Evidence(Evidence::Inconclusive);

    fn unresolved(state: BatchState) -> UnresolvedBatch {
        let service_id = "service".parse().unwrap();
        let attempt_id = AttemptId { attempt: 1, epoch: 1 };
        UnresolvedBatch::new(service_id, ItemId::from_bytes([1; 64]), attempt_id, state)
    }

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(reason: &str) -> Resolution {
        Resolution::Hold(reason.to_owned())
    }

    #[test]
    fn evidence_is_due_at_once_in_doubt_or_if_not_reported() {
        let options = MonitorOptions::default();
        let due = |is_due| -> Vec<_> {
            let due_after = |state| evidence_due_after(&unresolved(state), is_due, &options);
            let after_by_state = BatchState::ALL.map(|state| (state, due_after(state)));
            after_by_state.into_iter().filter_map(|(state, after)| Some((state, after?))).collect()
        };
        let expected = |accepted| {
            [
                (BatchState::InDoubt, after(0)),
                (BatchState::Pending, after(accepted)),
                (BatchState::Valid, after(accepted)),
            ]
        };
        assert_eq!(due(false), expected(MIN));
        assert_eq!(due(true), expected(0));
    }

    #[test]
    fn absence_of_an_accepted_batch_counts_once_it_is_quiet() {
        use Evidence::{
            Absent, Committed, Inconclusive, Lost, NeverApplicable, Present, Repeatable,
            StoppedNode,
        };
        let options = MonitorOptions::default();
        let early = |state, evidence, seconds, policy| {
            is_too_early(&unresolved(state), evidence, after(seconds), &options, policy)
        };
        let resubmit = InconclusivePolicy::Resubmit;
        for evidence in [Absent, Repeatable, Inconclusive] {
            assert!(early(BatchState::Pending, evidence, 59, resubmit), "{evidence:?}");
            assert!(!early(BatchState::Valid, evidence, MIN, resubmit), "{evidence:?}");
            assert!(!early(BatchState::InDoubt, evidence, 0, resubmit), "{evidence:?}");
        }
        for evidence in [Inconclusive, Committed, Present, Lost, StoppedNode, NeverApplicable] {
            let hold = InconclusivePolicy::Hold;
            assert!(!early(BatchState::Pending, evidence, 0, hold), "{evidence:?}");
        }
    }

    #[test]
    fn reason_names_the_deadline_that_has_passed() {
        let batch = UnresolvedBatch {
            deadline: Some(grid_batch_core::batches::Deadline::Height(7)),
            ..unresolved(BatchState::InDoubt)
        };
        let report = EvidenceReport::with_detail(Evidence::Expired, "it is at height 9");
        let options = MonitorOptions::default();
        let resolution =
            resolve(&batch, &report, Duration::ZERO, &options, InconclusivePolicy::Hold);
        let reason = "expired: the ledger has passed its deadline, height 7: it is at height 9";
        assert_eq!(resolution, Resolution::Invalid(Evidence::Expired, reason.to_owned()));
    }

    #[test]
    fn evidence_resolves_as_documented() {
        use Evidence::{
            Absent, Committed, Inconclusive, Lost, NeverApplicable, Present, Repeatable,
        };
        let not_applied = held(
            "in doubt for 1 h: the ledger has the batch but does not apply it; an operator must decide",
        );
        let no_evidence = held(
            "in doubt for 2 min: no evidence shows whether the ledger has the batch; \
             an operator must decide",
        );
        let never_applicable = Resolution::Invalid(
            NeverApplicable,
            "a transaction of the batch was applied with another batch".to_owned(),
        );
        let table = [
            (Committed, 0, COMMITTED),
            (Committed, 9 * H, COMMITTED),
            (Present, 0, PRESENT),
            (Present, H - 1, PRESENT),
            (Present, H, not_applied),
            (Repeatable, 0, REPEATABLE),
            (Repeatable, 9 * H, REPEATABLE),
            (Absent, 0, NO_CHANGE),
            (Absent, 30 * S - 1, NO_CHANGE),
            (Absent, 30 * S, ABSENT),
            (Absent, 9 * H, ABSENT),
            (Lost, 0, Resolution::Evidence(Lost)),
            (NeverApplicable, 0, never_applicable),
            (Evidence::Expired, 0, Resolution::Invalid(Evidence::Expired, "expired".to_owned())),
            (Inconclusive, 0, NO_CHANGE),
            (Inconclusive, 2 * MIN - 1, NO_CHANGE),
            (Inconclusive, 2 * MIN, no_evidence),
        ];
        let options = MonitorOptions::default();
        for (evidence, age, expected) in table {
            let batch = unresolved(BatchState::InDoubt);
            let resolution =
                resolve(&batch, &evidence.into(), after(age), &options, InconclusivePolicy::Hold);
            assert_eq!(resolution, expected, "{evidence:?} after {age} s");
        }
    }

    #[test]
    fn list_that_may_arrive_is_waited_for() {
        let (options, policy) = (MonitorOptions::default(), InconclusivePolicy::Hold);
        let absence_of = |state, age| {
            let batch = UnresolvedBatch { in_list: true, ..unresolved(state) };
            resolve(&batch, &Evidence::Absent.into(), after(age), &options, policy)
        };
        for (age, expected) in [(30 * S, NO_CHANGE), (330 * S - 1, NO_CHANGE), (330 * S, ABSENT)] {
            assert_eq!(absence_of(BatchState::InDoubt, age), expected, "after {age} s");
        }
        assert_eq!(absence_of(BatchState::Pending, 30 * S), ABSENT, "its list has arrived");
    }

    #[test]
    fn batch_that_stopped_a_node_is_held_until_a_decision() {
        let report = EvidenceReport::with_detail(Evidence::StoppedNode, "http://node");
        let (options, policy) = (MonitorOptions::default(), InconclusivePolicy::Resubmit);
        let batch = unresolved(BatchState::Pending);
        let resolution = resolve(&batch, &report, after(0), &options, policy);
        let Resolution::HoldUntilDecision(reason) = resolution else { panic!("{resolution:?}") };
        assert!(reason.contains("may stop the node again: http://node"), "{reason}");
    }

    #[test]
    fn batch_held_until_a_decision_is_not_sent_again() {
        let options = MonitorOptions::default();
        let batch = UnresolvedBatch {
            held: true,
            held_until_decision: true,
            ..unresolved(BatchState::Pending)
        };
        let resolution = |batch: &UnresolvedBatch, evidence: Evidence| {
            let policy = InconclusivePolicy::Resubmit;
            resolve(batch, &evidence.into(), after(9 * H), &options, policy)
        };
        for evidence in [
            Evidence::Absent,
            Evidence::Lost,
            Evidence::Repeatable,
            Evidence::StoppedNode,
            Evidence::Inconclusive,
        ] {
            assert_eq!(resolution(&batch, evidence), NO_CHANGE, "{evidence:?}");
        }
        assert_eq!(resolution(&batch, Evidence::Committed), COMMITTED);

        // A hold that evidence could end becomes one that it cannot end.
        let held = UnresolvedBatch { held_until_decision: false, ..batch };
        let stopped = resolution(&held, Evidence::StoppedNode);
        assert!(matches!(stopped, Resolution::HoldUntilDecision(_)), "{stopped:?}");
    }

    #[test]
    fn hold_without_evidence_has_the_last_error() {
        let last_error = Some("connection reset".to_owned());
        let batch = UnresolvedBatch { last_error, ..unresolved(BatchState::InDoubt) };
        let (options, policy) = (MonitorOptions::default(), InconclusivePolicy::Hold);
        let resolution =
            resolve(&batch, &Evidence::Inconclusive.into(), after(5 * MIN), &options, policy);
        let Resolution::Hold(reason) = resolution else { panic!("{resolution:?}") };
        assert!(reason.contains("(last error: connection reset)"), "{reason}");
    }

    #[test]
    fn policy_resubmits_inconclusive_batches_after_hold_after() {
        let options = MonitorOptions::default();
        for (age, expected) in [(2 * MIN - 1, NO_CHANGE), (2 * MIN, ABSENT)] {
            let batch = unresolved(BatchState::Pending);
            let inconclusive = Evidence::Inconclusive;
            let resolution = resolve(
                &batch,
                &inconclusive.into(),
                after(age),
                &options,
                InconclusivePolicy::Resubmit,
            );
            assert_eq!(resolution, expected, "after {age} s");
        }
    }

    #[test]
    fn batch_is_not_held_before_its_absence_can_be_proved() {
        let report =
            EvidenceReport { provable_in: Some(after(1)), ..Evidence::Inconclusive.into() };
        for policy in [InconclusivePolicy::Hold, InconclusivePolicy::Resubmit] {
            let batch = unresolved(BatchState::InDoubt);
            let options = MonitorOptions::default();
            assert_eq!(resolve(&batch, &report, after(9 * H), &options, policy), NO_CHANGE);
        }
    }

    #[test]
    fn attempts_that_were_not_accepted_do_not_count() {
        let options = MonitorOptions::default();
        for (not_accepted, held) in [(90, true), (91, false)] {
            let attempt_id = AttemptId { attempt: 100, epoch: 1 };
            let batch =
                UnresolvedBatch { attempt_id, not_accepted, ..unresolved(BatchState::InDoubt) };
            let resolution = resolve(
                &batch,
                &Evidence::Absent.into(),
                after(5 * MIN),
                &options,
                InconclusivePolicy::Hold,
            );
            assert_eq!(matches!(resolution, Resolution::Hold(_)), held, "{resolution:?}");
        }
    }

    #[test]
    fn batch_absent_after_the_last_attempt_is_held() {
        let options = MonitorOptions::default();
        for (attempt, held) in [(9, false), (10, true), (11, true)] {
            let attempt_id = AttemptId { attempt, epoch: 1 };
            let batch = UnresolvedBatch { attempt_id, ..unresolved(BatchState::InDoubt) };
            for (evidence, policy) in [
                (Evidence::Absent, InconclusivePolicy::Hold),
                (Evidence::Lost, InconclusivePolicy::Hold),
                (Evidence::Inconclusive, InconclusivePolicy::Resubmit),
            ] {
                let resolution =
                    resolve(&batch, &evidence.into(), after(5 * MIN), &options, policy);
                assert_eq!(
                    matches!(resolution, Resolution::Hold(_)),
                    held,
                    "{attempt}: {resolution:?}"
                );
            }
        }
    }

    #[test]
    fn batch_reported_invalid_is_not_sent_again() {
        use Evidence::{Absent, Committed, Inconclusive, Present, Repeatable};
        let options = MonitorOptions::default();
        let resolution = |earlier_may_arrive, evidence: Evidence| {
            let attempt_id = AttemptId { attempt: 10, epoch: 1 };
            let batch = UnresolvedBatch {
                earlier_may_arrive,
                invalid_reported: true,
                attempt_id,
                ..unresolved(BatchState::Pending)
            };
            resolve(&batch, &evidence.into(), after(9 * H), &options, InconclusivePolicy::Resubmit)
        };
        for evidence in [Absent, Repeatable, Present, Inconclusive] {
            assert_eq!(resolution(true, evidence), NO_CHANGE, "it waits: {evidence:?}");
        }
        assert_eq!([true, false].map(|waits| resolution(waits, Committed)), [COMMITTED, COMMITTED]);
        // The store ends it as invalid.
        assert_eq!(
            (resolution(false, Absent), resolution(false, Repeatable)),
            (ABSENT, REPEATABLE)
        );
        for evidence in [Present, Inconclusive] {
            let resolution = resolution(false, evidence);
            assert!(matches!(resolution, Resolution::Hold(_)), "{evidence:?}: {resolution:?}");
        }
    }

    #[test]
    fn held_batch_is_not_held_again_and_is_still_resolved() {
        let options = MonitorOptions::default();
        let held = UnresolvedBatch { held: true, ..unresolved(BatchState::InDoubt) };
        for (evidence, expected) in [
            (Evidence::Committed, COMMITTED),
            (Evidence::Present, NO_CHANGE),
            (Evidence::Absent, ABSENT),
            (Evidence::Inconclusive, NO_CHANGE),
        ] {
            let resolution =
                resolve(&held, &evidence.into(), after(9 * H), &options, InconclusivePolicy::Hold);
            assert_eq!(resolution, expected, "{evidence:?}");
        }
        let last = UnresolvedBatch { attempt_id: AttemptId { attempt: 10, epoch: 1 }, ..held };
        let absent = resolve(
            &last,
            &Evidence::Absent.into(),
            after(9 * H),
            &options,
            InconclusivePolicy::Hold,
        );
        assert_eq!(absent, NO_CHANGE, "there is no eleventh attempt");
    }

    #[test]
    fn evidence_that_is_not_admitted_is_logged_once() {
        static LOG: RecordingLog = RecordingLog::new();
        LOG.install();
        let facts = LedgerFacts::weakest(Duration::ZERO);
        let options = MonitorOptions { facts: Some(facts), ..MonitorOptions::default() };
        let (mut log, batch) = (FailureLog::of("searches"), unresolved(BatchState::InDoubt));
        let mut other = batch.clone();
        other.service_id = "other".parse().unwrap();
        for batch in [&batch, &batch, &other] {
            let report = admitted(batch, Evidence::Expired.into(), &options, &mut log);
            assert_eq!(report.evidence, Evidence::Inconclusive);
        }
        let lines = LOG.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("do not admit Expired"), "{lines:?}");
    }
}
