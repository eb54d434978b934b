//! Several batches of the ledger under way.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use grid_batch_core::{
    BatchError, BatchResult, ItemId, ManualClock, ServiceId,
    batches::{
        BatchState,
        LedgerStatus::{Committed, Invalid, NotReported},
    },
    evidence::{Evidence, TransactionAnswers, UnresolvedBatch},
    ledger::{CommitHistory, CommittedBefore, Ledger},
};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_protocol::Batch;
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use serde_json::json;

use crate::{
    batches::{Nodes, SERVICE, batch, id, sawtooth, submission, unresolved},
    rest_api::{RestApi, answer, unused_address},
};

/// A store in which these batches were committed before every other one.
struct History {
    history: CommittedBefore,
    reads: AtomicUsize,
}

impl History {
    fn of(before: Vec<ItemId>, since: Vec<ItemId>) -> Arc<Self> {
        let history = CommittedBefore { before, since };
        Arc::new(Self { history, reads: AtomicUsize::new(0) })
    }
}

impl CommitHistory for History {
    fn committed_before(&self, _: &ServiceId, _: &ItemId) -> BatchResult<CommittedBefore> {
        self.reads.fetch_add(1, Relaxed);
        Ok(self.history.clone())
    }

    fn has_committed(&self, _: &ServiceId) -> BatchResult<bool> {
        Ok(true)
    }
}

fn header_id(batch: &Batch) -> ItemId {
    batch.header_signature.parse().unwrap()
}

fn ids(numbers: std::ops::Range<u32>) -> Vec<ItemId> {
    numbers.map(|number| header_id(&batch(number))).collect()
}

/// A response with this status for each batch.
fn statuses(status: &str, ids: &[String]) -> Vec<u8> {
    let entry = |id: &String| json!({ "id": id, "status": status, "invalid_transactions": [] });
    let data: Vec<_> = ids.iter().map(entry).collect();
    answer(200, &json!({ "data": data }).to_string())
}

fn not_found(code: u32) -> Vec<u8> {
    answer(404, &json!({ "error": { "code": code, "title": "", "message": "" } }).to_string())
}

#[tokio::test]
async fn evidence_about_many_asks_once_for_their_statuses() {
    let batches: Vec<UnresolvedBatch> = (1..=50).map(|number| unresolved(&id(number))).collect();
    let texts: Vec<String> = (1..=50).map(id).collect();
    let responses = [statuses("UNKNOWN", &texts)].into_iter();
    let api = RestApi::new(responses.chain((0..50).map(|_| not_found(71)))).await;
    let reader = sawtooth().with_nodes(Nodes::new([api.url()]));
    let reports = reader.find_evidence_of_all(&batches).await;
    assert_eq!(reports, vec![Ok(Evidence::Absent.into()); 50]);
    let requests: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
    assert_eq!((requests.len(), requests[0].as_str()), (51, "POST /batch_statuses"));
}

#[tokio::test]
async fn evidence_about_one_does_not_depend_on_the_others() {
    let clock = Arc::new(ManualClock::default());
    let minute = Duration::from_secs(60);
    let ledger = LedgerSim::sawtooth().clock(clock.clone()).pending_for(minute).start().unwrap();
    let sender = sawtooth();
    sender.send(&ledger.url(), &submission(&batch(1))).await;
    clock.advance(minute);
    sender.send(&ledger.url(), &submission(&batch(2))).await;
    let reader = sawtooth().with_nodes(Nodes::new([ledger.url()]));
    let batches = [1, 2, 3].map(|number| unresolved(&batch(number).header_signature));
    let reports = reader.find_evidence_of_all(&batches).await;
    let expected = [Evidence::Committed, Evidence::Present, Evidence::Absent];
    assert_eq!(reports, expected.map(|evidence| Ok(evidence.into())));
}

