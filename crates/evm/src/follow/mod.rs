//! Follows a withdrawal on the chain until its end.

mod final_result;
mod status_reader;
mod withdrawal_status;

pub use status_reader::EvmStatusReader;
