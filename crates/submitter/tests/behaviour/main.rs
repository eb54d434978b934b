//! Tests of a running submitter through its public interface.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

mod faults;
mod observing;
mod queueing;
mod reported_once;
mod retrying;
mod sending;
mod stopping;
mod support;
