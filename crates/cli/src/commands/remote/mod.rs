//! What the commands share that talk to a running server.

mod exit;
mod explanation;
mod retries;
mod server;
mod table;
mod text;

pub(super) use exit::{EX_INVALID, EX_TIMED_OUT};
pub(super) use explanation::explanation_lines;
pub(super) use retries::Retries;
pub(super) use server::{Server, VARIABLES, flags, server_flags};
pub(super) use table::{Table, terminal_width};
pub(super) use text::{age, field};
