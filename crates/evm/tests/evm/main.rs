//! The adapter against a real node, with a proxy between that does what nodes are known to do wrong.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod cancelling;
mod elsewhere;
mod endings;
mod gaps;
mod gates;
mod nodes;
mod oracle;
mod preparing;
mod raising;
mod sending;
mod stale;
mod store;
mod storing;
mod world;
