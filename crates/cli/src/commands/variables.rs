//! The environment variables of the commands that use a running server. They are not settings of a server.

pub(super) const URL: &str = "GRID_BATCH_URL";
pub(super) const TOKEN: &str = "GRID_BATCH_TOKEN";
pub(super) const PROFILE: &str = "GRID_BATCH_PROFILE";

/// Of OpenTelemetry.
pub(super) const TRACEPARENT: &str = "TRACEPARENT";
pub(super) const TRACESTATE: &str = "TRACESTATE";

/// All that are of grid-batch alone.
pub(super) const ALL: [&str; 3] = [URL, TOKEN, PROFILE];
