//! Signs withdrawals before it is their turn, and follows them together.
//!
//! The queue submits one withdrawal of a gas admin at a time. While it is under way, those behind it get
//! the next nonces, in order, and are sent as well. When it is their turn, they are usually mined.

mod follow;
mod look;
mod pauses;
mod raise_fees;
mod resend;
mod sign;

pub(crate) use look::LookAhead;
pub(crate) use pauses::AheadPauses;
