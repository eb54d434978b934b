use grid_batch_core::{BatchError, BatchResult};
use grid_batch_http::one_line;
use serde::Deserialize;

/// What stands in a text that comes over an event socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A block was committed. It names neither batches nor transactions.
    Block,
    /// Something is amiss at the ledger; the socket goes on.
    Warning(String),
    /// The ledger does not do what it was told.
    Error(String),
}

impl Frame {
    pub(crate) fn read(text: &str) -> BatchResult<Self> {
        #[derive(Deserialize)]
        struct Keys {
            block_id: Option<String>,
            warning: Option<String>,
            error: Option<String>,
        }
        let unusable = |why: String| BatchError::InvalidAnswer(format!("event: {why}"));
        let keys: Keys =
            serde_json::from_str(text).map_err(|error| unusable(one_line(error.to_string())))?;
        match keys {
            Keys { error: Some(text), .. } => Ok(Self::Error(one_line(text))),
            Keys { warning: Some(text), .. } => Ok(Self::Warning(one_line(text))),
            Keys { block_id: Some(_), .. } => Ok(Self::Block),
            _ => Err(unusable(format!("neither block, warning nor error: {}", one_line(text)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_warnings_and_errors_are_told_apart() {
        let block = r#"{"block_id": "5a", "block_num": "175", "state_changes": []}"#;
        assert_eq!(Frame::read(block), Ok(Frame::Block));
        let warning = r#"{"warning": "Validator unavailable"}"#;
        assert_eq!(Frame::read(warning), Ok(Frame::Warning("Validator unavailable".to_owned())));
        let error = r#"{"error": "Unknown action \"x\""}"#;
        assert_eq!(Frame::read(error), Ok(Frame::Error("Unknown action \"x\"".to_owned())));
    }

    #[test]
    fn what_is_none_of_them_is_an_error() {
        for text in ["", "null", "{}", "[]", "block", r#"{"block_id": 7}"#, r#"{"block_id": "5a""#]
        {
            assert!(matches!(Frame::read(text), Err(BatchError::InvalidAnswer(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Frame::read(&text);
        }
    }
}
