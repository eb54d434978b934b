use grid_batch_core::{BatchError, BatchResult};
use grid_batch_support::one_line;
use serde::Deserialize;

/// A text that is received on the event websocket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventFrame {
    /// A block was committed. It names neither batches nor transactions.
    Block,
    /// The ledger reports a problem; the subscription continues.
    Warning(String),
    /// The ledger reports an error, such as an invalid subscription.
    Error(String),
}

impl EventFrame {
    pub(crate) fn parse(text: &str) -> BatchResult<Self> {
        #[derive(Deserialize)]
        struct Keys {
            block_id: Option<String>,
            warning: Option<String>,
            error: Option<String>,
        }
        let invalid = |reason: String| BatchError::InvalidAnswer(format!("event: {reason}"));
        let keys: Keys =
            serde_json::from_str(text).map_err(|error| invalid(one_line(error.to_string())))?;
        match keys {
            Keys { error: Some(text), .. } => Ok(Self::Error(one_line(text))),
            Keys { warning: Some(text), .. } => Ok(Self::Warning(one_line(text))),
            Keys { block_id: Some(_), .. } => Ok(Self::Block),
            _ => Err(invalid(format!("not a block, warning or error: {}", one_line(text)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_warnings_and_errors_are_parsed() {
        let block = r#"{"block_id": "5a", "block_num": "175", "state_changes": []}"#;
        assert_eq!(EventFrame::parse(block), Ok(EventFrame::Block));
        let warning = r#"{"warning": "Validator unavailable"}"#;
        assert_eq!(
            EventFrame::parse(warning),
            Ok(EventFrame::Warning("Validator unavailable".to_owned()))
        );
        let error = r#"{"error": "Unknown action \"x\""}"#;
        assert_eq!(
            EventFrame::parse(error),
            Ok(EventFrame::Error("Unknown action \"x\"".to_owned()))
        );
    }

    #[test]
    fn other_text_is_an_error() {
        for text in ["", "null", "{}", "[]", "block", r#"{"block_id": 7}"#, r#"{"block_id": "5a""#]
        {
            assert!(matches!(EventFrame::parse(text), Err(BatchError::InvalidAnswer(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = EventFrame::parse(&text);
        }
    }
}
