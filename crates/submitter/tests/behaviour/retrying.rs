//! A running submitter whose queue has batches sent again.

use std::sync::Arc;

use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::queue::DelayOptions;
use grid_batch_core::{GlobalScopeId, ManualClock};
use grid_batch_submitter::{RetryQueue, ShutdownHandle};

use crate::support::*;

#[test]
fn busy_ledger_is_asked_again_only_after_the_delays() {
    const BUSY: usize = 4;
    let clock = Arc::new(ManualClock::default());
    let queue =
        RetryQueue::new(submissions(0..3), DelayOptions::default())
            .with_clock(Arc::<ManualClock>::clone(&clock));
    let requests = Arc::<WatchedValue<Vec<String>>>::default();
    let received = Arc::clone(&requests);
    let sender = Arc::new(FnSender(move |submission: &Submission<GlobalScopeId>| {
        let batch = submission.batch_header().to_owned();
        let count = received.change(|all| {
            all.push(batch);
            all.len()
        });
        let outcome = if count <= BUSY { Outcome::Busy } else { Outcome::Accepted };
        Box::pin(async move { answer(outcome) }) as AnswerFuture
    }));
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(0, sender, &recorder).with_retry_queue(&queue));
    for count in 1..=BUSY {
        requests.wait_until(|all| all.len() == count);
        let due = loop {
            match queue.next_due() {
                Some(due) => break due,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(recorder.outcomes(), [], "only the queue knows that the ledger is busy");
        clock.advance(due);
        running.waker().wake();
    }
    recorder.wait_for(3);
    let accepted = names(0..3).into_iter().map(|batch| (batch, Outcome::Accepted));
    assert_eq!(recorder.outcomes(), accepted.collect::<Vec<_>>());
    let expected = [vec![names(0..1)[0].clone(); BUSY], names(0..3)].concat();
    assert_eq!(requests.change(|all| all.clone()), expected);
    running.wait_for_shutdown().unwrap();
}
