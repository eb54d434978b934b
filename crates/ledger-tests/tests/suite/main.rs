//! The suite passes for a ledger that does what its adapter declares, and fails for one that does not.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

mod adapter;
mod harness;
mod node;
mod variant;

/// A ledger that does what it declares.
mod strong {
    use crate::{harness::SmallLedger, variant::Variant};

    grid_batch_ledger_tests::ledger_tests!(SmallLedger::new(Variant::Strong), not_run: [
        "silent_events",
        "applied_for_another_client",
        "parallel",
        "second_node_lags",
        "two_instances",
    ]);
}

/// A ledger that promises nothing.
mod weak {
    use crate::{harness::SmallLedger, variant::Variant};

    grid_batch_ledger_tests::ledger_tests!(SmallLedger::new(Variant::Weak), not_run: [
        "silent_events",
        "second_arrival",
        "applied_for_another_client",
        "pipeline",
        "parallel",
        "second_node_lags",
        "deadline_passes_before_sending",
        "deadline_passes_before_applying",
        "committed_before_its_deadline",
        "two_instances",
    ]);
}

/// Facts that are declared too strongly, and adapters with a mistake.
mod broken {
    use grid_batch_ledger_tests::{CaseResult, run_case};

    use crate::{harness::SmallLedger, variant::Variant};

    #[track_caller]
    fn assert_found(variant: Variant, case: &str, message: &str) {
        let report = run_case(case, &mut SmallLedger::new(variant));
        let CaseResult::Failed(reason) = &report.rows[0].result else { panic!("{report}") };
        assert!(reason.contains(message), "{report}");
        println!("{report}");
    }

    #[test]
    fn second_arrival_that_is_applied_again_is_found() {
        assert_found(Variant::AppliesAgain, "second_arrival", "was applied 2 times");
    }

    #[test]
    fn batch_that_is_applied_again_for_this_server_is_found() {
        assert_found(Variant::AppliesAgain, "sent_by_another_client", "was applied 2 times");
    }

    #[test]
    fn commit_that_a_restart_forgets_is_found() {
        assert_found(Variant::ForgetsCommits, "node_forgets_committed", "was applied 2 times");
    }

    #[test]
    fn absence_that_is_not_proved_is_found() {
        assert_found(Variant::HidesPending, "lost_answer_of_slow_commit", "was applied 2 times");
    }

    #[test]
    fn late_arrival_that_is_applied_is_found() {
        assert_found(Variant::AppliesLate, "late_arrival", "was applied 2 times");
    }

    #[test]
    fn absence_that_only_the_killed_sender_could_prove_is_found() {
        assert_found(Variant::GuessesAbsence, "killed_before_arrival", "no batch was held");
    }

    #[test]
    fn identity_that_is_the_same_for_all_ledgers_is_found() {
        assert_found(Variant::HidesIdentity, "other_ledger", "sent to another ledger");
    }

    #[test]
    fn server_that_ends_for_another_reason_is_found() {
        assert_found(Variant::HidesReason, "other_ledger", "ended for another reason");
    }

    #[test]
    fn batch_that_is_applied_again_later_is_found() {
        let case = "node_forgets_committed";
        assert_found(Variant::AppliesAgainLater, case, "was applied 2 times");
    }

    #[test]
    fn order_that_is_not_kept_is_found() {
        assert_found(Variant::Reorders, "pipeline", "is not the order of acceptance");
    }

    #[test]
    fn lost_answer_that_is_read_as_busy_is_found() {
        assert_found(Variant::GuessesAnswers, "lost_answer_of_slow_commit", "was applied 2 times");
    }

    #[test]
    fn batch_that_is_applied_after_its_deadline_is_found() {
        let case = "deadline_passes_before_applying";
        assert_found(Variant::IgnoresDeadlines, case, "the invalid batch");
    }
}

/// Not a test: harnesses start it as the server program with the adapter.
#[test]
#[ignore = "it is a server"]
fn server() {
    if let Err(error) = adapter::serve() {
        if adapter::variant() != variant::Variant::HidesReason {
            eprintln!("{error}");
        }
        std::process::exit(78);
    }
}
