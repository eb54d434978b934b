use std::collections::BTreeSet;

use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::ledger::CommitHistory;
use grid_batch_core::operators::{ActionFilter, OperatorStore, OperatorTarget, OperatorVerb};
use grid_batch_core::queries::{BatchFilter, BatchQueryStore, PageCursor};
use grid_batch_core::tokens::TokenStore;
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_withdrawals::{
    FailedFilter, RewardId, WithdrawalFilter, WithdrawalState, WithdrawalStore, WithdrawalTexts,
};

use super::{QueryPlan, pages::planned_pages, plans_of};
use crate::{
    Store, StoreOptions,
    plans::{
        load, load_claimed_services, load_waiting_batches, register_worker, scans,
        withdrawals::load_withdrawals,
    },
};

/// A query that ran: its description, what its plan may scan, and its plan.
pub(super) struct PlannedQuery {
    pub(super) asked: String,
    pub(super) may_scan: &'static [&'static str],
    pub(super) plan: Vec<String>,
}

/// Batches in lanes, whose number does not grow with that of waiting batches.
pub(super) const BUSY_LANES: &[&str] = &["lanes_busy"];
/// The receipts of invalid batches.
const RECEIPTS: &[&str] = &["transaction_receipts"];
/// A page that reads batches in order until it is full.
const BATCHES_IN_ORDER: &[&str] =
    &["batches_service_id_created_at_key", "sqlite_autoindex_batches_2"];
/// A number that can be found only by reading every batch.
const ALL_BATCHES: &[&str] = &["batches"];
/// Holds that operators have made.
const WAITING_HOLDS: &[&str] = &["waiting_holds_pkey", "waiting_holds"];
const BUSY_LANES_AND_HOLDS: &[&str] = &["lanes_busy", "waiting_holds_pkey", "waiting_holds"];
/// Like `BUSY_LANES`, with holds and instances, of which there are few.
const LANES_HOLDS_AND_INSTANCES: &[&str] =
    &["lanes_busy", "waiting_holds_pkey", "waiting_holds", "instances"];
/// Invalid batches that stop others until an operator decides, and services that are paused.
const BUSY_LANES_AND_HALTS: &[&str] =
    &["lanes_busy", "halts", "service_id_claims_paused", "service_id_claims_states_differ"];
const BUSY_LANES_AND_WAITING: &[&str] = &["lanes_busy", "waiting_batches"];
/// Reads all tokens that are not revoked.
const TOKENS: &[&str] = &["tokens_by_name", "tokens"];
pub(super) const NOTHING: &[&str] = &[];

