use std::time::Duration;

use grid_batch_core::{BatchState, Evidence, Resolution, Timestamp, UnresolvedBatch};

use crate::{MonitorOptions, Undecided};

/// From when on evidence about this batch is looked for; `None`: never, as it stands.
pub(crate) fn judge(doubt: &UnresolvedBatch, options: &MonitorOptions) -> Option<Timestamp> {
    match doubt.state {
        BatchState::InDoubt => Some(doubt.since),
        BatchState::Pending | BatchState::Valid => Some(doubt.since.plus(options.quiet_after)),
        _ => None,
    }
}

/// From when on it is believed that the ledger does not have the batch.
pub(crate) fn believable_from(doubt: &UnresolvedBatch, options: &MonitorOptions) -> Timestamp {
    doubt.since.plus(options.believe_absence_after)
}

/// What a doubt comes to, with this evidence.
pub(crate) fn resolution(
    doubt: &UnresolvedBatch,
    evidence: Evidence,
    now: Timestamp,
    options: &MonitorOptions,
    undecided: Undecided,
) -> Resolution {
    let age = now.since(doubt.submitted_at);
    let standing = now.since(doubt.since);
    match evidence {
        Evidence::Committed => Resolution::Evidence(Evidence::Committed),
        Evidence::Present if age >= options.give_up_after => {
            hold(doubt, age, "the ledger has it and does not apply it")
        }
        Evidence::Present => Resolution::Evidence(Evidence::Present),
        Evidence::Repeatable => Resolution::Evidence(Evidence::Repeatable),
        Evidence::Absent if now < believable_from(doubt, options) => nothing_new(),
        Evidence::Absent => absent(doubt, age, options),
        Evidence::Inconclusive if standing < options.hold_after => nothing_new(),
        Evidence::Inconclusive => match undecided {
            Undecided::Resubmit => absent(doubt, standing, options),
            Undecided::Hold => hold(doubt, standing, "nothing proves whether the ledger has it"),
        },
    }
}

fn absent(doubt: &UnresolvedBatch, age: Duration, options: &MonitorOptions) -> Resolution {
    let attempts = doubt.attempt_id.attempt;
    if attempts >= options.max_attempts {
        return hold(doubt, age, &format!("the ledger does not have it at attempt {attempts}"));
    }
    Resolution::Evidence(Evidence::Absent)
}

/// A person who was called once is not called again.
fn hold(doubt: &UnresolvedBatch, age: Duration, why: &str) -> Resolution {
    if doubt.held {
        return nothing_new();
    }
    let (state, age) = (doubt.state, in_words(age));
    Resolution::Hold(format!("{state} for {age}, and {why}; a person must decide"))
}

fn nothing_new() -> Resolution {
    Resolution::Evidence(Evidence::Inconclusive)
}

