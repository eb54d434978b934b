use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    CaseResult, Harness, NotPossible, Report, Row,
    case_run::CaseRun,
    cases::{applying, deadlines, kills, lost, nodes, order, taking},
};

/// One thing that a ledger, its adapter and the server must do together.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The name.
    pub name: &'static str,
    /// The facts or the methods of the ledger that it tests.
    pub tests: &'static str,
    run: CaseFn,
}

/// A case. It panics if the server does not keep its promises.
type CaseFn = fn(&mut CaseRun<'_>) -> Result<(), NotPossible>;

/// Calls a macro with the name of each case, after arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! with_each_case {
    ($($then:ident)::+ ! ($($arguments:tt)*)) => {
        $($then)::+! { ($($arguments)*)
            taking::commits_batches "send, statuses";
            taking::refuses_other_bytes "format";
            taking::busy_node "send";
            taking::refusing_node "send";
            taking::invalid_batch "statuses";
            applying::slow_commits "statuses";
            applying::silent_events "has_events";
            applying::second_arrival "second_arrival";
            applying::sent_by_another_client "find_evidence";
            applying::applied_for_another_client "find_evidence";
            order::pipeline "keeps_order";
            order::parallel "enforces_declared_access";
            lost::lost_request "proves_absence";
            lost::lost_answer "find_evidence";
            lost::lost_answer_of_slow_commit "proves_absence";
            lost::late_arrival "late_arrival_limit";
            lost::node_forgets_accepted "proves_absence";
            lost::node_forgets_committed "statuses_survive_restart";
            nodes::second_node_lags "one_node_for_service";
            nodes::other_ledger "identity, tells_identity";
            deadlines::deadline_passes_before_sending "batches_expire";
            deadlines::deadline_passes_before_applying "batches_expire";
            deadlines::committed_before_its_deadline "batches_expire";
            kills::killed_before_arrival "absence_rule";
            kills::killed_before_the_answer "find_evidence";
            kills::killed_after_the_answer "statuses";
            kills::killed_before_a_commit_is_seen "statuses";
            kills::two_instances "find_evidence";
        }
    };
}

macro_rules! list_cases {
    (() $($module:ident::$case:ident $tests:literal;)*) => {
        /// All cases.
        pub const CASES: &[Case] =
            &[$(Case { name: stringify!($case), tests: $tests, run: $module::$case }),*];
    };
}

with_each_case!(list_cases!());

/// Makes a test for each case, so that the cases run in parallel. The first argument makes a harness for one case.
///
/// Test runners do not show what a passed test prints. So name the cases that are not run: then the test of any other
/// case fails if it is not run, and the test of a named one fails if it is run.
///
/// ```ignore
/// grid_batch_ledger_tests::ledger_tests!(MyHarness::new());
/// grid_batch_ledger_tests::ledger_tests!(MyHarness::new(), not_run: ["silent_events", "second_node_lags"]);
/// ```
#[macro_export]
macro_rules! ledger_tests {
    ($harness:expr) => {
        $crate::with_each_case!($crate::ledger_test_functions!($harness, assert_passed()));
    };
    ($harness:expr, not_run: $not_run:expr) => {
        $crate::with_each_case!($crate::ledger_test_functions!(
            $harness,
            assert_passed_but(&$not_run)
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! ledger_test_functions {
    (
        ($harness:expr, $assert:ident($($argument:expr)?))
        $($module:ident::$case:ident $tests:literal;)*
    ) => {
        $crate::ledger_test_functions!(@ ($harness, $assert($($argument)?)) $($case)*);
    };
    (@ $arguments:tt $($case:ident)*) => {
        $($crate::ledger_test_function!($arguments $case);)*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! ledger_test_function {
    (($harness:expr, $assert:ident($($argument:expr)?)) $case:ident) => {
        #[test]
        fn $case() {
            $crate::run_case(stringify!($case), &mut $harness).$assert($($argument)?);
        }
    };
}

/// Runs all cases, each with a new harness.
pub fn run<H: Harness>(mut harness: impl FnMut() -> H) -> Report {
    let rows = CASES.iter().flat_map(|case| case.run(&mut harness()).rows);
    Report { rows: rows.collect() }
}

/// Runs the case with this name.
///
/// # Panics
///
/// If there is no such case.
pub fn run_case(name: &str, harness: &mut dyn Harness) -> Report {
    let case = CASES.iter().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("there is no case {name}")).run(harness)
}

impl Case {
    fn run(&self, harness: &mut dyn Harness) -> Report {
        let run = || (self.run)(&mut CaseRun::new(harness));
        let result = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => CaseResult::Passed,
            Ok(Err(reason)) => CaseResult::NotRun(reason.to_string()),
            Err(panic) => CaseResult::Failed(message(&*panic)),
        };
        Report { rows: vec![Row { case: self.name, tests: self.tests, result }] }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path, process::Command};

    use grid_batch_core::ItemId;
    use grid_batch_core::ledger::LedgerFacts;

    use super::*;
    use crate::{BatchKind, Fault, TestBatch};

    /// A harness whose server program ends at once.
    struct Nothing;

    impl Harness for Nothing {
        fn facts(&self) -> LedgerFacts {
            LedgerFacts::weakest(crate::LATE_ARRIVAL_LIMIT)
        }

        fn server(&self, _configuration: &Path) -> Command {
            Command::new("false")
        }

        fn configuration(&self) -> String {
            String::new()
        }

        fn service(&self) -> Option<String> {
            None
        }

        fn batch(&mut self, _kind: BatchKind) -> Result<TestBatch, NotPossible> {
            Err(NotPossible::new("it has no batches"))
        }

        fn fault(&mut self, _fault: Fault) -> Result<(), NotPossible> {
            Err(NotPossible::new("it has no faults"))
        }

        fn heal(&mut self) {}

        fn applied(&self) -> Vec<ItemId> {
            Vec::new()
        }

        fn arrivals(&self) -> usize {
            0
        }
    }

    #[test]
    fn no_case_passes_without_a_server() {
        let report = run(|| Nothing);
        assert_eq!(report.rows.len(), CASES.len());
        assert!(report.rows.iter().all(|row| row.result != CaseResult::Passed), "{report}");
        let failed = report.failed();
        assert!(failed.contains(&"commits_batches") && failed.len() > 15, "{report}");
        assert!(report.not_run().contains(&"two_instances"), "{report}");
        let columns = |line: &str| line.chars().count();
        assert!(report.to_string().lines().all(|line| columns(line) <= 80), "{report}");
    }

    #[test]
    fn cases_have_different_names() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
