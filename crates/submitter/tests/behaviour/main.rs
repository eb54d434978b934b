//! What a running submitter does, through its public interface alone.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod exactly_once;
mod faults;
mod observing;
mod queueing;
mod sending;
mod stopping;
mod support;
