//! Follows a withdrawal on the chain until its end.

mod pending_note;
mod status_reader;
mod withdrawal_status;
