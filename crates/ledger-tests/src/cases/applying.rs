//! When and how often the ledger applies a batch.

use grid_batch_core::ledger::{AbsenceRule, SecondArrival};

use super::Done;
use crate::{BatchKind, Fault, NotPossible, case_run::CaseRun, operator::Operator};

pub(crate) fn slow_commits(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.harness.fault(Fault::AppliesNothing)?;
    let first = run.post_valid()?;
    run.post_valid()?;
    run.wait_for_arrival_after(0);
    assert_eq!(run.times_applied(&first), 0, "the harness applies although it was told not to");
    run.harness.heal();
    run.finish(Operator::Absent);
    Ok(())
}

/// Batches are committed although the events are silent, and `/health` reports it.
pub(crate) fn silent_events(run: &mut CaseRun<'_>) -> Done {
    if !run.facts.has_events {
        return Err(NotPossible::new("the ledger has no events"));
    }
    run.start();
    run.post_valid()?;
    run.finish(Operator::Absent);
    run.harness.fault(Fault::SendsNoEvents)?;
    run.commit_until("the server says that it gets no events", CaseRun::has_silent_events)?;
    run.harness.heal();
    Ok(())
}

pub(crate) fn second_arrival(run: &mut CaseRun<'_>) -> Done {
    if run.facts.second_arrival == SecondArrival::AppliedAgain {
        return Err(NotPossible::new("the fact promises nothing: the batch is applied again"));
    }
    run.start();
    let batch = run.post_valid()?;
    run.finish(Operator::Absent);
    run.harness.deliver(&batch)?;
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}

/// Another client sends the same batch before the server does.
pub(crate) fn sent_by_another_client(run: &mut CaseRun<'_>) -> Done {
    run.start();
    let batch = run.harness.batch(BatchKind::Valid)?;
    run.deliver(&batch)?;
    run.wait_until_applied(&batch);
    run.post(&batch);
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}

/// Another client sends a transaction of the batch in another batch. If reports prove no absence, an operator may
/// decide.
pub(crate) fn applied_for_another_client(run: &mut CaseRun<'_>) -> Done {
    run.start();
    let batch = run.harness.batch(BatchKind::AppliedForAnother)?;
    run.post_invalid(&batch);
    run.post_valid()?;
    run.finish(match run.facts.absence_rule() {
        AbsenceRule::Reported => Operator::Absent,
        AbsenceRule::ObservedBySender | AbsenceRule::Never => Operator::Decides,
    });
    Ok(())
}
