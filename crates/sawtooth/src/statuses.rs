//! Parsing of the response to a status request.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::batches::{LedgerStatus, Receipt, StatusReport};
use grid_batch_core::{BatchError, BatchResult, Excerpt};
use grid_batch_protocol::entries_in_order;
use grid_batch_support::one_line;
use serde::Deserialize;

#[derive(Deserialize)]
struct StatusesResponse {
    data: Vec<StatusEntry>,
}

#[derive(Deserialize)]
struct StatusEntry {
    id: String,
    status: String,
    #[serde(default)]
    invalid_transactions: Vec<InvalidTransaction>,
}

/// The ledger omits empty fields.
#[derive(PartialEq, Eq, Hash, Deserialize)]
struct InvalidTransaction {
    id: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    extended_data: String,
}

/// The report of one node about a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusAtNode {
    pub(crate) report: StatusReport,
    /// How many entries the node has about invalid transactions of the batch. It adds some each time it executes the
    /// batch and finds it invalid.
    pub(crate) invalid_entries: usize,
}

/// Parses the response about the requested batches. The reports have the order of the request, one for each batch in
/// the response. A single invalid entry makes the whole response an error.
pub(crate) fn parse_statuses(body: &[u8], requested: &[String]) -> BatchResult<Vec<StatusAtNode>> {
    let statuses: StatusesResponse =
        serde_json::from_slice(body).map_err(|error| invalid(one_line(error.to_string())))?;
    let reports = statuses.data.into_iter().map(StatusEntry::into_report);
    let reports = reports.collect::<BatchResult<Vec<_>>>()?;
    entries_in_order(requested, reports, |report| &report.report.batch_id)
}

impl StatusEntry {
    fn into_report(self) -> BatchResult<StatusAtNode> {
        let status = parse_status(&self.status)?;
        let receipts = match status {
            LedgerStatus::Invalid => parse_receipts(&self.invalid_transactions)?,
            _ => Vec::new(),
        };
        let report = StatusReport { batch_id: self.id, status, receipts };
        Ok(StatusAtNode { report, invalid_entries: self.invalid_transactions.len() })
    }
}

fn parse_status(text: &str) -> BatchResult<LedgerStatus> {
    Ok(match text {
        "COMMITTED" => LedgerStatus::Committed,
        "INVALID" => LedgerStatus::Invalid,
        "VALID" => LedgerStatus::Valid,
        "PENDING" => LedgerStatus::Pending,
        "UNKNOWN" | "STATUS_UNSET" => LedgerStatus::NotReported,
        _ => return Err(invalid(format!("unknown batch status {}", Excerpt::of(text)))),
    })
}

/// A validator repeats a transaction for each execution of the batch.
fn parse_receipts(transactions: &[InvalidTransaction]) -> BatchResult<Vec<Receipt>> {
    let mut seen = HashSet::new();
    let new = transactions.iter().filter(|transaction| seen.insert(*transaction));
    new.map(InvalidTransaction::receipt).collect()
}

impl InvalidTransaction {
    fn receipt(&self) -> BatchResult<Receipt> {
        let transaction_id = self
            .id
            .parse::<grid_batch_protocol::HeaderId>()
            .map_err(|error| invalid(format!("{error}")))?;
        let error_data = BASE64_STANDARD.decode(&self.extended_data).map_err(|error| {
            invalid(format!(
                "the data of transaction {transaction_id} is not valid base64: {error}"
            ))
        })?;
        Ok(Receipt {
            transaction_id: Some(transaction_id.into()),
            error_message: self.message.clone(),
            error_data,
        })
    }
}

