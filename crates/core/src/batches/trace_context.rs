use std::{fmt, iter, str::FromStr};

use thiserror::Error;

/// The trace that a request belongs to, as the [W3C] defines it: the headers `traceparent` and `tracestate`.
///
/// Its text is the stored form: the `traceparent` and, after a space, the `tracestate`, if there is one.
///
/// ```
/// use grid_batch_core::batches::TraceContext;
///
/// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let trace = TraceContext::from_headers(parent, ["rojo=00f067aa0ba902b7"]).unwrap();
/// assert_eq!(trace.traceparent(), parent);
/// assert_eq!(trace.to_string().parse(), Ok(trace));
/// ```
///
/// [W3C]: https://www.w3.org/TR/trace-context/
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    traceparent: Box<str>,
    tracestate: Box<str>,
}

/// A text that is not a [`TraceContext`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a trace must be a traceparent, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct TraceContextError;

impl TraceContext {
    /// Limits on the length of a `tracestate`, in bytes, and on the number of its members. A longer one is dropped.
    pub const LONGEST_STATE: usize = 512;
    const MOST_MEMBERS: usize = 32;

    /// The trace of a request. `None`: `traceparent` is invalid, and is ignored with `tracestate`. An invalid or long
    /// `tracestate` alone is left out.
    pub fn from_headers<'a>(
        traceparent: &str,
        tracestate: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let traceparent = read_traceparent(traceparent.trim_matches([' ', '\t']))?;
        let states: Vec<&str> = tracestate.into_iter().collect();
        let tracestate = read_tracestate(&states.join(",")).unwrap_or_default();
        Some(Self { traceparent: traceparent.into(), tracestate: tracestate.into() })
    }

    /// The header of this name, in version 00.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The header of this name; empty if there is none.
    pub fn tracestate(&self) -> &str {
        &self.tracestate
    }

    /// The headers with their names.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let state = Some(self.tracestate()).filter(|state| !state.is_empty());
        let state = state.map(|state| ("tracestate", state));
        iter::once(("traceparent", self.traceparent())).chain(state)
    }

    /// The id of the trace, as 32 digits.
    pub fn trace_id(&self) -> &str {
        self.field(1)
    }

    /// The id of the span of the request's sender, as 16 digits.
    pub fn parent_id(&self) -> &str {
        self.field(2)
    }

    /// Whether the sender records the trace.
    pub fn is_sampled(&self) -> bool {
        u8::from_str_radix(self.field(3), 16).is_ok_and(|flags| flags & 1 == 1)
    }

    fn field(&self, index: usize) -> &str {
        self.traceparent.split('-').nth(index).unwrap_or_default()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent)?;
        if self.tracestate.is_empty() { Ok(()) } else { write!(f, " {}", self.tracestate) }
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (parent, state) = text.split_once(' ').unwrap_or((text, ""));
        Self::from_headers(parent, [state]).ok_or(TraceContextError)
    }
}

