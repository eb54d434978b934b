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

/// How the log is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions<'a> {
    /// Which records are logged, in the syntax of `env_logger`.
    pub(crate) filter: &'a str,
    pub(crate) format: LogFormat,
    /// How many lines with the same message are logged in ten seconds; 0 for all.
    pub(crate) repeats: u32,
}

#[cfg(feature = "demo")]
impl<'a> LogOptions<'a> {
    /// All lines that pass the filter, as text.
    pub(crate) fn all(filter: &'a str) -> Self {
        Self { filter, format: LogFormat::Text, repeats: 0 }
    }
}

/// Logs to standard error, one line for each record.
pub(crate) fn start(options: LogOptions<'_>) -> Result<(), InternalError> {
    let mut builder = Builder::new();
    builder.parse_filters(options.filter);
    match options.format {
        LogFormat::Text => builder.format(text::write),
        LogFormat::Json => builder.format(json::write),
    };
    let inner = builder.build();
    let max_level = inner.filter();
    let logger = SummingLogger::start(inner, options.repeats)?;
    set_boxed_logger(Box::new(logger))
        .map_err(|error| InternalError::from_source("cannot start the log", error))?;
    log::set_max_level(max_level);
    Ok(())
}
