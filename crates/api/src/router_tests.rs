//! Compares the table of what routes need with the routes of the router.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use grid_batch_core::ServiceId;
use grid_batch_core::mocks::{
    MockBatchQueryStore, MockEventStore, MockIntakeStore, MockOperatorStore, MockTokenStore,
    MockWebhookStore,
};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::webhooks::AllowedNetworks;
use grid_batch_protocol::TransactFormat;
use grid_batch_support::Shutdown;
use grid_batch_withdrawals::{
    WithdrawalRules,
    mocks::{MockCallRules, MockWithdrawalStore},
};

use crate::{
    ApiBuilder, GasAdminMoves, InDoubtReport, LedgerBinding, Maintenance, MaintenanceError,
    RetentionReport, access::routes_of_table, batches::BatchListStore, group_commit::QueueOf,
    parts::WithdrawalParts, router::router, running::Intake, state::ApiState,
    withdrawals::WithdrawalGroupStore,
};

/// Method and path, `*` for any method.
type Routes = BTreeSet<(String, String)>;

/// The routes of a router, as its `Debug` shows them: axum has no list of them.
fn routes_of(router: &Router) -> Routes {
    let text = format!("{router:?}");
    let text = text.split("fallback_router").next().unwrap();
    let (mut methods, mut paths) = (BTreeMap::new(), BTreeMap::new());
    for part in text.split("RouteId(").skip(1) {
        let (id, rest) = part.split_once("): ").unwrap();
        if let Some(path) = rest.strip_prefix('"') {
            paths.insert(id, path.split_once('"').unwrap().0);
        } else if let Some((_, allowed)) = rest.split_once("allow_header: ") {
            let allowed =
                allowed.strip_prefix("Bytes(b\"").map(|list| list.split_once('"').unwrap().0);
            methods.insert(id, allowed.unwrap_or("*"));
        }
    }
    assert_eq!(methods.len(), paths.len(), "{text}");
    let all = paths.into_iter().flat_map(|(id, path)| {
        let methods = methods[id].split(',').filter(|method| *method != "HEAD");
        methods.map(move |method| (method.to_owned(), path.to_owned()))
    });
    all.collect()
}

/// No request is handled in these tests.
#[derive(Debug)]
struct NoRules;

impl WithdrawalRules for NoRules {
    fn pool(&self, _: &str) -> Result<(String, ServiceId), String> {
        unreachable!()
    }

    fn pool_address(&self, _: &str) -> Result<String, String> {
        unreachable!()
    }

    fn beneficiary(&self, _: &str) -> Result<String, String> {
        unreachable!()
    }

    fn amount(&self, _: &str) -> Result<String, String> {
        unreachable!()
    }
}

struct NoMaintenance;

impl Maintenance for NoMaintenance {
    fn restored(&self, _: bool, _: &OperatorRequest) -> Result<InDoubtReport, MaintenanceError> {
        unreachable!()
    }

    fn moved(&self, _: &OperatorRequest) -> Result<InDoubtReport, MaintenanceError> {
        unreachable!()
    }

    fn ledger(&self) -> Result<LedgerBinding, MaintenanceError> {
        unreachable!()
    }

    fn adopt_ledger(&self, _: &OperatorRequest) -> Result<LedgerBinding, MaintenanceError> {
        unreachable!()
    }

    fn remove_ended(
        &self,
        _: Option<Duration>,
        _: bool,
    ) -> Result<RetentionReport, MaintenanceError> {
        unreachable!()
    }

    fn move_withdrawals(
        &self,
        _: &OperatorRequest,
    ) -> Result<Vec<GasAdminMoves>, MaintenanceError> {
        unreachable!()
    }
}

fn state() -> Arc<ApiState> {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    Arc::new(ApiState::new(&builder().into_parts(), address, Shutdown::new()))
}

fn builder() -> ApiBuilder {
    let mut events = MockEventStore::new();
    events.expect_on_events().return_const(());
    ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(MockBatchQueryStore::new()))
        .with_format(Arc::new(TransactFormat::default()))
        .with_reads()
        .with_operators(Arc::new(MockOperatorStore::new()), || None)
        .with_events(Arc::new(events))
        .with_webhooks(Arc::new(MockWebhookStore::new()), AllowedNetworks::default())
        .with_tokens(Arc::new(MockTokenStore::new()))
        .with_maintenance(Arc::new(NoMaintenance))
}

#[tokio::test]
async fn table_of_needs_has_every_route() {
    let intake = Intake::Batches(QueueOf::<BatchListStore>::new(1).0);
    let batches = router(builder().into_parts(), state(), intake);
    let withdrawals =
        WithdrawalParts { store: Arc::new(MockWithdrawalStore::new()), rules: Arc::new(NoRules) };
    let intake = Intake::Withdrawals(withdrawals, QueueOf::<WithdrawalGroupStore>::new(1).0);
    let complete = builder().with_gas_admins(|| Ok(Vec::new()));
    let complete = complete.with_calls(Arc::new(MockCallRules::new()));
    let withdrawals = router(complete.into_parts(), state(), intake);

    let served: Routes = routes_of(&batches).union(&routes_of(&withdrawals)).cloned().collect();
    let table = routes_of_table().map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(
        served,
        table.collect(),
        "routes that are served, and the table in access/routes.rs"
    );
}
