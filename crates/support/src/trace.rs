use grid_batch_core::batches::TraceContext;
use tokio::task_local;

task_local! {
    static TRACE: TraceContext;
}

/// Runs a future for one batch. The requests that it sends, in its own task, carry the trace of the batch, so that a
/// ledger's adapter need not pass it on.
pub async fn in_trace<F: Future>(trace: Option<&TraceContext>, future: F) -> F::Output {
    match trace {
        Some(trace) => TRACE.scope(trace.clone(), future).await,
        None => future.await,
    }
}

/// The trace of the batch for which the present task works.
pub fn present_trace() -> Option<TraceContext> {
    TRACE.try_with(TraceContext::clone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn trace_is_present_within_the_future_only() {
        let trace: TraceContext =
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let within = in_trace(Some(&trace), async { present_trace() }).await;
        assert_eq!(within, Some(trace));
        assert_eq!(present_trace(), None);
        assert_eq!(in_trace(None, async { present_trace() }).await, None);
    }
}
