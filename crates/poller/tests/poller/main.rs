//! What running monitors do, through their public interface alone.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod answering;
mod events;
mod evidence;
mod faults;
mod options;
mod polling;
mod stopping;
mod support;
mod triggering;
