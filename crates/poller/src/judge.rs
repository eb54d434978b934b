use std::time::Duration;

use grid_batch_core::{BatchState, Doubt, Evidence, Timestamp, Verdict};

use crate::{MonitorOptions, Undecided};

/// From when on evidence about this batch is looked for; `None`: never, as it stands.
pub(crate) fn judge(doubt: &Doubt, options: &MonitorOptions) -> Option<Timestamp> {
    match doubt.state {
        BatchState::InDoubt => Some(doubt.since),
        BatchState::Pending | BatchState::Valid => Some(doubt.since.plus(options.quiet_after)),
        _ => None,
    }
}

/// From when on it is believed that the ledger does not have the batch.
pub(crate) fn believable_from(doubt: &Doubt, options: &MonitorOptions) -> Timestamp {
    doubt.since.plus(options.believe_absence_after)
}

/// What a doubt comes to, with this evidence.
pub(crate) fn verdict(
    doubt: &Doubt,
    evidence: Evidence,
    now: Timestamp,
    options: &MonitorOptions,
    undecided: Undecided,
) -> Verdict {
    let age = now.since(doubt.submitted_at);
    let standing = now.since(doubt.since);
    match evidence {
        Evidence::Committed => Verdict::Evidence(Evidence::Committed),
        Evidence::Present if age >= options.give_up_after => {
            hold(doubt, age, "the ledger has it and does not apply it")
        }
        Evidence::Present => Verdict::Evidence(Evidence::Present),
        Evidence::Repeatable => Verdict::Evidence(Evidence::Repeatable),
        Evidence::Absent if now < believable_from(doubt, options) => nothing_new(),
        Evidence::Absent => absent(doubt, age, options),
        Evidence::Inconclusive if standing < options.hold_after => nothing_new(),
        Evidence::Inconclusive => match undecided {
            Undecided::Resubmit => absent(doubt, standing, options),
            Undecided::Hold => hold(doubt, standing, "nothing proves whether the ledger has it"),
        },
    }
}

fn absent(doubt: &Doubt, age: Duration, options: &MonitorOptions) -> Verdict {
    let attempts = doubt.ticket.attempt;
    if attempts >= options.max_attempts {
        return hold(doubt, age, &format!("the ledger does not have it at attempt {attempts}"));
    }
    Verdict::Evidence(Evidence::Absent)
}

/// A person who was called once is not called again.
fn hold(doubt: &Doubt, age: Duration, why: &str) -> Verdict {
    if doubt.held {
        return nothing_new();
    }
    let (state, age) = (doubt.state, in_words(age));
    Verdict::Hold(format!("{state} for {age}, and {why}; a person must decide"))
}

fn nothing_new() -> Verdict {
    Verdict::Evidence(Evidence::Inconclusive)
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
    use grid_batch_core::{HeaderId, Ticket};

    use super::*;

    const S: u64 = 1;
    const MIN: u64 = 60 * S;
    const H: u64 = 60 * MIN;

    const COMMITTED: Verdict = Verdict::Evidence(Evidence::Committed);
    const PRESENT: Verdict = Verdict::Evidence(Evidence::Present);
    const ABSENT: Verdict = Verdict::Evidence(Evidence::Absent);
    const REPEATABLE: Verdict = Verdict::Evidence(Evidence::Repeatable);
    const NOTHING: Verdict = Verdict::Evidence(Evidence::Inconclusive);

    fn doubt(state: BatchState) -> Doubt {
        Doubt {
            service_id: "service".parse().unwrap(),
            batch_id: HeaderId::from_bytes([1; 64]),
            transaction_ids: Vec::new(),
            ticket: Ticket { attempt: 1, epoch: 1 },
            state,
            submitted_at: Timestamp::default(),
            since: Timestamp::default(),
            held: false,
        }
    }

    fn after(seconds: u64) -> Timestamp {
        Timestamp::default().plus(Duration::from_secs(seconds))
    }

    fn held(reason: &str) -> Verdict {
        Verdict::Hold(reason.to_owned())
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
            let verdict = verdict(&doubt, evidence, after(age), &options, Undecided::Hold);
            assert_eq!(verdict, expected, "{evidence:?} after {age} s");
        }
    }

    #[test]
    fn what_is_undecided_is_tried_again_where_that_is_wished_and_no_sooner() {
        let options = MonitorOptions::default();
        for (age, expected) in [(2 * MIN - 1, NOTHING), (2 * MIN, ABSENT)] {
            let doubt = doubt(BatchState::Pending);
            let inconclusive = Evidence::Inconclusive;
            let verdict = verdict(&doubt, inconclusive, after(age), &options, Undecided::Resubmit);
            assert_eq!(verdict, expected, "after {age} s");
        }
    }

    #[test]
    fn after_the_last_attempt_absence_is_a_matter_for_a_person() {
        let options = MonitorOptions::default();
        for (attempt, held) in [(9, false), (10, true), (11, true)] {
            let ticket = Ticket { attempt, epoch: 1 };
            let doubt = Doubt { ticket, ..doubt(BatchState::InDoubt) };
            for (evidence, undecided) in
                [(Evidence::Absent, Undecided::Hold), (Evidence::Inconclusive, Undecided::Resubmit)]
            {
                let verdict = verdict(&doubt, evidence, after(5 * MIN), &options, undecided);
                assert_eq!(matches!(verdict, Verdict::Hold(_)), held, "{attempt}: {verdict:?}");
            }
        }
    }

    #[test]
    fn what_is_held_is_not_held_again_and_proof_still_counts() {
        let options = MonitorOptions::default();
        let held = Doubt { held: true, ..doubt(BatchState::InDoubt) };
        for (evidence, expected) in [
            (Evidence::Committed, COMMITTED),
            (Evidence::Present, NOTHING),
            (Evidence::Absent, ABSENT),
            (Evidence::Inconclusive, NOTHING),
        ] {
            let verdict = verdict(&held, evidence, after(9 * H), &options, Undecided::Hold);
            assert_eq!(verdict, expected, "{evidence:?}");
        }
        let last = Doubt { ticket: Ticket { attempt: 10, epoch: 1 }, ..held };
        let absent = verdict(&last, Evidence::Absent, after(9 * H), &options, Undecided::Hold);
        assert_eq!(absent, NOTHING, "it is not tried an eleventh time");
    }
}