/// The header in version 00. A higher version may have more fields, which are left out, and other flags, of which only
/// the first is known.
fn read_traceparent(text: &str) -> Option<String> {
    const LENGTH: usize = 55;
    let (fields, more) = text.split_at_checked(LENGTH)?;
    let [version, trace, parent, flags] = fields.split('-').collect::<Vec<_>>().try_into().ok()?;
    let is_hex = |field: &str, length: usize| {
        field.len() == length && field.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |field: &str, length| is_hex(field, length) && field.bytes().any(|c| c != b'0');
    let is_version = is_hex(version, 2) && version != "ff";
    let ends = more.is_empty() || (version != "00" && more.starts_with('-'));
    if !(is_version && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2) && ends) {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    let known = if version == "00" { flags } else { flags & 1 };
    Some(format!("00-{trace}-{parent}-{known:02x}"))
}

/// The members, without spaces around them. `None`: they are invalid or too long.
fn read_tracestate(text: &str) -> Option<String> {
    let members = text.split(',').map(|member| member.trim_matches([' ', '\t']));
    let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    let state = members.join(",");
    let is_short =
        members.len() <= TraceContext::MOST_MEMBERS && state.len() <= TraceContext::LONGEST_STATE;
    (is_short && members.iter().all(|member| is_member(member))).then_some(state)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_key = |c: u8| {
        c.is_ascii_lowercase()
            || c.is_ascii_digit()
            || matches!(c, b'_' | b'-' | b'*' | b'/' | b'@')
    };
    let is_value = |c: u8| matches!(c, 0x20..=0x7e) && c != b'=';
    !key.is_empty() && key.bytes().all(is_key) && !value.is_empty() && value.bytes().all(is_value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(parent: &str) -> Option<TraceContext> {
        TraceContext::from_headers(parent, [])
    }

    #[test]
    fn valid_header_has_a_trace_a_parent_and_flags() {
        let trace = read(PARENT).unwrap();
        assert_eq!(trace.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.parent_id(), "00f067aa0ba902b7");
        assert!(trace.is_sampled());
        assert!(!read(&PARENT.replace("-01", "-02")).unwrap().is_sampled());
        assert_eq!(read(&format!(" {PARENT}\t")), Some(trace));
    }

    #[test]
    fn higher_version_is_read_as_the_first_one() {
        let higher = PARENT.replacen("00", "cc", 1);
        for text in [higher.clone(), format!("{higher}-what-comes"), higher.replace("-01", "-07")] {
            assert_eq!(read(&text).unwrap().traceparent(), PARENT, "{text}");
        }
        assert_eq!(read(&format!("{higher}.what")), None);
    }

    #[test]
    fn invalid_header_is_ignored() {
        let zeros = |count| "0".repeat(count);
        for text in [
            String::new(),
            "00".to_owned(),
            PARENT.to_uppercase(),
            PARENT.replacen("00", "ff", 1),
            PARENT.replacen("00", "0g", 1),
            PARENT.replace('-', "_"),
            PARENT[..54].to_owned(),
            format!("{PARENT}-"),
            format!("{PARENT}0"),
            format!("{PARENT}, {PARENT}"),
            format!("00-{}-00f067aa0ba902b7-01", zeros(32)),
            format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", zeros(16)),
            "é".repeat(40),
        ] {
            assert_eq!(read(&text), None, "{text}");
        }
    }

    #[test]
    fn state_is_kept_if_it_is_valid_and_short() {
        let state = |states: &[&str]| {
            let trace = TraceContext::from_headers(PARENT, states.iter().copied()).unwrap();
            trace.tracestate().to_owned()
        };
        assert_eq!(state(&[]), "");
        assert_eq!(state(&["a=1 , b@c=x y"]), "a=1,b@c=x y");
        assert_eq!(state(&["a=1", "", "b=2"]), "a=1,b=2");
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(511));
        for invalid in ["a", "=1", "a=", "A=1", "a=1,b", "a=\u{e9}", "a=1=2", &many, &long] {
            assert_eq!(state(&[invalid]), "", "{invalid}");
        }
    }

    #[test]
    fn headers_have_no_empty_state() {
        for (state, names) in [("", &["traceparent"][..]), ("a=1", &["traceparent", "tracestate"])]
        {
            let trace = TraceContext::from_headers(PARENT, [state]).unwrap();
            assert_eq!(trace.headers().map(|(name, _)| name).collect::<Vec<_>>(), names);
        }
    }

    proptest! {
        #[test]
        fn stored_form_is_read_as_the_same(
            (trace, parent, flags) in ("[0-9a-f]{31}1", "[0-9a-f]{15}1", "[0-9a-f]{2}"),
            states in prop::collection::vec("[ -~]{0,40}", 0..5),
        ) {
            let header = format!("00-{trace}-{parent}-{flags}");
            let context = TraceContext::from_headers(&header, states.iter().map(String::as_str));
            let context = context.unwrap();
            prop_assert_eq!(context.traceparent(), header);
            prop_assert!(context.tracestate().len() <= TraceContext::LONGEST_STATE);
            prop_assert_eq!(context.to_string().parse(), Ok(context));
        }

        #[test]
        fn any_text_is_read_or_ignored(parent in "\\PC{0,70}", near in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f-]{16}-[0-9a-f.-]{2,6}", state in "\\PC{0,40}") {
            for text in [parent, near] {
                if let Some(context) = TraceContext::from_headers(&text, [state.as_str()]) {
                    prop_assert_eq!(context.traceparent().len(), 55);
                    prop_assert!(context.headers().all(|(_, value)| value.is_ascii()));
                    prop_assert_eq!((context.trace_id().len(), context.parent_id().len()), (32, 16));
                }
            }
        }
    }
}
