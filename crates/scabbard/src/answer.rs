//! What a node answers when it is asked for statuses.

use std::collections::{BTreeMap, btree_map::Entry};

use grid_batch_core::{
    BatchError, BatchResult, Excerpt, HeaderId, LedgerStatus, Receipt, StatusReport,
};
use serde::{Deserialize, Deserializer, de::Error};

use crate::words::shown;

/// What a node says of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) report: StatusReport,
    /// The transactions that are applied.
    pub(crate) applied: Vec<HeaderId>,
}

/// A batch in the answer. Its time, that of the node's first acquaintance with it, is not used.
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
    #[expect(dead_code, reason = "it is read so that it is checked")]
    Valid(Vec<Executed>),
    Committed(Vec<Executed>),
    Invalid(Vec<Refused>),
}

#[derive(Deserialize)]
struct Executed {
    #[serde(deserialize_with = "header_id")]
    transaction_id: HeaderId,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(deserialize_with = "header_id")]
    transaction_id: HeaderId,
    error_message: String,
    error_data: Vec<u8>,
}

/// Reads an answer about these batches: all of it or nothing. What it leaves out is left out.
pub(crate) fn read_statuses(body: &[u8], asked: &[&str]) -> BatchResult<Vec<Told>> {
    let infos: Vec<BatchInfo> =
        serde_json::from_slice(body).map_err(|error| not_statuses(&error))?;
    let mut told = BTreeMap::new();
    for info in infos {
        let info = Told::from(info);
        let id = &info.report.batch_id;
        if !asked.contains(&id.as_str()) {
            return invalid(format!("nobody asked for the batch {}", Excerpt::of(id)));
        }
        match told.entry(id.clone()) {
            Entry::Occupied(other) if *other.get() != info => {
                return invalid(format!("it says two things of the batch {}", Excerpt::of(id)));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => drop(place.insert(info)),
        }
    }
    Ok(told.into_values().collect())
}

impl From<BatchInfo> for Told {
    fn from(BatchInfo { id, status }: BatchInfo) -> Self {
        let (status, applied, receipts) = match status {
            BatchStatus::Unknown(_) => (LedgerStatus::NotReported, Vec::new(), Vec::new()),
            BatchStatus::Pending(_) => (LedgerStatus::Pending, Vec::new(), Vec::new()),
            BatchStatus::Valid(_) => (LedgerStatus::Valid, Vec::new(), Vec::new()),
            BatchStatus::Committed(executed) => {
                let applied =
                    executed.into_iter().map(|executed| executed.transaction_id).collect();
                (LedgerStatus::Committed, applied, Vec::new())
            }
            BatchStatus::Invalid(refused) => {
                let receipts = refused.into_iter().map(Receipt::from).collect();
                (LedgerStatus::Invalid, Vec::new(), receipts)
            }
        };
        Self { report: StatusReport { batch_id: id, status, receipts }, applied }
    }
}

impl From<Refused> for Receipt {
    fn from(refused: Refused) -> Self {
        Self {
            transaction_id: Some(refused.transaction_id),
            error_message: refused.error_message,
            error_data: refused.error_data,
        }
    }
}

pub(crate) fn header_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderId, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn not_statuses(error: &serde_json::Error) -> BatchError {
    // What stands there instead is repeated in the error.
    let reason = shown(&error.to_string());
    BatchError::InvalidAnswer(format!("it is no list of statuses: {reason}"))
}

fn invalid<T>(reason: String) -> BatchResult<T> {
    Err(BatchError::InvalidAnswer(reason))
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

    fn read(answer: &Value) -> BatchResult<Vec<Told>> {
        read_statuses(answer.to_string().as_bytes(), &[&id('a'), &id('b')])
    }

    fn error(answer: &Value) -> String {
        read(answer).unwrap_err().to_string()
    }

    #[test]
    fn each_word_has_its_status_and_what_goes_with_it() {
        let executed = json!([{ "transaction_id": id('1') }]);
        let refused = json!([{
            "transaction_id": id('1'), "error_message": "no", "error_data": [0, 255],
        }]);
        let receipt = Receipt {
            transaction_id: id('1').parse().ok(),
            error_message: "no".to_owned(),
            error_data: vec![0, 255],
        };
        let applied: Vec<HeaderId> = vec![id('1').parse().unwrap()];
        for (word, message, status_of, receipts, applied) in [
            ("Unknown", json!([]), LedgerStatus::NotReported, vec![], vec![]),
            ("Pending", json!([]), LedgerStatus::Pending, vec![], vec![]),
            ("Valid", executed.clone(), LedgerStatus::Valid, vec![], vec![]),
            ("Committed", executed, LedgerStatus::Committed, vec![], applied),
            ("Invalid", refused, LedgerStatus::Invalid, vec![receipt], vec![]),
        ] {
            let report = StatusReport { batch_id: id('a'), status: status_of, receipts };
            let told = read(&json!([status(&id('a'), word, message)]));
            assert_eq!(told, Ok(vec![Told { report, applied }]), "{word}");
        }
    }

    #[test]
    fn the_order_does_not_matter_and_what_is_left_out_is_left_out() {
        let [a, b] = ['a', 'b'].map(|digit| status(&id(digit), "Pending", json!([])));
        assert_eq!(read(&json!([a, b])), read(&json!([b, a, b])));
        assert_eq!(read(&json!([b])).unwrap().len(), 1);
        assert_eq!(read(&json!([])), Ok(vec![]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let pending = |id: &str| status(id, "Pending", json!([]));
        let not_asked = error(&json!([pending(&id('a')), pending(&id('c'))]));
        assert!(not_asked.contains("nobody asked for the batch \"cccc"), "{not_asked}");
        let twice = error(&json!([pending(&id('a')), status(&id('a'), "Unknown", json!([]))]));
        assert!(twice.contains("two things of the batch \"aaaa"), "{twice}");
        let word = error(&json!([status(&id('a'), "Lost", json!([]))]));
        assert!(word.contains("unknown variant `Lost`"), "{word}");
        let upper = json!([{ "transaction_id": "F".repeat(128) }]);
        let upper = error(&json!([status(&id('a'), "Committed", upper)]));
        assert!(upper.contains("has 'F' at position 0"), "{upper}");
    }

    #[test]
    fn other_shapes_are_no_answers() {
        let a = id('a');
        let refused = |data: Value| {
            let message = json!([{
                "transaction_id": id('1'), "error_message": "no", "error_data": data,
            }]);
            json!([status(&id('a'), "Invalid", message)])
        };
        for answer in [
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
            let error = error(&answer);
            assert!(error.contains("it is no list of statuses: "), "{answer}: {error}");
        }
    }

    #[test]
    fn an_error_is_short_whatever_was_said() {
        let answer = json!([status(&id('a'), &"long".repeat(10_000), json!([]))]);
        assert!(error(&answer).chars().count() < 600);
        assert!(
            error(&json!([status(&"é".repeat(9_999), "Pending", json!([]))])).chars().count() < 600
        );
    }

    /// Answers as they should be, and bytes in one place that should not be there.
    fn spoilt() -> impl Strategy<Value = Vec<u8>> {
        let words = select(vec!["Unknown", "Pending", "Valid", "Committed", "Invalid"]);
        let ids = select(vec![id('a'), id('b'), id('c')]);
        let answer = prop::collection::vec((ids, words), 0..4).prop_map(|batches| {
            let statuses: Vec<_> =
                batches.iter().map(|(id, word)| status(id, word, json!([]))).collect();
            json!(statuses).to_string().into_bytes()
        });
        (answer, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..3)).prop_map(
            |(mut answer, at, bytes)| {
                let at = at.index(answer.len());
                answer.splice(at..(at + bytes.len()).min(answer.len()), bytes);
                answer
            },
        )
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_about_what_was_asked_or_an_error(
            body in prop_oneof![prop::collection::vec(any::<u8>(), 0..64), spoilt()],
        ) {
            let asked = [id('a'), id('b')];
            match read_statuses(&body, &[&asked[0], &asked[1]]) {
                Ok(told) => prop_assert!(told.iter().all(|t| asked.contains(&t.report.batch_id))),
                Err(error) => prop_assert!(matches!(error, BatchError::InvalidAnswer(_))),
            }
        }
    }
}
