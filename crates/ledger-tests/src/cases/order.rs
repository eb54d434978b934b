//! Several batches of a service that are under way together.

use crate::{Fault, NotPossible, case_run::CaseRun, operator::Operator};
use grid_batch_core::Strategy;

type Done = Result<(), NotPossible>;

pub(crate) fn pipeline(run: &mut CaseRun<'_>) -> Done {
    in_order_with(run, Strategy::Pipeline)
}

/// The batches of a harness conflict, so they are applied in order.
pub(crate) fn parallel(run: &mut CaseRun<'_>) -> Done {
    in_order_with(run, Strategy::Parallel)
}

fn in_order_with(run: &mut CaseRun<'_>, strategy: Strategy) -> Done {
    if let Some(lacking) = run.facts.lacks_for(strategy) {
        let reason = format!("the strategy {} needs {lacking}", strategy.as_str());
        return Err(NotPossible::new(reason));
    }
    let strategy = strategy.as_str();
    run.settings = format!("[ledger]\nstrategy = \"{strategy}\"");
    run.start();
    run.harness.fault(Fault::Busy)?;
    for _ in 0..6 {
        run.post_valid()?;
    }
    run.harness.heal();
    run.finish(Operator::Absent);
    Ok(())
}