/// The wait before the second look is shared by all batches.
#[tokio::test]
async fn batches_that_a_node_has_lost_are_found_together() {
    let ledger =
        LedgerSim::sawtooth().pending_for(Duration::from_secs(60)).seed(1).start().unwrap();
    let options = SawtoothOptions {
        lost_after: Duration::from_millis(300),
        http: HttpOptions::default(),
        ..SawtoothOptions::default()
    };
    let sawtooth = Sawtooth::new(options, Nodes::none()).unwrap();
    for number in 0..100 {
        let answer = sawtooth.send(&ledger.url(), &submission(&batch(number))).await;
        assert_eq!(answer.status, Some(202));
    }
    ledger.restart();
    let reader = sawtooth.clone().with_nodes(Nodes::new([ledger.url()]));
    let texts: Vec<String> = (0..100).map(|number| batch(number).header_signature).collect();
    // It may use a connection that the restart has closed, and then fails.
    let _ = reader.statuses(SERVICE, &texts[..1]).await;
    ledger.inject(Fault::StatusesReset, When::Next(1));
    reader.statuses(SERVICE, &texts).await.unwrap_err();
    let reader = sawtooth.clone().with_nodes(Nodes::new([ledger.url()]));
    let batches: Vec<UnresolvedBatch> = texts
        .iter()
        .map(|id| UnresolvedBatch { state: BatchState::Pending, ..unresolved(id) })
        .collect();
    let started = std::time::Instant::now();
    let reports = reader.find_evidence_of_all(&batches).await;
    let took = started.elapsed();
    assert!(reports.iter().all(|report| *report == Ok(Evidence::Lost.into())), "{:?}", reports[0]);
    assert!(took < Duration::from_secs(20), "one after the other: 30 s; {took:?}");
}

#[tokio::test]
async fn batches_that_are_sent_together_ask_a_node_once() {
    let before: Vec<String> = (1..=100).map(id).collect();
    let api = RestApi::new([statuses("COMMITTED", &before)]).await;
    let before: Vec<ItemId> = before.iter().map(|id| id.parse().unwrap()).collect();
    let history = History::of(before[..60].to_vec(), before[60..].to_vec());
    let sawtooth = sawtooth().with_several_nodes(history.clone(), [api.url()]);
    let check = sawtooth.clone();
    let url = api.url();
    let submissions: Vec<_> = (0..64).map(|number| submission(&batch(number))).collect();
    let checks = join_all(submissions.iter().map(|it| check.check_node(&url, it))).await;
    assert_eq!(checks, vec![Ok(()); 64]);
    assert_eq!((api.requests().len(), history.reads.load(Relaxed)), (1, 64));
}

#[tokio::test]
async fn node_that_lacks_one_of_many_gets_no_batch() {
    let mut before: Vec<String> = (1..=20).map(id).collect();
    let committed = before.clone();
    before.push(id(21));
    let mut response = committed.iter().map(|id| json!({ "id": id, "status": "COMMITTED" }));
    let last = json!({ "id": id(21), "status": "PENDING" });
    let data: Vec<_> = response.by_ref().chain([last]).collect();
    let api = RestApi::new([answer(200, &json!({ "data": data }).to_string())]).await;
    let before = before.iter().map(|id| id.parse().unwrap()).collect();
    let sawtooth = sawtooth().with_several_nodes(History::of(before, Vec::new()), [api.url()]);
    let reason = sawtooth.check_node(&api.url(), &submission(&batch(1))).await;
    let reason = reason.unwrap_err();
    assert!(reason.contains(&id(21)), "{reason}");
}

