//! Several batches of a service that are under way together.

use super::Done;
use crate::{Fault, NotPossible, case_run::CaseRun, operator::Operator};
use grid_batch_core::queue::StrategyKind;

/// The ledger accepts several batches before it applies one.
pub(crate) fn pipeline(run: &mut CaseRun<'_>) -> Done {
    start_with(run, StrategyKind::Pipeline)?;
    run.harness.fault(Fault::AppliesNothing)?;
    post_many(run)?;
    run.wait_for_arrival_after(2);
    run.harness.heal();
    run.finish(Operator::Absent);
    Ok(())
}

/// The batches of a harness conflict, so they are applied in order.
pub(crate) fn parallel(run: &mut CaseRun<'_>) -> Done {
    start_with(run, StrategyKind::Parallel)?;
    post_many(run)?;
    run.finish(Operator::Absent);
    Ok(())
}

fn start_with(run: &mut CaseRun<'_>, strategy: StrategyKind) -> Done {
    let name = strategy.as_str();
    if let Some(lacking) = run.facts.lacks_for(strategy) {
        return Err(NotPossible::new(format!("the strategy {name} needs {lacking}")));
    }
    run.settings = format!("[services.\"*\"]\nstrategy = \"{name}\"");
    run.start();
    Ok(())
}

fn post_many(run: &mut CaseRun<'_>) -> Done {
    for _ in 0..6 {
        run.post_valid()?;
    }
    Ok(())
}
