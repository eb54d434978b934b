//! What the commands share that talk to a running server.

mod actions;
mod explanation;
mod gas;
mod profile;
mod progress;
mod resource;
mod retries;
mod server;
mod source;
mod table;
mod text;
mod user;

pub(super) use actions::{act_on_each, action_path, changed};
pub(super) use explanation::{explanation_lines, position};
pub(super) use gas::gas_text;
pub(super) use progress::ProgressLine;
pub(super) use resource::{
    TRANSACTIONS, WITHDRAWALS, given_fields, id_and_state, random_idempotency_key, state_and_reason,
};
pub(super) use retries::{Retries, TimeoutArg};
pub(super) use server::Server;
pub(super) use source::{Source, check_withdrawals};
pub(super) use table::{Table, terminal_width};
pub(super) use text::{
    age, change, elapsed, entries, field, joined, print_each, print_line, print_time, state_text,
    time, time_until,
};