#[tokio::test]
async fn invalid_batches_are_reviewed_with_one_request() {
    let texts: Vec<String> = (1..=40).map(id).collect();
    let invalid = |id: &String| json!({ "id": id, "status": "INVALID" });
    let mut entries: Vec<_> = texts.iter().map(invalid).collect();
    let first = RestApi::new([
        answer(200, &json!({ "data": entries }).to_string()),
        answer(200, &json!({ "data": entries }).to_string()),
    ])
    .await;
    // The other node has committed one of them.
    entries[7]["status"] = json!("COMMITTED");
    let other = RestApi::new([answer(200, &json!({ "data": entries }).to_string())]).await;
    let clock = Arc::new(ManualClock::default());
    let sawtooth = sawtooth()
        .with_clock(clock.clone())
        .with_several_nodes(History::of(Vec::new(), Vec::new()), [first.url(), other.url()]);
    let alone = sawtooth.clone().with_nodes(Nodes::new([first.url()]));
    alone.statuses(SERVICE, &texts).await.unwrap();
    clock.advance(Duration::from_secs(10));
    let reader = sawtooth.clone().with_nodes(Nodes::new([first.url(), other.url()]));
    let reports = reader.statuses(SERVICE, &texts).await.unwrap();
    let count = |status| reports.iter().filter(|report| report.status == status).count();
    assert_eq!(reports[7].status, Committed);
    assert_eq!([Committed, Invalid, NotReported].map(count), [1, 0, 39], "at first it may be old");
    assert_eq!((first.requests().len(), other.requests().len()), (2, 1));
}

#[tokio::test]
async fn later_commits_do_not_make_an_invalid_doubted() {
    let clock = Arc::new(ManualClock::default());
    let ledger = LedgerSim::sawtooth().clock(clock.clone()).start().unwrap();
    let sender = sawtooth();
    for number in [1, 2] {
        sender.send(&ledger.url(), &submission(&batch(number))).await;
    }
    ledger.refuse(|_| Some("no such name".to_owned()));
    let later = header_id(&batch(9));
    let history = History::of(ids(1..3), vec![later]);
    let sawtooth = sawtooth().with_clock(clock.clone()).with_several_nodes(history, [ledger.url()]);
    sawtooth.send(&ledger.url(), &submission(&batch(3))).await;
    let reader = sawtooth.clone().with_nodes(Nodes::new([ledger.url()]));
    let status = async || {
        let ids = [batch(3).header_signature];
        reader.statuses(SERVICE, &ids).await.unwrap().remove(0).status
    };
    assert_eq!(status().await, NotReported, "the node has not applied the later one yet");
    ledger.refuse(|_| None);
    sender.send(&ledger.url(), &submission(&batch(9))).await;
    assert_eq!(status().await, Invalid);
}

#[tokio::test]
async fn transactions_of_the_chain_are_found_at_any_node() {
    let first = LedgerSim::sawtooth().start().unwrap();
    let lag = Duration::from_secs(3_600);
    let clock = Arc::new(ManualClock::default());
    let second = LedgerSim::sawtooth().clock(clock).join_chain_of(&first, lag).start().unwrap();
    sawtooth().send(&first.url(), &submission(&batch(1))).await;
    let transaction =
        |number| -> ItemId { batch(number).transactions[0].header_signature.parse().unwrap() };
    let asked = [1, 2].map(transaction);
    let look_up = async |urls: Vec<String>| {
        sawtooth().with_nodes(Nodes::new(urls)).look_up_transactions(&asked).await
    };
    let answers = |applied: &[u32], absent: &[u32]| {
        let of = |numbers: &[u32]| numbers.iter().map(|number| transaction(*number)).collect();
        Ok(TransactionAnswers { applied: of(applied), absent: of(absent) })
    };
    let down = unused_address().await;
    assert_eq!(look_up(vec![second.url(), first.url()]).await, answers(&[1], &[2]));
    let without_one = look_up(vec![down.clone(), first.url()]).await;
    assert_eq!(without_one, answers(&[1], &[]), "the node that is down may have the other one");
    assert_eq!(look_up(vec![second.url()]).await, answers(&[], &[1, 2]));
    for urls in [vec![down.clone(), second.url()], vec![down], Vec::new()] {
        let error = look_up(urls).await.unwrap_err();
        assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
    }
}
