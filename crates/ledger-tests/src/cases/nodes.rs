//! Several nodes, and nodes of another ledger.

use super::Done;
use crate::{Fault, NotPossible, case_run::CaseRun, operator::Operator};

pub(crate) fn second_node_lags(run: &mut CaseRun<'_>) -> Done {
    if run.facts.one_node_for_service {
        return Err(NotPossible::new("a service is at one node"));
    }
    run.harness.fault(Fault::SecondNodeLags)?;
    run.start();
    for _ in 0..4 {
        run.post_valid()?;
    }
    run.finish(Operator::Absent);
    Ok(())
}

/// A server whose nodes belong to another ledger than its database sends nothing, reports the reason, and ends.
pub(crate) fn other_ledger(run: &mut CaseRun<'_>) -> Done {
    run.start();
    run.post_valid()?;
    run.finish(Operator::Absent);
    run.harness.fault(Fault::Busy)?;
    run.post_valid()?;
    run.wait_until_latest("the node was busy", |details| {
        details["dlt_status"] == "DELAYED" || !details["last_error"].is_null()
    });
    run.kill();
    run.harness.heal();
    run.harness.fault(Fault::OtherLedger)?;
    let before = run.harness.applied();
    let mut server = run.spawn();
    run.wait_until("the server ends", |run| {
        assert_eq!(run.harness.applied(), before, "a batch was sent to another ledger");
        server.ended().is_some()
    });
    assert!(!server.ended().unwrap().success(), "the server ended without an error");
    let log = server.log();
    assert!(
        log.contains("another ledger"),
        "the server ended for another reason than the ledger of its nodes: {log}"
    );
    assert_eq!(run.harness.applied(), before, "a batch was sent to another ledger");
    run.harness.heal();
    run.start();
    // The kill may have interrupted an attempt.
    run.finish(Operator::Decides);
    Ok(())
}