/// As a person would say it, in whole units.
fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{AttemptId, HeaderId};

    use super::*;

    const S: u64 = 1;
    const MIN: u64 = 60 * S;
    const H: u64 = 60 * MIN;

    const COMMITTED: Resolution = Resolution::Evidence(Evidence::Committed);
    const PRESENT: Resolution = Resolution::Evidence(Evidence::Present);
    const ABSENT: Resolution = Resolution::Evidence(Evidence::Absent);
    const REPEATABLE: Resolution = Resolution::Evidence(Evidence::Repeatable);
    const NOTHING: Resolution = Resolution::Evidence(Evidence::Inconclusive);

    fn doubt(state: BatchState) -> UnresolvedBatch {
        UnresolvedBatch {
            service_id: "service".parse().unwrap(),
            batch_id: HeaderId::from_bytes([1; 64]),
            transaction_ids: Vec::new(),
            attempt_id: AttemptId { attempt: 1, epoch: 1 },
            state,
            submitted_at: Timestamp::default(),
            since: Timestamp::default(),
            held: false,
        }
    }

    fn after(seconds: u64) -> Timestamp {
        Timestamp::default().plus(Duration::from_secs(seconds))
    }

    fn held(reason: &str) -> Resolution {
        Resolution::Hold(reason.to_owned())
    }

    #[test]
    fn evidence_is_looked_for_at_once_where_in_doubt_and_later_where_the_ledger_says_something() {
        let options = MonitorOptions::default();
        let from = BatchState::ALL.map(|state| (state, judge(&doubt(state), &options)));
        let looked_for: Vec<_> =
            from.into_iter().filter_map(|(state, from)| Some((state, from?))).collect();
        let expected = [
            (BatchState::InDoubt, after(0)),
            (BatchState::Pending, after(MIN)),
            (BatchState::Valid, after(MIN)),
        ];
        assert_eq!(looked_for, expected);
    }

    #[test]
    fn what_evidence_comes_to() {
        use Evidence::{Absent, Committed, Inconclusive, Present, Repeatable};
        let slow = held(
            "in doubt for 1 h, and the ledger has it and does not apply it; a person must decide",
        );
        let undecided = held(
            "in doubt for 2 min, and nothing proves whether the ledger has it; a person must decide",
        );
        let table = [
            (Committed, 0, COMMITTED),
            (Committed, 9 * H, COMMITTED),
            (Present, 0, PRESENT),
            (Present, H - 1, PRESENT),
            (Present, H, slow),
            (Repeatable, 0, REPEATABLE),
            (Repeatable, 9 * H, REPEATABLE),
            (Absent, 0, NOTHING),
            (Absent, 30 * S - 1, NOTHING),
            (Absent, 30 * S, ABSENT),
            (Absent, 9 * H, ABSENT),
            (Inconclusive, 0, NOTHING),
            (Inconclusive, 2 * MIN - 1, NOTHING),
            (Inconclusive, 2 * MIN, undecided),
        ];
        let options = MonitorOptions::default();
        for (evidence, age, expected) in table {
            let doubt = doubt(BatchState::InDoubt);
            let resolution = resolution(&doubt, evidence, after(age), &options, Undecided::Hold);
            assert_eq!(resolution, expected, "{evidence:?} after {age} s");
        }
    }

    #[test]
    fn what_is_undecided_is_tried_again_where_that_is_wished_and_no_sooner() {
        let options = MonitorOptions::default();
        for (age, expected) in [(2 * MIN - 1, NOTHING), (2 * MIN, ABSENT)] {
            let doubt = doubt(BatchState::Pending);
            let inconclusive = Evidence::Inconclusive;
            let resolution =
                resolution(&doubt, inconclusive, after(age), &options, Undecided::Resubmit);
            assert_eq!(resolution, expected, "after {age} s");
        }
    }

    #[test]
    fn after_the_last_attempt_absence_is_a_matter_for_a_person() {
        let options = MonitorOptions::default();
        for (attempt, held) in [(9, false), (10, true), (11, true)] {
            let attempt_id = AttemptId { attempt, epoch: 1 };
            let doubt = UnresolvedBatch { attempt_id, ..doubt(BatchState::InDoubt) };
            for (evidence, undecided) in
                [(Evidence::Absent, Undecided::Hold), (Evidence::Inconclusive, Undecided::Resubmit)]
            {
                let resolution = resolution(&doubt, evidence, after(5 * MIN), &options, undecided);
                assert_eq!(
                    matches!(resolution, Resolution::Hold(_)),
                    held,
                    "{attempt}: {resolution:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_held_is_not_held_again_and_proof_still_counts() {
        let options = MonitorOptions::default();
        let held = UnresolvedBatch { held: true, ..doubt(BatchState::InDoubt) };
        for (evidence, expected) in [
            (Evidence::Committed, COMMITTED),
            (Evidence::Present, NOTHING),
            (Evidence::Absent, ABSENT),
            (Evidence::Inconclusive, NOTHING),
        ] {
            let resolution = resolution(&held, evidence, after(9 * H), &options, Undecided::Hold);
            assert_eq!(resolution, expected, "{evidence:?}");
        }
        let last = UnresolvedBatch { attempt_id: AttemptId { attempt: 10, epoch: 1 }, ..held };
        let absent = resolution(&last, Evidence::Absent, after(9 * H), &options, Undecided::Hold);
        assert_eq!(absent, NOTHING, "it is not tried an eleventh time");
    }
}
