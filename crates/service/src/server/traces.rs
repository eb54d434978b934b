//! The export of traces, if this build has it.

use std::sync::Arc;

use grid_batch_core::InternalError;
use grid_batch_core::webhooks::EventReceiver;

use super::base::Base;

type TraceExportResult = Result<Option<Arc<dyn EventReceiver>>, InternalError>;

/// What exports traces, if the environment names a collector.
#[cfg(feature = "otlp")]
pub(super) fn trace_export(base: &Base<'_>) -> TraceExportResult {
    let store = Arc::new(base.store.clone());
    let blocking = base.jobs.blocking().clone();
    let export = grid_batch_otlp::TraceExport::start(store.clone(), &*store, blocking);
    let failed =
        |error| InternalError::from_source("cannot store the export of traces as a webhook", error);
    let export = export.map_err(failed)?;
    Ok(export.map(|export| Arc::new(export) as Arc<dyn EventReceiver>))
}

#[cfg(not(feature = "otlp"))]
pub(super) fn trace_export(_base: &Base<'_>) -> TraceExportResult {
    const ENDPOINTS: [&str; 2] =
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if ENDPOINTS.iter().any(|name| std::env::var_os(name).is_some_and(|it| !it.is_empty())) {
        log::warn!(
            "traces are not exported: this build lacks the feature otlp, which packages have"
        );
    }
    Ok(None)
}
