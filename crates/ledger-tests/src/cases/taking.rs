//! What a node answers to a submission.

use grid_batch_client::ClientError;

use super::Done;
use crate::{BatchKind, Fault, NotPossible, case_run::CaseRun, operator::Operator};

pub(crate) fn commits_batches(run: &mut CaseRun<'_>) -> Done {
    run.start();
    for _ in 0..3 {
        run.post_valid()?;
    }
    run.finish(Operator::Absent);
    Ok(())
}

pub(crate) fn refuses_other_bytes(run: &mut CaseRun<'_>) -> Done {
    if run.facts.signs_batches {
        return Err(NotPossible::new("clients send no batches"));
    }
    run.start();
    let answer = run.post_bytes(b"\xff\x00 no batch");
    let is_refused = matches!(answer, Err(ClientError::Refused { status: 400..500, .. }));
    assert!(is_refused, "bytes that are no batch are answered {answer:?}");
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}

pub(crate) fn busy_node(run: &mut CaseRun<'_>) -> Done {
    tried_again_after(run, Fault::Busy, Operator::Absent)
}

/// A batch that is refused repeatedly is held.
pub(crate) fn refusing_node(run: &mut CaseRun<'_>) -> Done {
    tried_again_after(run, Fault::Refuses, Operator::Decides)
}

fn tried_again_after(run: &mut CaseRun<'_>, fault: Fault, operator: Operator) -> Done {
    run.start();
    run.harness.fault(fault)?;
    for _ in 0..2 {
        run.post_valid()?;
    }
    run.wait_for_attempts(3);
    assert_eq!(run.harness.applied(), [], "the ledger applied a batch that the node did not take");
    run.harness.heal();
    run.finish(operator);
    Ok(())
}

pub(crate) fn invalid_batch(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.post_valid()?;
    let invalid = run.harness.batch(BatchKind::Invalid)?;
    run.post_invalid(&invalid);
    run.post_valid()?;
    run.finish(Operator::Absent);
    Ok(())
}
