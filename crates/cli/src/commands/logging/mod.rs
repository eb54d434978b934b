//! The log: its formats, and the summaries of repeated lines.

mod json;
mod repeated;
mod summing_logger;
mod text;

use env_logger::Builder;
use grid_batch_core::InternalError;
use grid_batch_service::LogFormat;
use log::set_boxed_logger;

use summing_logger::SummingLogger;

/// Logs to standard error, one line for each record that passes a filter in the syntax of `env_logger`. `repeats`: how
/// many lines with the same message are logged in ten seconds; 0 for all.
pub(crate) fn start(filter: &str, format: LogFormat, repeats: u32) -> Result<(), InternalError> {
    let mut builder = Builder::new();
    builder.parse_filters(filter);
    match format {
        LogFormat::Text => builder.format(text::write),
        LogFormat::Json => builder.format(json::write),
    };
    let inner = builder.build();
    let max_level = inner.filter();
    let logger = SummingLogger::start(inner, repeats)?;
    set_boxed_logger(Box::new(logger))
        .map_err(|error| InternalError::from_source("cannot start the log", error))?;
    log::set_max_level(max_level);
    Ok(())
}
