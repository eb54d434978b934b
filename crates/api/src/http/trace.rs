use axum::http::HeaderMap;
use grid_batch_core::batches::TraceContext;

/// The trace that a request belongs to. Invalid headers are ignored, as the W3C's Trace Context requires.
pub(crate) fn read_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let states = headers.get_all("tracestate").iter();
    let states = states.map(|state| state.to_str().unwrap_or_default());
    TraceContext::from_headers(parent.to_str().ok()?, states)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(headers: &[(&'static str, &[u8])]) -> Option<String> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_bytes(value).unwrap()));
        read_trace(&HeaderMap::from_iter(headers)).map(|trace| trace.to_string())
    }

    #[test]
    fn trace_is_in_one_header_with_the_state_in_others() {
        let parent = ("traceparent", PARENT.as_bytes());
        assert_eq!(read(&[parent]).as_deref(), Some(PARENT));
        let with_state = read(&[parent, ("tracestate", b"a=1"), ("tracestate", b"b=2")]);
        assert_eq!(with_state, Some(format!("{PARENT} a=1,b=2")));
    }

    #[test]
    fn invalid_headers_are_ignored() {
        let parent = ("traceparent", PARENT.as_bytes());
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("tracestate", b"a=1")]), None);
        assert_eq!(read(&[parent, parent]), None);
        assert_eq!(read(&[("traceparent", b"\xff")]), None);
        assert_eq!(read(&[parent, ("tracestate", b"\xff")]).as_deref(), Some(PARENT));
    }
}
