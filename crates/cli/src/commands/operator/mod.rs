//! What the commands for operators share: which database, which batches, and how they are printed.

mod age;
mod batch_arguments;
mod batch_name;
mod report;
mod service_selection;
mod wrapped;

pub(super) use age::rough;
pub(super) use batch_arguments::{AttemptArg, BatchesArgs, NamedBatches, Word};
pub(super) use batch_name::BatchName;
pub(super) use report::Report;
pub(super) use service_selection::ServiceSelection;
pub(super) use wrapped::{LINE_WIDTH, print_wrapped, wrapped};
