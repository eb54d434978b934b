//! What the commands for operators share: which database, which batches, and how they are printed.

mod action;
mod age;
mod batch_arguments;
mod batch_json;
mod batch_name;
mod changes;
mod database;
mod report;
mod service_selection;
mod targets;
mod wrapped;

pub(super) use action::{dry_run_flag, is_dry_run, operator_action};
pub(super) use age::{ago, in_future, rough};
pub(super) use batch_arguments::{NamedBatches, Word, attempt_flag, batch_arguments};
pub(super) use batch_json::{action_json, batch_json, details_json};
pub(super) use batch_name::BatchName;
pub(super) use changes::{Changed, act_on_each};
#[cfg(not(feature = "evm"))]
pub(super) use database::without_withdrawals;
pub(super) use database::{Database, json_flag, print_json, reason, reason_flag, wants_json};
pub(super) use report::{ChangedBatch, Report};
pub(super) use service_selection::ServiceSelection;
pub(super) use targets::{Target, find_targets, short_id};
pub(super) use wrapped::{LINE_WIDTH, print_wrapped, wrapped};
