use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
};

use grid_batch_core::BatchError;

use super::*;
use crate::ShutdownHandle;

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3_600);

/// Work that returns these results in turn and then succeeds, and a receiver that gets a message at each run.
fn work(
    results: Vec<BatchResult<Next>>,
) -> (impl FnMut() -> BatchResult<Next> + Send + 'static, Receiver<()>) {
    let (sender, runs) = channel();
    let mut results = results.into_iter();
    let work = move || {
        // An error means that the test has ended.
        let _ = sender.send(());
        results.next().unwrap_or(Ok(Next::AfterInterval))
    };
    (work, runs)
}

fn failed() -> BatchResult<Next> {
    Err(BatchError::Unavailable("no connection".to_owned()))
}

fn report(jobs: &Jobs, name: &str) -> Option<JobReport> {
    jobs.reports().into_iter().find(|report| report.name == name)
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(SHORT);
    }
}

#[test]
fn job_runs_again_and_again_until_it_is_stopped() {
    let jobs = Jobs::start().unwrap();
    let (mut work, runs) = work(Vec::new());
    let job = jobs.every("job", SHORT, move || work().map(drop));
    (0..3).for_each(|_| runs.recv().unwrap());
    assert!(report(&jobs, "job").unwrap().runs.unwrap().count >= 2);
    job.join().unwrap();
    assert!(runs.iter().count() < usize::MAX, "the work was dropped");
    assert_eq!(report(&jobs, "job"), None);
}

#[test]
fn stopped_job_does_not_wait_for_its_interval() {
    let jobs = Jobs::start().unwrap();
    jobs.every("job", LONG, || Ok(())).join().unwrap();
}

#[test]
fn trigger_and_more_work_run_a_job_before_its_interval() {
    let jobs = Jobs::start().unwrap();
    let trigger = JobTrigger::default();
    let (work, runs) = work(vec![Ok(Next::AtOnce), Ok(Next::After(SHORT)), failed()]);
    let schedule = Schedule::every(LONG).or_on(&trigger).after_failure(SHORT);
    let _job = jobs.repeat("job", schedule, work);
    trigger.fire();
    (0..4).for_each(|_| runs.recv().unwrap());
    trigger.fire();
    runs.recv().unwrap();
}

#[test]
fn failed_run_is_reported_until_one_succeeds() {
    let jobs = Jobs::start().unwrap();
    let trigger = JobTrigger::default();
    let (work, _runs) = work(vec![failed()]);
    let schedule = Schedule::every(LONG).first_after(Duration::ZERO).or_on(&trigger);
    let _job = jobs.repeat("job", schedule, work);
    let problem = || report(&jobs, "job").unwrap().problem;
    wait_until(|| problem().is_some());
    assert_eq!(problem().unwrap(), failed().unwrap_err().to_string());
    trigger.fire();
    wait_until(|| problem().is_none());
}

#[test]
fn job_that_panics_goes_on() {
    let jobs = Jobs::start().unwrap();
    let (mut work, runs) = work(Vec::new());
    let _job = jobs.every("job", SHORT, move || {
        work()?;
        panic!("of the test")
    });
    (0..3).for_each(|_| runs.recv().unwrap());
    assert_eq!(report(&jobs, "job").unwrap().problem.unwrap(), "it panicked: of the test");
}

#[test]
fn future_or_thread_that_panics_is_reported() {
    let jobs = Jobs::start().unwrap();
    let future = jobs.spawn("future", async { panic!("of the test") });
    let thread = jobs.thread("thread", Shutdown::new(), || panic!("of the test"));
    for (name, job) in [("future", future), ("thread", thread.unwrap())] {
        wait_until(|| report(&jobs, name).unwrap().has_ended);
        let error = job.wait_for_shutdown().unwrap_err().to_string();
        assert_eq!(error, format!("the job {name} panicked"));
    }
}

#[test]
fn stopped_future_is_dropped_before_join_returns() {
    let jobs = Jobs::start().unwrap();
    let (sender, receiver) = channel::<()>();
    let job = jobs.spawn("job", async move {
        let _sender = sender;
        std::future::pending().await
    });
    job.join().unwrap();
    assert_eq!(receiver.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
}

#[test]
fn result_of_a_thread_is_returned() {
    let jobs = Jobs::start().unwrap();
    let shutdown = Shutdown::new();
    let stopped = shutdown.clone();
    let handle = jobs.handle().clone();
    let job = jobs.thread("job", shutdown, move || {
        handle.block_on(stopped.requested());
        thread::current().name().map(ToOwned::to_owned)
    });
    drop(jobs);
    assert_eq!(job.unwrap().join().unwrap().as_deref(), Some("job"));
}

#[test]
fn jobs_that_block_do_not_block_futures_threads_or_the_end() {
    let jobs = Jobs::start().unwrap();
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let blocked: Vec<Job> = ["a", "b", "c", "d", "e"]
        .map(|name| {
            let released = Arc::clone(&released);
            jobs.repeat(name, Schedule::every(SHORT), move || {
                let _ = released.lock().unwrap().recv();
                Ok(Next::AfterInterval)
            })
        })
        .into();
    let is_running = |report: &JobReport| report.runs.is_some_and(|it| it.running_for.is_some());
    wait_until(|| jobs.reports().iter().filter(|report| is_running(report)).count() >= 2);
    let (ran, runs) = channel();
    let ran_too = ran.clone();
    let _future = jobs.spawn("future", async move { ran.send(()).unwrap() });
    let _thread = jobs.thread("thread", Shutdown::new(), move || ran_too.send(()).unwrap());
    (0..2).for_each(|_| runs.recv().unwrap());
    blocked.into_iter().for_each(|job| job.stop_within(SHORT));
    drop(release);
}

#[test]
fn jobs_that_hang_do_not_block_other_jobs() {
    let jobs = Jobs::start().unwrap();
    let (release, released) = channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let hanging: Vec<Job> = ["a", "b", "c", "d", "e"]
        .map(|name| {
            let released = Arc::clone(&released);
            jobs.every(name, SHORT, move || {
                let _ = released.lock().unwrap().recv();
                Ok(())
            })
        })
        .into();
    let is_hanging = |report: &JobReport| report.runs.is_some_and(|it| it.running_for.is_some());
    wait_until(|| jobs.reports().iter().filter(|report| is_hanging(report)).count() == 5);
    let (mut work, runs) = work(Vec::new());
    let _job = jobs.every("job", SHORT, move || work().map(drop));
    (0..3).for_each(|_| runs.recv().unwrap());
    hanging.into_iter().for_each(|job| job.stop_within(SHORT));
    drop(release);
}

#[test]
fn jobs_of_one_name_have_reports_of_their_own() {
    let jobs = Jobs::start().unwrap();
    let [first, second] = [(); 2].map(|()| jobs.every("job", LONG, || Ok(())));
    first.join().unwrap();
    assert!(report(&jobs, "job").is_some());
    second.join().unwrap();
    assert_eq!(report(&jobs, "job"), None);
}
