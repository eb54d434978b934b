//! Requests and answers that are lost or late, and nodes that forget.

use super::Done;
use crate::{Fault, case_run::CaseRun, operator::Operator};

pub(crate) fn lost_request(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::LosesRequest)?;
    run.post_valid()?;
    run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.finish(Operator::for_absence(&run.facts));
    Ok(())
}

pub(crate) fn lost_answer(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::LosesAnswer)?;
    let batch = run.post_valid()?;
    run.post_valid()?;
    run.wait_until_applied(&batch);
    run.finish(Operator::Absent);
    Ok(())
}

/// The ledger has the batch but has not applied it yet, so the batch is not absent.
pub(crate) fn lost_answer_of_slow_commit(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::AppliesNothing)?;
    run.harness.fault(Fault::LosesAnswer)?;
    let batch = run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.wait_until("the batch is found, held or sent again", |run| {
        run.latest_is("PENDING") || run.latest_is_held() || run.harness.arrivals() > 1
    });
    run.harness.heal();
    run.wait_until_applied(&batch);
    run.post_valid()?;
    run.finish(Operator::Decides);
    Ok(())
}

/// A submission arrives long after the server has given it up. The server may send the batch again only if that is
/// harmless.
pub(crate) fn late_arrival(run: &mut CaseRun<'_>) -> Done {
    run.settings = "[ledger]\nlate_arrival_limit = \"10m\"".to_owned();
    run.start();
    run.harness.fault(Fault::HoldsRequest)?;
    let batch = run.post_valid()?;
    run.wait_for_arrival_after(0);
    // The batch may be in doubt only for a moment before it is sent again.
    run.wait_until("the server gives the submission up", |run| {
        run.latest_is("UNKNOWN") || run.harness.arrivals() > 1
    });
    run.wait_for_polls_or_second_arrival(20);
    run.harness.release()?;
    run.wait_until_applied(&batch);
    run.post_valid()?;
    run.finish(Operator::Decides);
    Ok(())
}

pub(crate) fn node_forgets_accepted(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::AppliesNothing)?;
    run.post_valid()?;
    run.wait_for_arrival_after(0);
    run.wait_until("the server has the answer", |run| !run.latest_is_with_submitter());
    run.harness.restart()?;
    run.harness.heal();
    // A node may keep what it has accepted.
    let operator = match Operator::for_absence(&run.facts) {
        Operator::MustDecide => Operator::Decides,
        other => other,
    };
    run.finish(operator);
    Ok(())
}

/// The node commits the batch while no server runs, and is restarted.
pub(crate) fn node_forgets_committed(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::HoldsAnswer)?;
    let batch = run.post_valid()?;
    run.wait_until_applied(&batch);
    run.kill();
    run.harness.heal();
    run.harness.restart()?;
    run.start();
    let operator =
        if run.facts.statuses_survive_restart { Operator::Absent } else { Operator::Decides };
    run.finish(operator);
    Ok(())
}
