//! Parsing of the response to a status request.

use grid_batch_core::batches::{LedgerStatus, Receipt, StatusReport};
use grid_batch_core::{BatchError, BatchResult, ItemId};
use grid_batch_protocol::entries_in_order;
use serde::{Deserialize, Deserializer, de::Error};

use crate::message::redacted_line;

/// The report of a node about one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchReport {
    pub(crate) report: StatusReport,
    /// The transactions of a committed batch.
    pub(crate) applied: Vec<ItemId>,
}

/// A batch in the response. Its timestamp, which says when the node first saw the batch, is not used.
#[derive(Deserialize)]
struct BatchInfo {
    id: String,
    status: BatchStatus,
}

#[derive(Deserialize)]
#[serde(tag = "statusType", content = "message")]
enum BatchStatus {
    Unknown([(); 0]),
    Pending([(); 0]),
    #[expect(dead_code, reason = "it is parsed to be validated")]
    Valid(Vec<ValidTransaction>),
    Committed(Vec<ValidTransaction>),
    Invalid(Vec<InvalidTransaction>),
}

#[derive(Deserialize)]
struct ValidTransaction {
    #[serde(deserialize_with = "header_id")]
    transaction_id: ItemId,
}

#[derive(Deserialize)]
struct InvalidTransaction {
    #[serde(deserialize_with = "header_id")]
    transaction_id: ItemId,
    error_message: String,
    error_data: Vec<u8>,
}

/// Parses the response about the requested batches. A batch that is missing in the response is left out. A single
/// invalid entry makes the whole response an error.
pub(crate) fn parse_statuses(body: &[u8], requested: &[&str]) -> BatchResult<Vec<BatchReport>> {
    let infos: Vec<BatchInfo> =
        serde_json::from_slice(body).map_err(|error| not_a_list_of_statuses(&error))?;
    let reports = infos.into_iter().map(BatchReport::from).collect();
    entries_in_order(requested, reports, |batch: &BatchReport| &batch.report.batch_id)
}

impl From<BatchInfo> for BatchReport {
    fn from(BatchInfo { id, status }: BatchInfo) -> Self {
        let (status, applied, receipts) = match status {
            BatchStatus::Unknown(_) => (LedgerStatus::NotReported, Vec::new(), Vec::new()),
            BatchStatus::Pending(_) => (LedgerStatus::Pending, Vec::new(), Vec::new()),
            BatchStatus::Valid(_) => (LedgerStatus::Valid, Vec::new(), Vec::new()),
            BatchStatus::Committed(transactions) => {
                let applied = transactions.into_iter().map(|valid| valid.transaction_id).collect();
                (LedgerStatus::Committed, applied, Vec::new())
            }
            BatchStatus::Invalid(transactions) => {
                let receipts = transactions.into_iter().map(Receipt::from).collect();
                (LedgerStatus::Invalid, Vec::new(), receipts)
            }
        };
        Self { report: StatusReport { batch_id: id, status, receipts }, applied }
    }
}

impl From<InvalidTransaction> for Receipt {
    fn from(invalid: InvalidTransaction) -> Self {
        Self {
            transaction_id: Some(invalid.transaction_id),
            error_message: invalid.error_message,
            error_data: invalid.error_data,
        }
    }
}

pub(crate) fn header_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ItemId, D::Error> {
    let id = String::deserialize(deserializer)?.parse::<grid_batch_protocol::HeaderId>();
    id.map(Into::into).map_err(D::Error::custom)
}

