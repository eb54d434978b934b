#![doc = include_str!("../README.md")]

mod attempts;
mod commit_times;
mod decision_times;
mod due_times;
mod records;
mod sending;
mod table;

pub use commit_times::{CommitTimes, Intervals, PollCause, PollTimes, SeenCommit};
pub use decision_times::SeenDecision;
pub use due_times::{Due, DueKind, DueTimes, WorkKey};
pub use records::{
    BatchWork, Look, Observed, Poll, Question, Restored, Search, ServiceWork, Trigger, UnderWay,
};
pub use sending::{Attempt, Delay, Place, Sending, ServiceSending};
pub use table::{Entered, Work, WorkTable};
