//! The answer to a question for statuses.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{BatchError, BatchResult, Excerpt, LedgerStatus, Receipt, StatusReport};
use grid_batch_http::one_line;
use serde::Deserialize;

#[derive(Deserialize)]
struct Statuses {
    data: Vec<Status>,
}

#[derive(Deserialize)]
struct Status {
    id: String,
    status: String,
    #[serde(default)]
    invalid_transactions: Vec<InvalidTransaction>,
}

/// Empty keys are left out by the ledger.
#[derive(PartialEq, Eq, Hash, Deserialize)]
struct InvalidTransaction {
    id: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    extended_data: String,
}

/// Reads an answer about these batches: each of which it tells once, in the order in which they were
/// asked for. Where one part of it is wrong, nothing of it is used.
pub(crate) fn read_statuses(body: &[u8], asked: &[String]) -> BatchResult<Vec<StatusReport>> {
    let statuses: Statuses =
        serde_json::from_slice(body).map_err(|error| unusable(one_line(error.to_string())))?;
    let are_asked: HashSet<&str> = asked.iter().map(String::as_str).collect();
    let mut reports: HashMap<String, StatusReport> = HashMap::new();
    for status in statuses.data {
        let id = Excerpt::of(&status.id);
        if !are_asked.contains(&*status.id) {
            return Err(unusable(format!("it names the batch {id}, which was not asked for")));
        }
        let report = status.into_report()?;
        match reports.entry(report.batch_id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(report);
            }
            Entry::Occupied(entry) if entry.get().status != report.status => {
                return Err(unusable(format!("it names two statuses of the batch {id}")));
            }
            Entry::Occupied(_) => {}
        }
    }
    Ok(asked.iter().filter_map(|id| reports.remove(id)).collect())
}

impl Status {
    fn into_report(self) -> BatchResult<StatusReport> {
        let status = read_word(&self.status)?;
        let receipts = match status {
            LedgerStatus::Invalid => read_receipts(&self.invalid_transactions)?,
            _ => Vec::new(),
        };
        Ok(StatusReport { batch_id: self.id, status, receipts })
    }
}

fn read_word(word: &str) -> BatchResult<LedgerStatus> {
    Ok(match word {
        "COMMITTED" => LedgerStatus::Committed,
        "INVALID" => LedgerStatus::Invalid,
        "VALID" => LedgerStatus::Valid,
        "PENDING" => LedgerStatus::Pending,
        "UNKNOWN" | "STATUS_UNSET" => LedgerStatus::NotReported,
        _ => return Err(unusable(format!("{} is no status of a batch", Excerpt::of(word)))),
    })
}

/// A validator names a transaction again each time that it tries the batch.
fn read_receipts(transactions: &[InvalidTransaction]) -> BatchResult<Vec<Receipt>> {
    let mut seen = HashSet::new();
    let new = transactions.iter().filter(|transaction| seen.insert(*transaction));
    new.map(InvalidTransaction::receipt).collect()
}

impl InvalidTransaction {
    fn receipt(&self) -> BatchResult<Receipt> {
        let transaction_id = self.id.parse().map_err(|error| unusable(format!("{error}")))?;
        let error_data = BASE64_STANDARD.decode(&self.extended_data).map_err(|error| {
            unusable(format!(
                "the data about the transaction {transaction_id} are no base64: {error}"
            ))
        })?;
        Ok(Receipt {
            transaction_id: Some(transaction_id),
            error_message: self.message.clone(),
            error_data,
        })
    }
}

