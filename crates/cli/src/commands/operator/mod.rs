//! What the commands for operators share: which database, which batches, and how they are printed.

mod action;
mod age;
mod batch_arguments;
mod batch_name;
mod json;
mod report;
mod service_selection;
mod wrapped;

pub(super) use action::{dry_run_flag, is_dry_run, reason, reason_flag};
pub(super) use age::rough;
pub(super) use batch_arguments::{NamedBatches, Word, attempt_flag, batch_arguments};
pub(super) use batch_name::BatchName;
pub(super) use json::{json_flag, print_json, wants_json};
pub(super) use report::Report;
pub(super) use service_selection::ServiceSelection;
pub(super) use wrapped::{LINE_WIDTH, print_wrapped, wrapped};
