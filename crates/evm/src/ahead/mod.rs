//! Signs withdrawals before it is their turn, and follows them together.
//!
//! The queue submits one withdrawal of a gas admin at a time. While it is under way, the following ones get the next
//! nonces, in order, and are sent as well. They are usually mined by the time their turn comes.

mod follow;
mod look;
mod pauses;
mod raise_fees;
mod resend;
mod sign;

pub(crate) use look::LookAhead;
pub(crate) use pauses::AheadPauses;