/// Runs operators' queries on a database with many ended batches and some in each state.
fn planned_queries(store: &Store, services: &[ServiceId]) -> Vec<PlannedQuery> {
    let batch = store.open_batches(&services[0], 1).unwrap().remove(0);
    let mut queries = planned_lists(store, &services[0]);
    queries.extend(planned_pages(store, services));
    let mut run =
        |asked: &str, may_scan, query: &dyn Fn()| {
            queries.extend(plans_of(query).into_iter().map(|(name, plan): QueryPlan| {
                PlannedQuery { asked: format!("{asked}: {name}"), may_scan, plan }
            }));
        };
    let (service_id, batch_id) = (&batch.service_id, &batch.batch_id);
    let newest = store.withdrawals(&WithdrawalFilter::default(), None, 1).unwrap();
    let id = newest.withdrawals[0].withdrawal.id;
    let page = |filter: WithdrawalFilter| {
        store.withdrawals(&filter, Some(&id), 10).unwrap();
    };
    let all = WithdrawalFilter::default;
    run("batch", NOTHING, &|| {
        assert_eq!(store.find(batch_id).unwrap().len(), 1);
        store.details(service_id, batch_id).unwrap().unwrap();
        let last = store.open_batches(service_id, 10).unwrap().pop().unwrap();
        assert!(store.ahead(service_id, &[last.created_at]).unwrap()[0].is_some());
        assert!(store.details(service_id, &last.batch_id).unwrap().unwrap().ahead.is_some());
        let transaction = store.details(service_id, batch_id).unwrap().unwrap().transaction_ids[0];
        assert_eq!(store.find_by_transaction(&transaction).unwrap().len(), 1);
        let prefix = batch_id.to_string()[..9].parse().unwrap();
        assert!(!store.find_by_prefix(&prefix, None, 10).unwrap().is_empty());
        assert!(!store.find_by_prefix(&prefix, Some(service_id), 10).unwrap().is_empty());
        store.serialized_batch(service_id, batch_id).unwrap().unwrap();
        store.open_batches(service_id, 10).unwrap();
    });
    run("batches before", NOTHING, &|| {
        store.committed_before(service_id, batch_id).unwrap();
        store.has_committed(service_id).unwrap();
    });
    run("queue", NOTHING, &|| {
        store.depth(service_id).unwrap();
    });
    run("queues after one", BUSY_LANES, &|| {
        store.depths(Some(service_id), 10).unwrap();
        store.held_batches(Some(service_id), 10).unwrap();
    });
    run("delays", BUSY_LANES, &|| {
        store.end_delays(None).unwrap();
        store.end_delays(Some(service_id)).unwrap();
    });
    run("batches under way", BUSY_LANES, &|| {
        register_worker(store).under_way().unwrap();
    });
    run("batches that are being sent", LANES_HOLDS_AND_INSTANCES, &|| {
        store.being_sent(&OperatorTarget::AllServices).unwrap();
        store.being_sent(&OperatorTarget::Instance(InstanceId::new("crowd"))).unwrap();
    });
    run("batches of a service that are being sent", NOTHING, &|| {
        store.being_sent(&OperatorTarget::Service(service_id.clone())).unwrap();
        register_worker(store).stopped(services).unwrap();
    });
    run("services", BUSY_LANES_AND_HALTS, &|| {
        store.service_counts().unwrap();
    });
    run("services of a page", LANES_HOLDS_AND_INSTANCES, &|| {
        assert_eq!(store.services(false, None, 10).unwrap().len(), 10);
        assert_eq!(store.services(true, Some(service_id), 10).unwrap().len(), 10);
        assert!(store.service(service_id).unwrap().is_some());
    });
    run("claims", NOTHING, &|| {
        let crowd = InstanceId::new("crowd");
        assert_eq!(store.claims(Some(&crowd), None, 10).unwrap().len(), 10);
        assert_eq!(store.claims(None, Some(service_id), 10).unwrap().len(), 10);
        assert!(store.count_claims(&crowd).unwrap() >= 10);
        store.instances().unwrap();
        store.settings_of_instances().unwrap();
    });
    run("pauses", NOTHING, &|| {
        store.pauses(services).unwrap();
    });
    run("states", BUSY_LANES_AND_HOLDS, &|| {
        store.open_states().unwrap();
    });
    run("holds of waiting batches", WAITING_HOLDS, &|| {
        store.waiting_holds().unwrap();
    });
    run("retention", NOTHING, &|| {
        store.remove_ended(Timestamp::from_micros(0), None, 10).unwrap();
    });
    for filter in [
        ActionFilter::default(),
        ActionFilter { operator: Some("alice".to_owned()), ..ActionFilter::default() },
        ActionFilter { verb: Some(OperatorVerb::Hold), ..ActionFilter::default() },
        ActionFilter { service_id: Some(service_id.clone()), ..ActionFilter::default() },
        ActionFilter { batch_id: Some(*batch_id), ..ActionFilter::default() },
    ] {
        run("actions of operators", NOTHING, &|| {
            store.actions(&filter, Some(1_000), 10).unwrap();
        });
    }
    run("page of tokens", TOKENS, &|| {
        store.tokens(None, 10).unwrap();
    });
    run("all tokens", TOKENS, &|| {
        store.unrevoked_tokens().unwrap();
    });
    run("reward", NOTHING, &|| {
        store.reward(&RewardId::from_bytes([1; 16])).unwrap();
    });
    run("withdrawal", NOTHING, &|| {
        store.withdrawal(&id).unwrap().unwrap();
    });
    run("withdrawals", NOTHING, &|| page(all()));
    for state in WithdrawalState::ALL {
        let states = BTreeSet::from([state]);
        let may_scan = if state.has_ended() { NOTHING } else { BUSY_LANES_AND_HOLDS };
        run("withdrawals in a state", may_scan, &|| {
            page(WithdrawalFilter { states: states.clone(), ..all() });
        });
        run("withdrawals of a pool in a state", may_scan, &|| {
            let pool = Some("pool 1".to_owned());
            page(WithdrawalFilter { pool, states: states.clone(), ..all() });
        });
    }
    let failed = FailedFilter::default;
    run("failed withdrawals", NOTHING, &|| {
        store.failed_withdrawals(&failed(), Some(&id), 10).unwrap();
    });
    run("failed withdrawals of a pool", NOTHING, &|| {
        let filter = FailedFilter { pool: Some("pool 1".to_owned()), ..failed() };
        store.failed_withdrawals(&filter, Some(&id), 10).unwrap();
    });
    run("withdrawals of a pool", NOTHING, &|| {
        page(WithdrawalFilter { pool: Some("pool 1".to_owned()), ..all() });
    });
    run("withdrawals of a beneficiary", NOTHING, &|| {
        page(WithdrawalFilter { beneficiary: Some("member 1".to_owned()), ..all() });
    });
    run("withdrawals of a reward", NOTHING, &|| {
        page(WithdrawalFilter { reward_id: Some(RewardId::from_bytes([1; 16])), ..all() });
    });
    run("withdrawals with a key", NOTHING, &|| {
        page(WithdrawalFilter { idempotency_key: Some("key".to_owned()), ..all() });
    });
    run("withdrawals with a part of a key", NOTHING, &|| {
        let idempotency_key = Some("ey".to_owned());
        let contains = WithdrawalTexts { idempotency_key, ..WithdrawalTexts::default() };
        page(WithdrawalFilter { contains, ..all() });
    });
    run("calls", NOTHING, &|| {
        page(WithdrawalFilter { calls: true, ..all() });
    });
    run("calls of a service", NOTHING, &|| {
        let service_id = Some("account::01".parse().unwrap());
        page(WithdrawalFilter { calls: true, service_id, ..all() });
    });
    run("payment budget", NOTHING, &|| {
        store.payment_budget().unwrap();
    });
    run("withdrawals of a service", NOTHING, &|| {
        page(WithdrawalFilter { service_id: Some("account::01".parse().unwrap()), ..all() });
    });
    run("open withdrawals", BUSY_LANES, &|| {
        assert!(!store.open_withdrawals().unwrap().is_empty());
    });
    run("withdrawals to move", NOTHING, &|| {
        let account = "account::01".parse().unwrap();
        let to = |_: &str| Some("account::02".parse().unwrap());
        let step = store.withdrawals_to_move(&account, &to, None, 5).unwrap();
        assert!(step.next.is_some());
        store.withdrawals_to_move(&account, &to, step.next, 5).unwrap();
    });
    queries
}