fn unusable(why: String) -> BatchError {
    BatchError::InvalidAnswer(format!("statuses: {why}"))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use serde_json::{Value, json};

    use super::*;

    fn asked() -> Vec<String> {
        ["5a", "6b"].map(|byte| byte.repeat(64)).to_vec()
    }

    fn read(body: &Value) -> BatchResult<Vec<StatusReport>> {
        read_statuses(body.to_string().as_bytes(), &asked())
    }

    /// Why an answer with this is not used.
    fn why(data: &Value) -> String {
        match read(&json!({ "data": data })) {
            Err(BatchError::InvalidAnswer(why)) => why,
            other => panic!("{data}: {other:?}"),
        }
    }

    fn status(id: &str, word: &str) -> Value {
        json!({ "id": id, "status": word, "invalid_transactions": [] })
    }

    #[test]
    fn each_word_is_a_status() {
        for (word, expected) in [
            ("COMMITTED", LedgerStatus::Committed),
            ("INVALID", LedgerStatus::Invalid),
            ("VALID", LedgerStatus::Valid),
            ("PENDING", LedgerStatus::Pending),
            ("UNKNOWN", LedgerStatus::NotReported),
            ("STATUS_UNSET", LedgerStatus::NotReported),
        ] {
            let batch_id = asked().remove(0);
            let reports = read(&json!({ "data": [status(&batch_id, word)] }));
            let report = StatusReport { batch_id, status: expected, receipts: Vec::new() };
            assert_eq!(reports, Ok(vec![report]), "{word}");
        }
    }

    #[test]
    fn what_is_said_twice_is_told_once_in_the_order_of_the_question() {
        let [a, b] = [0, 1].map(|place| asked()[place].clone());
        let data = [status(&b, "PENDING"), status(&a, "COMMITTED"), status(&b, "PENDING")];
        let reports = read(&json!({ "data": data, "link": "x", "more": [7] })).unwrap();
        let ids: Vec<_> = reports.into_iter().map(|report| report.batch_id).collect();
        assert_eq!(ids, [a, b]);
    }

    #[test]
    fn a_batch_that_is_missing_is_left_out() {
        assert_eq!(read(&json!({ "data": [] })), Ok(Vec::new()));
    }

    #[test]
    fn an_answer_that_is_wrong_in_one_place_is_not_used_and_says_where() {
        let [a, b] = [0, 1].map(|place| asked()[place].clone());
        let invalid = |transaction: Value| {
            json!([
                status(&a, "COMMITTED"),
                { "id": b, "status": "INVALID", "invalid_transactions": [transaction] },
            ])
        };
        for (data, expected) in [
            (json!([status(&a, "committed")]), "\"committed\" is no status of a batch"),
            (json!([status(&a, "")]), "\"\" is no status of a batch"),
            (json!([status(&a, "PENDING"), status(&a, "UNKNOWN")]), "names two statuses"),
            (json!([status(&"7c".repeat(64), "COMMITTED")]), "was not asked for"),
            (json!([status(&a.to_uppercase(), "COMMITTED")]), "was not asked for"),
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
            (invalid(json!({ "id": a, "extended_data": "?" })), "are no base64"),
        ] {
            let why = why(&data);
            assert!(why.starts_with("statuses: ") && why.contains(expected), "{why}");
            assert!(why.chars().count() < 600, "{why}");
        }
    }

    /// Answers that are nearly right.
    fn near_answer() -> impl Strategy<Value = Value> {
        let id = || {
            let near = [json!(asked()[0]), json!(asked()[1]), json!("zz"), json!(7), json!(null)];
            select(near.to_vec())
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
        match read_statuses(body, &asked()) {
            Ok(reports) => {
                let ids: Vec<_> = reports.iter().map(|report| report.batch_id.clone()).collect();
                let mut expected = asked();
                expected.retain(|id| ids.contains(id));
                prop_assert_eq!(ids, expected);
            }
            Err(error) => prop_assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}"),
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_statuses_or_an_error(body in vec(any::<u8>(), 0..200)) {
            check(&body)?;
        }

        #[test]
        fn any_answer_that_is_nearly_right_is_statuses_or_an_error(
            answer in near_answer(),
            cut in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut body = answer.to_string().into_bytes();
            check(&body)?;
            let place = cut.index(body.len());
            check(&body[..place])?;
            body[place] = byte;
            check(&body)?;
        }
    }
}
