//! What the commands share that talk to a running server.

mod actions;
mod explanation;
mod filtered_list;
mod gas;
mod profile;
mod progress;
mod retries;
mod server;
mod source;
mod table;
mod text;
mod user;

pub(super) use actions::{act_on_each, action_path, changed};
pub(super) use explanation::{explanation_lines, position};
pub(super) use filtered_list::{ListFilter, list_flags};
pub(super) use gas::gas_text;
pub(super) use progress::ProgressLine;
pub(super) use retries::{Retries, timeout_flag};
pub(super) use server::{Server, flags, server_flags};
pub(super) use source::{Source, action_flags, check_withdrawals, flags_of_both};
pub(super) use table::{Table, terminal_width};
pub(super) use text::{age, field, print_line, print_time, state_text, time_until};
