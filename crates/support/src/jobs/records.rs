use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::BatchError;
use log::{error, info, warn};

use crate::{Panic, lock};

/// A report about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Its name.
    pub name: &'static str,
    /// Its runs, if it runs repeatedly.
    pub runs: Option<JobRuns>,
    /// Why its last run failed, or how it has ended although it was not stopped.
    pub problem: Option<String>,
    /// Whether it has ended although it was not stopped.
    pub has_ended: bool,
}

/// The runs of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobRuns {
    /// How many have ended.
    pub count: u64,
    /// How long they took together.
    pub time: Duration,
    /// How late the last one started.
    pub lag: Duration,
    /// How long the present run has taken so far.
    pub running_for: Option<Duration>,
}

/// The records of all jobs. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct JobRecords(Arc<Mutex<Records>>);

/// The records by the name and number of the jobs, because several jobs may have the same name.
#[derive(Debug, Default)]
struct Records {
    by_job: BTreeMap<(&'static str, u64), Record>,
    next_number: u64,
}

#[derive(Debug, Default)]
struct Record {
    runs: Option<JobRuns>,
    running_since: Option<Instant>,
    problem: Option<String>,
    has_ended: bool,
}

impl JobRecords {
    pub(super) fn add(&self, name: &'static str) -> JobRecord {
        let mut records = lock(&self.0);
        let number = records.next_number;
        records.next_number += 1;
        records.by_job.insert((name, number), Record::default());
        JobRecord { records: self.clone(), name, number }
    }

    pub(super) fn reports(&self) -> Vec<JobReport> {
        let records = lock(&self.0);
        let report = |(&(name, _), record): (&(&'static str, u64), &Record)| JobReport {
            name,
            runs: record.runs.map(|runs| JobRuns {
                running_for: record.running_since.map(|since| since.elapsed()),
                ..runs
            }),
            problem: record.problem.clone(),
            has_ended: record.has_ended,
        };
        records.by_job.iter().map(report).collect()
    }
}

/// The record of one job.
#[derive(Debug, Clone)]
pub(super) struct JobRecord {
    records: JobRecords,
    name: &'static str,
    number: u64,
}

/// A run that has not ended.
pub(super) struct Run<'a> {
    record: &'a JobRecord,
    started: Instant,
}

impl JobRecord {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        change(lock(&self.records.0).by_job.entry((self.name, self.number)).or_default());
    }

    /// Records the start of a run that was due at `due`.
    pub(super) fn started(&self, due: Instant) -> Run<'_> {
        let started = Instant::now();
        self.change(|record| {
            record.running_since = Some(started);
            record.runs.get_or_insert_default().lag = started.saturating_duration_since(due);
        });
        Run { record: self, started }
    }

    /// Records that the job has ended.
    pub(super) fn job_ended(&self, was_requested: bool, panic: Option<&Panic>) {
        if let Some(panic) = panic {
            error!(job = self.name, panic:%; "a job panicked and has ended");
        }
        if was_requested {
            lock(&self.records.0).by_job.remove(&(self.name, self.number));
        } else {
            let problem = panic.map_or_else(|| "it has ended".to_owned(), ToString::to_string);
            self.change(|record| {
                record.problem = Some(problem);
                record.has_ended = true;
            });
        }
    }
}

impl Run<'_> {
    pub(super) fn ended(self, error: Option<&BatchError>) {
        let problem = error.map(ToString::to_string);
        let mut had_failed = false;
        self.record.change(|record| {
            let runs = record.runs.get_or_insert_default();
            runs.count += 1;
            runs.time += self.started.elapsed();
            record.running_since = None;
            had_failed = record.problem.is_some();
            record.problem.clone_from(&problem);
        });
        let job = self.record.name;
        match problem {
            Some(error) if !had_failed => {
                warn!(job, error = error.as_str(); "a job failed; it is tried again");
            }
            None if had_failed => info!(job; "a job works again"),
            _ => {}
        }
    }
}