/// Lists and counts in every state: of one service, of all from a cursor on, and of all.
fn planned_lists(store: &Store, service_id: &ServiceId) -> Vec<PlannedQuery> {
    let cursor =
        PageCursor { service_id: service_id.clone(), created_at: Timestamp::from_micros(0) };
    let mut queries = Vec::new();
    for state in BatchState::ALL.map(Some).into_iter().chain([None]) {
        let (list_may_scan, count_may_scan) = match state {
            None | Some(BatchState::Committed) => (BATCHES_IN_ORDER, ALL_BATCHES),
            Some(BatchState::Invalid) => (RECEIPTS, RECEIPTS),
            // A page begins at the first batch of the index; a count reads all.
            Some(BatchState::New) => (BUSY_LANES_AND_WAITING, BUSY_LANES_AND_WAITING),
            Some(_) => (BUSY_LANES, BUSY_LANES),
        };
        let of_one_may_scan = if state == Some(BatchState::Invalid) { RECEIPTS } else { NOTHING };
        let of_all = BatchFilter { service_id: None, state };
        let of_one = BatchFilter { service_id: Some(service_id.clone()), state };
        let mut run = |asked: &str, may_scan, query: &dyn Fn()| {
            queries.extend(plans_of(query).into_iter().map(|(_, plan)| PlannedQuery {
                asked: format!("{asked} in {state:?}"),
                may_scan,
                plan,
            }));
        };
        run("list", list_may_scan, &|| drop(store.list(&of_all, None, 10).unwrap()));
        run("list from a cursor", list_may_scan, &|| {
            drop(store.list(&of_all, Some(&cursor), 10).unwrap());
        });
        run("list of a service", of_one_may_scan, &|| drop(store.list(&of_one, None, 10).unwrap()));
        run("count", count_may_scan, &|| assert!(store.count(&of_all).is_ok()));
        run("count of a service", of_one_may_scan, &|| assert!(store.count(&of_one).is_ok()));
    }
    queries
}

/// Puts some batches into states that `load` does not produce.
const MORE_STATES: &str = "
    update batches set dlt_status = 'INVALID' where seq <= 50;
    insert into transaction_receipts (batch_seq, position, error_message, error_data)
        select seq, 0, 'refused', batch_id from batches where seq <= 50;
    update lanes set submitted = true, dlt_status = 'PENDING'
        where busy and service_id > 'busy::0400'";

fn fill(store: &Store) -> Vec<ServiceId> {
    let worker = register_worker(store);
    let services = load(&worker);
    load_claimed_services(store);
    load_withdrawals(&worker);
    load_waiting_batches(store);
    store.pools.write().unwrap().batch_execute(MORE_STATES).unwrap();
    services
}

#[test]
fn operator_queries_do_not_scan_on_postgres() {
    let database = TestDatabase::create();
    let store = Store::open(&database.url().parse().unwrap(), StoreOptions::default()).unwrap();
    let services = fill(&store);
    store.pools.write().unwrap().batch_execute("vacuum analyze").unwrap();
    for PlannedQuery { asked, may_scan, plan } in planned_queries(&store, &services) {
        for line in scans(&plan) {
            let allowed = may_scan.iter().any(|name| line.contains(name));
            assert!(allowed, "{asked} scans:\n{}", plan.join("\n"));
        }
    }
}

#[test]
fn operator_queries_do_not_scan_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let store = Store::open(&url, StoreOptions::default()).unwrap();
    let services = fill(&store);
    for PlannedQuery { asked, may_scan, plan } in planned_queries(&store, &services) {
        for line in plan.iter().filter(|line| line.starts_with("SCAN ")) {
            let allowed = may_scan.iter().any(|name| line.contains(name));
            assert!(allowed, "{asked} scans:\n{}", plan.join("\n"));
        }
    }
}
