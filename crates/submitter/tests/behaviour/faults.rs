//! Parts of a submitter that panic or refuse.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use grid_batch_core::GlobalScopeId;
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_nodes::NodePool;
use grid_batch_submitter::{
    RunningSubmitter, ShutdownHandle, SubmissionSender, SubmitterOptions, UrlResolver,
};

use crate::support::*;

fn message(recorder: &Recorder) -> String {
    recorder.outcomes.change(|outcomes| outcomes[0].answer.message.clone().unwrap_or_default())
}

fn panic_as_answer(message: &str) -> SubmissionAnswer {
    panic!("{message}")
}

#[test]
fn panic_of_a_sender_is_ambiguous() {
    let early = FnSender(|_: &Submission<GlobalScopeId>| -> AnswerFuture { panic!("early") });
    let late = FnSender(|_: &Submission<GlobalScopeId>| -> AnswerFuture {
        Box::pin(async {
            tokio::task::yield_now().await;
            panic_as_answer("late, at http://user:secret@host")
        })
    });
    let senders: [Arc<dyn SubmissionSender<Id = GlobalScopeId>>; 2] =
        [Arc::new(early), Arc::new(late)];
    for (sender, panic) in senders.into_iter().zip(["early", "late, at http://host"]) {
        let recorder = Arc::new(Recorder::default());
        let running = run(builder(1, sender, &recorder));
        recorder.wait_for(1);
        assert_eq!(recorder.count_by_outcome(), [(Outcome::Ambiguous, 1)].into());
        assert_eq!(message(&recorder), format!("the sender panicked: {panic}"));
        assert_eq!(running.stop().unwrap().counters().read().panics, 1);
    }
}

#[test]
fn panic_of_an_aborted_attempt_is_ambiguous() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let arrived = Arc::new(WatchedValue::<usize>::default());
    let sender = {
        let arrived = Arc::clone(&arrived);
        Arc::new(FnSender(move |_: &Submission<GlobalScopeId>| {
            arrived.change(|count| *count += 1);
            Box::pin(async {
                let _panics = PanicsWhenDropped;
                std::future::pending().await
            }) as AnswerFuture
        }))
    };
    let recorder = Arc::new(Recorder::default());
    let short = SubmitterOptions { drain_limit: Duration::from_millis(1), ..options() };
    let running = run(builder(1, sender, &recorder).with_options(short));
    arrived.wait_until(|count| *count == 1);
    running.stop().unwrap();
    assert_eq!(recorder.outcomes(), [("batch-00000".to_owned(), Outcome::Ambiguous)]);
}

#[test]
fn panicking_queue_is_polled_again() {
    struct Panicking(usize);
    impl Iterator for Panicking {
        type Item = Submission<GlobalScopeId>;
        fn next(&mut self) -> Option<Self::Item> {
            self.0 += 1;
            match self.0 {
                1 | 3 => panic!("the queue panics"),
                2 | 4 => submissions(0..2).into_iter().nth(self.0 / 2 - 1),
                _ => None,
            }
        }
    }
    let gate = Gate::closed();
    gate.allow(2);
    let recorder = Arc::new(Recorder::default());
    let short = SubmitterOptions { poll_interval: Duration::from_millis(1), ..options() };
    let builder = builder(0, gate.sender(), &recorder).with_queue(Panicking(0));
    let running = run(builder.with_options(short));
    recorder.wait_for(2);
    assert_eq!(running.stats().panics, 2);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(2);
}

#[test]
fn panic_of_a_resolver_is_not_sent() {
    struct Panicking;
    impl fmt::Debug for Panicking {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Panicking")
        }
    }
    impl UrlResolver for Panicking {
        type Id = GlobalScopeId;
        fn url(&self, _: &GlobalScopeId) -> String {
            panic!("no address")
        }
    }
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let resolver = Arc::new(Panicking);
    let running = run(builder(1, gate.sender(), &recorder).with_url_resolver(resolver));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.count_by_outcome(), [(Outcome::NotSent, 1)].into());
    assert_eq!(message(&recorder), "the URL resolver panicked: no address");
}

#[test]
fn panic_of_a_report_does_not_change_the_outcome() {
    #[derive(Debug)]
    struct Panicking;
    impl UrlResolver for Panicking {
        type Id = GlobalScopeId;
        fn url(&self, _: &GlobalScopeId) -> String {
            "http://ledger".to_owned()
        }
        fn report(&self, _: &str, _: &str, _: Outcome) {
            panic!("the report panics")
        }
    }
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    gate.allow(1);
    let running = run(builder(1, gate.sender(), &recorder).with_url_resolver(Arc::new(Panicking)));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.count_by_outcome(), [(Outcome::Accepted, 1)].into());
}

#[test]
fn batch_without_an_address_is_refused() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let resolver = NodePool::default().resolver();
    let running = run(builder(1, gate.sender(), &recorder).with_url_resolver(resolver));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.count_by_outcome(), [(Outcome::Refused, 1)].into());
    assert_eq!(message(&recorder), "no address is configured for the service: global");
    gate.arrived.wait_until(|arrived| *arrived == 0);
}

#[test]
fn unsent_batch_is_sent_to_each_address_once() {
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);
    impl UrlResolver for Counting {
        type Id = GlobalScopeId;
        fn url(&self, _: &GlobalScopeId) -> String {
            format!("http://ledger-{}", self.0.fetch_add(1, SeqCst))
        }
    }
    let sender = Arc::new(FnSender(|_: &Submission<GlobalScopeId>| {
        let mut answer = answer(Outcome::NotSent);
        answer.message = Some("cannot reach http://user:secret@ledger/batches".to_owned());
        Box::pin(async { answer }) as AnswerFuture
    }));
    let (resolver, recorder) = (Arc::new(Counting::default()), Arc::new(Recorder::default()));
    let running = run(builder(1, sender, &recorder)
        .with_url_resolver(Arc::<Counting>::clone(&resolver))
        .with_options(SubmitterOptions { not_sent_attempts: 4, ..options() }));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(resolver.0.load(SeqCst), 4);
    assert_eq!(message(&recorder), "http://ledger-3: cannot reach http://ledger/batches");
}
