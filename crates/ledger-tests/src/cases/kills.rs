//! Servers that are killed at each step, and two servers at once.

use super::Done;
use crate::{Fault, NotPossible, TestBatch, case_run::CaseRun, operator::Operator};

/// The submission is on its way, and never arrives.
pub(crate) fn killed_before_arrival(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::HoldsRequest)?;
    run.post_valid()?;
    run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.kill();
    run.harness.heal();
    run.start();
    run.finish(Operator::for_absence_after_kill(&run.facts));
    Ok(())
}

pub(crate) fn killed_before_the_answer(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::HoldsAnswer)?;
    let batch = run.post_valid()?;
    run.post_valid()?;
    run.wait_until_applied(&batch);
    run.kill();
    run.harness.heal();
    run.start();
    run.finish(Operator::Absent);
    Ok(())
}

pub(crate) fn killed_after_the_answer(run: &mut CaseRun<'_>) -> Done {
    kill_while_nothing_is_applied(run)?;
    run.start();
    run.harness.heal();
    run.finish(Operator::Absent);
    Ok(())
}

/// The batch is committed while no server runs.
pub(crate) fn killed_before_a_commit_is_seen(run: &mut CaseRun<'_>) -> Done {
    let batch = kill_while_nothing_is_applied(run)?;
    run.harness.heal();
    run.wait_until_applied(&batch);
    run.start();
    run.finish(Operator::Absent);
    Ok(())
}

/// Kills the server when it has received the answer about its first batch.
fn kill_while_nothing_is_applied(run: &mut CaseRun<'_>) -> Result<TestBatch, NotPossible> {
    run.start();
    run.harness.fault(Fault::AppliesNothing)?;
    let batch = run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.wait_until("the server has the answer", |run| !run.latest_is_with_submitter());
    run.post_valid()?;
    run.kill();
    Ok(batch)
}

/// The instance that has sent a batch is killed before it gets the answer, while another instance runs. The first
/// instance claims the service, because it is alone when the first batch is posted. The second must take the service
/// over.
pub(crate) fn two_instances(run: &mut CaseRun<'_>) -> Done {
    run.use_postgres()?;
    run.start();
    run.harness.fault(Fault::AppliesNothing)?;
    run.harness.fault(Fault::HoldsAnswer)?;
    run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.start();
    for _ in 0..3 {
        run.post_valid()?;
    }
    run.kill();
    run.harness.heal();
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}