fn not_a_list_of_statuses(error: &serde_json::Error) -> BatchError {
    // The error may quote the response.
    let reason = redacted_line(&error.to_string());
    BatchError::InvalidAnswer(format!("not a list of statuses: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::select};
    use serde_json::{Value, json};

    fn id(digit: char) -> String {
        digit.to_string().repeat(128)
    }

    fn status(id: &str, word: &str, message: Value) -> Value {
        json!({
            "id": id,
            "status": { "statusType": word, "message": message },
            "timestamp": { "secs_since_epoch": 1, "nanos_since_epoch": 2 },
        })
    }

    fn parse(response: &Value) -> BatchResult<Vec<BatchReport>> {
        parse_statuses(response.to_string().as_bytes(), &[&id('a'), &id('b')])
    }

    fn error(response: &Value) -> String {
        parse(response).unwrap_err().to_string()
    }

    #[test]
    fn every_status_is_parsed_with_its_transactions() {
        let executed = json!([{ "transaction_id": id('1') }]);
        let refused = json!([{
            "transaction_id": id('1'), "error_message": "no", "error_data": [0, 255],
        }]);
        let receipt = Receipt {
            transaction_id: id('1').parse().ok(),
            error_message: "no".to_owned(),
            error_data: vec![0, 255],
        };
        let applied: Vec<ItemId> = vec![id('1').parse().unwrap()];
        for (word, message, status_of, receipts, applied) in [
            ("Unknown", json!([]), LedgerStatus::NotReported, vec![], vec![]),
            ("Pending", json!([]), LedgerStatus::Pending, vec![], vec![]),
            ("Valid", executed.clone(), LedgerStatus::Valid, vec![], vec![]),
            ("Committed", executed, LedgerStatus::Committed, vec![], applied),
            ("Invalid", refused, LedgerStatus::Invalid, vec![receipt], vec![]),
        ] {
            let report = StatusReport { batch_id: id('a'), status: status_of, receipts };
            let reports = parse(&json!([status(&id('a'), word, message)]));
            assert_eq!(reports, Ok(vec![BatchReport { report, applied }]), "{word}");
        }
    }

    #[test]
    fn order_does_not_matter_and_missing_batches_are_left_out() {
        let [a, b] = ['a', 'b'].map(|digit| status(&id(digit), "Pending", json!([])));
        assert_eq!(parse(&json!([a, b])), parse(&json!([b, a, b])));
        assert_eq!(parse(&json!([b])).unwrap().len(), 1);
        assert_eq!(parse(&json!([])), Ok(vec![]));
    }

    #[test]
    fn error_names_the_invalid_entry() {
        let pending = |id: &str| status(id, "Pending", json!([]));
        let not_requested = error(&json!([pending(&id('a')), pending(&id('c'))]));
        assert!(not_requested.contains("batch \"cccc"), "{not_requested}");
        assert!(not_requested.contains("was not requested"), "{not_requested}");
        let twice = error(&json!([pending(&id('a')), status(&id('a'), "Unknown", json!([]))]));
        assert!(twice.contains("batch \"aaaa"), "{twice}");
        assert!(twice.contains("has two different entries"), "{twice}");
        let word = error(&json!([status(&id('a'), "Lost", json!([]))]));
        assert!(word.contains("unknown variant `Lost`"), "{word}");
        let upper = json!([{ "transaction_id": "F".repeat(128) }]);
        let upper = error(&json!([status(&id('a'), "Committed", upper)]));
        assert!(upper.contains("has 'F' at position 0"), "{upper}");
    }

    #[test]
    fn other_structure_is_an_error() {
        let a = id('a');
        let refused = |data: Value| {
            let message = json!([{
                "transaction_id": id('1'), "error_message": "no", "error_data": data,
            }]);
            json!([status(&id('a'), "Invalid", message)])
        };
        for response in [
            json!({}),
            json!(null),
            json!({ "data": [] }),
            json!([7]),
            json!([{ "id": a }]),
            json!([{ "id": a, "status": "Pending" }]),
            json!([{ "id": a, "status": { "statusType": "Pending" } }]),
            json!([{ "id": 7, "status": { "statusType": "Pending", "message": [] } }]),
            json!([status(&a, "pending", json!([]))]),
            json!([status(&a, "Pending", json!("soon"))]),
            json!([status(&a, "Pending", json!([7]))]),
            json!([status(&a, "Valid", json!([id('1')]))]),
            json!([status(&a, "Valid", json!({}))]),
            json!([status(&a, "Committed", json!([{ "transaction_id": "1" }]))]),
            json!([status(&a, "Invalid", json!([{ "transaction_id": id('1') }]))]),
            refused(json!("AA==")),
            refused(json!([256])),
            refused(json!([-1])),
        ] {
            let error = error(&response);
            assert!(error.contains("not a list of statuses: "), "{response}: {error}");
        }
    }

    #[test]
    fn error_is_short_for_any_response() {
        let response = json!([status(&id('a'), &"long".repeat(10_000), json!([]))]);
        assert!(error(&response).chars().count() < 600);
        assert!(
            error(&json!([status(&"é".repeat(9_999), "Pending", json!([]))])).chars().count() < 600
        );
    }

    /// Valid responses with some bytes replaced.
    fn corrupted_response() -> impl Strategy<Value = Vec<u8>> {
        let words = select(vec!["Unknown", "Pending", "Valid", "Committed", "Invalid"]);
        let ids = select(vec![id('a'), id('b'), id('c')]);
        let response = prop::collection::vec((ids, words), 0..4).prop_map(|batches| {
            let statuses: Vec<_> =
                batches.iter().map(|(id, word)| status(id, word, json!([]))).collect();
            json!(statuses).to_string().into_bytes()
        });
        (response, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..3)).prop_map(
            |(mut response, at, bytes)| {
                let at = at.index(response.len());
                response.splice(at..(at + bytes.len()).min(response.len()), bytes);
                response
            },
        )
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(
            body in prop_oneof![prop::collection::vec(any::<u8>(), 0..64), corrupted_response()],
        ) {
            let requested = [id('a'), id('b')];
            match parse_statuses(&body, &[&requested[0], &requested[1]]) {
                Ok(reports) => prop_assert!(
                    reports.iter().all(|batch| requested.contains(&batch.report.batch_id))
                ),
                Err(error) => prop_assert!(matches!(error, BatchError::InvalidAnswer(_))),
            }
        }
    }
}