fn invalid(reason: String) -> BatchError {
    BatchError::InvalidAnswer(format!("statuses: {reason}"))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde_json::{Value, json};

    use super::*;

    fn requested() -> Vec<String> {
        ["5a", "6b"].map(|byte| byte.repeat(64)).to_vec()
    }

    fn parse(body: &Value) -> BatchResult<Vec<StatusReport>> {
        let reports = parse_statuses(body.to_string().as_bytes(), &requested())?;
        Ok(reports.into_iter().map(|report| report.report).collect())
    }

    /// The reason why a response with this data is invalid.
    fn invalid_reason(data: &Value) -> String {
        match parse(&json!({ "data": data })) {
            Err(BatchError::InvalidAnswer(reason)) => reason,
            other => panic!("{data}: {other:?}"),
        }
    }

    fn status(id: &str, word: &str) -> Value {
        json!({ "id": id, "status": word, "invalid_transactions": [] })
    }

    #[test]
    fn every_status_is_parsed() {
        for (word, expected) in [
            ("COMMITTED", LedgerStatus::Committed),
            ("INVALID", LedgerStatus::Invalid),
            ("VALID", LedgerStatus::Valid),
            ("PENDING", LedgerStatus::Pending),
            ("UNKNOWN", LedgerStatus::NotReported),
            ("STATUS_UNSET", LedgerStatus::NotReported),
        ] {
            let batch_id = requested().remove(0);
            let reports = parse(&json!({ "data": [status(&batch_id, word)] }));
            let report = StatusReport { batch_id, status: expected, receipts: Vec::new() };
            assert_eq!(reports, Ok(vec![report]), "{word}");
        }
    }

    #[test]
    fn repeated_status_is_reported_once_in_order() {
        let [a, b] = [0, 1].map(|index| requested()[index].clone());
        let data = [status(&b, "PENDING"), status(&a, "COMMITTED"), status(&b, "PENDING")];
        let reports = parse(&json!({ "data": data, "link": "x", "more": [7] })).unwrap();
        let ids: Vec<_> = reports.into_iter().map(|report| report.batch_id).collect();
        assert_eq!(ids, [a, b]);
    }

    #[test]
    fn missing_batch_is_left_out() {
        assert_eq!(parse(&json!({ "data": [] })), Ok(Vec::new()));
    }

    #[test]
    fn one_invalid_entry_makes_the_response_invalid() {
        let [a, b] = [0, 1].map(|index| requested()[index].clone());
        let invalid = |transaction: Value| {
            json!([
                status(&a, "COMMITTED"),
                { "id": b, "status": "INVALID", "invalid_transactions": [transaction] },
            ])
        };
        for (data, expected) in [
            (json!([status(&a, "committed")]), "unknown batch status \"committed\""),
            (json!([status(&a, "")]), "unknown batch status \"\""),
            (json!([status(&a, "PENDING"), status(&a, "UNKNOWN")]), "has two different entries"),
            (json!([status(&"7c".repeat(64), "COMMITTED")]), "was not requested"),
            (json!([status(&a.to_uppercase(), "COMMITTED")]), "was not requested"),
            (json!([{ "id": a }]), "missing field `status`"),
            (json!([{ "status": "COMMITTED" }]), "missing field `id`"),
            (json!([{ "id": 7, "status": "COMMITTED" }]), "invalid type: integer `7`"),
            (json!([{ "id": a, "status": ["COMMITTED"] }]), "invalid type: sequence"),
            (json!([null]), "invalid type: null"),
            (json!({ "id": a, "status": "COMMITTED" }), "invalid type: map"),
            (json!(a.repeat(100)), "invalid type: string"),
            (json!(null), "invalid type: null"),
            (invalid(json!({ "id": "zz" })), "the id \"zz\" has 2 characters"),
            (invalid(json!({ "message": "no id" })), "missing field `id`"),
            (invalid(json!({ "id": a, "message": 7 })), "invalid type: integer `7`"),
            (invalid(json!({ "id": a, "extended_data": "?" })), "is not valid base64"),
        ] {
            let reason = invalid_reason(&data);
            assert!(reason.starts_with("statuses: ") && reason.contains(expected), "{reason}");
            assert!(reason.chars().count() < 600, "{reason}");
        }
    }

    /// Responses that are nearly valid.
    fn nearly_valid_response() -> impl Strategy<Value = Value> {
        let id = || {
            let ids =
                [json!(requested()[0]), json!(requested()[1]), json!("zz"), json!(7), json!(null)];
            select(ids.to_vec())
        };
        let word = select(vec!["COMMITTED", "INVALID", "PENDING", "UNKNOWN", "OTHER"]);
        let data = select(vec!["", "AAH/", "AA", "?"]);
        let transaction = (id(), data)
            .prop_map(|(id, data)| json!({ "id": id, "message": "m", "extended_data": data }));
        let status = (id(), word, vec(transaction, 0..3)).prop_map(|(id, word, transactions)| {
            json!({ "id": id, "status": word, "invalid_transactions": transactions })
        });
        vec(status, 0..4).prop_map(|data| json!({ "data": data }))
    }

    fn check(body: &[u8]) -> Result<(), TestCaseError> {
        match parse_statuses(body, &requested()) {
            Ok(reports) => {
                let ids: Vec<_> = reports.iter().map(|r| r.report.batch_id.clone()).collect();
                let mut expected = requested();
                expected.retain(|id| ids.contains(id));
                prop_assert_eq!(ids, expected);
            }
            Err(error) => prop_assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}"),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(body in vec(any::<u8>(), 0..200)) {
            check(&body)?;
        }

        #[test]
        fn nearly_valid_response_is_parsed_or_refused(
            response in nearly_valid_response(),
            cut in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut body = response.to_string().into_bytes();
            check(&body)?;
            let position = cut.index(body.len());
            check(&body[..position])?;
            body[position] = byte;
            check(&body)?;
        }
    }
}
