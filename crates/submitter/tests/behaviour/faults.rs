//! Parts that panic, and parts that say no.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use grid_batch_core::{
    GlobalScopeId, Outcome, RunningSubmitter, ShutdownHandle, Submission, SubmissionAnswer,
    SubmissionSender, UrlResolver,
};
use grid_batch_submitter::{FixedUrlResolver, PerServiceUrlResolver, SubmitterOptions, UrlHealth};

use crate::support::*;

fn message(recorder: &Recorder) -> String {
    recorder.outcomes.change(|outcomes| outcomes[0].answer.message.clone().unwrap_or_default())
}

fn panic_as_answer(message: &str) -> SubmissionAnswer {
    panic!("{message}")
}

#[test]
fn a_sender_that_panics_leaves_the_batch_in_doubt() {
    let at_once = Sender(|_: &Submission<GlobalScopeId>| -> Answering { panic!("at once") });
    let later = Sender(|_: &Submission<GlobalScopeId>| -> Answering {
        Box::pin(async {
            tokio::task::yield_now().await;
            panic_as_answer("later, at http://user:secret@host")
        })
    });
    let senders: [Arc<dyn SubmissionSender<Id = GlobalScopeId>>; 2] =
        [Arc::new(at_once), Arc::new(later)];
    for (sender, said) in senders.into_iter().zip(["at once", "later, at http://host"]) {
        let recorder = Arc::new(Recorder::default());
        let running = run(builder(1, sender, &recorder));
        recorder.wait_for(1);
        assert_eq!(recorder.tally(), [(Outcome::Ambiguous, 1)].into());
        assert_eq!(message(&recorder), format!("the sender panicked: {said}"));
        assert_eq!(running.stop().unwrap().counters().read().panics, 1);
    }
}

#[test]
fn a_sending_that_panics_while_it_is_broken_off_leaves_the_batch_in_doubt() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let arrived = Arc::new(Watched::<usize>::default());
    let sender = {
        let arrived = Arc::clone(&arrived);
        Arc::new(Sender(move |_: &Submission<GlobalScopeId>| {
            arrived.change(|count| *count += 1);
            Box::pin(async {
                let _panics = PanicsWhenDropped;
                std::future::pending().await
            }) as Answering
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
fn a_queue_that_panics_is_polled_again() {
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
    gate.let_through(2);
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
fn a_resolver_that_panics_leaves_the_batch_unsent() {
    struct Panicking;
    impl fmt::Debug for Panicking {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Panicking")
        }
    }
    impl UrlResolver for Panicking {
        type Id = GlobalScopeId;
        fn url(&self, _: &GlobalScopeId) -> String {
            panic!("nowhere")
        }
    }
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let resolver = Arc::new(Panicking);
    let running = run(builder(1, gate.sender(), &recorder).with_url_resolver(resolver));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.tally(), [(Outcome::NotSent, 1)].into());
    assert_eq!(message(&recorder), "the URL resolver panicked: nowhere");
}

#[test]
fn a_health_keeper_that_panics_changes_no_outcome() {
    struct Panicking;
    impl UrlHealth for Panicking {
        fn report(&self, _: &str, _: &str, _: Outcome) {
            panic!("the keeper panics")
        }
    }
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    gate.let_through(1);
    let running = run(builder(1, gate.sender(), &recorder).with_url_health(Arc::new(Panicking)));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.tally(), [(Outcome::Accepted, 1)].into());
}

#[test]
fn a_batch_of_a_service_without_an_address_is_refused_and_not_sent() {
    let (gate, recorder) = (Gate::closed(), Arc::new(Recorder::default()));
    let resolver = Arc::new(PerServiceUrlResolver::new([]));
    let running = run(builder(1, gate.sender(), &recorder).with_url_resolver(resolver));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(recorder.tally(), [(Outcome::Refused, 1)].into());
    assert_eq!(message(&recorder), "no address is configured for the service: global");
    gate.arrived.wait_until(|arrived| *arrived == 0);
}

#[test]
fn the_address_is_asked_for_at_each_attempt() {
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);
    impl UrlResolver for Counting {
        type Id = GlobalScopeId;
        fn url(&self, scope: &GlobalScopeId) -> String {
            self.0.fetch_add(1, SeqCst);
            FixedUrlResolver::new("http://ledger").url(scope)
        }
    }
    let sender = Arc::new(Sender(|_: &Submission<GlobalScopeId>| {
        let mut answer = answer(Outcome::NotSent);
        answer.message = Some("no way to http://user:secret@ledger/batches".to_owned());
        Box::pin(async { answer }) as Answering
    }));
    let (resolver, recorder) = (Arc::new(Counting::default()), Arc::new(Recorder::default()));
    let running = run(builder(1, sender, &recorder)
        .with_url_resolver(Arc::<Counting>::clone(&resolver))
        .with_options(SubmitterOptions { not_sent_attempts: 4, ..options() }));
    recorder.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(resolver.0.load(SeqCst), 4);
    assert_eq!(message(&recorder), "no way to http://ledger/batches");
}
