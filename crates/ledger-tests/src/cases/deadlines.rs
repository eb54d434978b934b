//! Batches that the ledger can apply only until a time or a height.

use super::Done;
use crate::{BatchKind, Fault, NotPossible, TestBatch, case_run::CaseRun, operator::Operator};

fn batch_with_deadline(run: &mut CaseRun<'_>) -> Result<TestBatch, NotPossible> {
    if !run.facts.batches_expire {
        return Err(NotPossible::new("batches do not expire"));
    }
    run.harness.batch(BatchKind::WithDeadline)
}

pub(crate) fn deadline_passes_before_sending(run: &mut CaseRun<'_>) -> Done {
    run.start();
    let batch = batch_with_deadline(run)?;
    run.harness.fault(Fault::Busy)?;
    run.post_invalid(&batch);
    run.wait_for_attempts(1);
    run.harness.pass_deadlines()?;
    run.harness.heal();
    run.wait_until_latest("the batch is reported as expired", |details| {
        details["last_error"].as_str().is_some_and(|error| error.starts_with("expired"))
    });
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}

/// The ledger has the batch when its deadline passes.
pub(crate) fn deadline_passes_before_applying(run: &mut CaseRun<'_>) -> Done {
    run.start();
    let batch = batch_with_deadline(run)?;
    run.harness.fault(Fault::AppliesNothing)?;
    run.post_invalid(&batch);
    run.wait_for_arrival_after(0);
    run.harness.pass_deadlines()?;
    run.harness.heal();
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}

/// The ledger commits the batch, and its deadline passes while no server runs.
pub(crate) fn committed_before_its_deadline(run: &mut CaseRun<'_>) -> Done {
    run.start();
    let batch = batch_with_deadline(run)?;
    run.harness.fault(Fault::HoldsAnswer)?;
    run.post(&batch);
    run.wait_until_applied(&batch);
    run.kill();
    run.harness.heal();
    run.harness.pass_deadlines()?;
    run.start();
    run.finish(Operator::Absent);
    Ok(())
}
