//! `/v1/gas-admins`.

use grid_batch_api::{GasAdminReport, GasReport, QueueReport, Reading};
use grid_batch_core::{BatchError, Timestamp};
use grid_batch_withdrawals::GasAdminQueue;
use serde_json::json;

use super::test_pools::{ADMIN, server_with_pools_and};
use crate::test_server::{TestServer, service};

const PATH: &str = "/v1/gas-admins";

fn report() -> GasAdminReport {
    let queue = GasAdminQueue {
        service_id: service(ADMIN),
        open: 3,
        waiting: 1,
        in_progress: 1,
        parked: 0,
        held: 1,
        oldest_scheduled_at: Some(Timestamp::from_micros(0)),
        last_error: None,
        last_failures: Vec::new(),
    };
    let gas = GasReport {
        balance: Reading { error: Some("no answer".to_owned()), ..Reading::default() },
        gas_price_gwei: Reading {
            value: Some("7".to_owned()),
            age_seconds: Some(2.0),
            error: None,
        },
        maximum_gas_price_gwei: "200".to_owned(),
        gas_per_withdrawal: 100_000,
        gas_is_assumed: true,
        withdrawals_left: None,
        low_balance: false,
        estimated_cost: Some("1400000".to_owned()),
    };
    GasAdminReport {
        name: "treasury".to_owned(),
        address: "0xad".to_owned(),
        gas_admin: ADMIN.to_owned(),
        gas,
        queue: QueueReport::from(&queue),
        last_failure: None,
        pools: Vec::new(),
    }
}

#[test]
fn gas_admins_are_shown_with_unknown_values_as_null() {
    let server = server_with_pools_and(|builder| builder.with_gas_admins(|| Ok(vec![report()])));
    let response = server.get(PATH);
    assert_eq!(response.status, 200, "{}", response.json());
    let expected = json!({
        "data": [{
            "name": "treasury", "address": "0xad", "gas_admin": ADMIN,
            "balance": { "value": null, "age_seconds": null, "error": "no answer" },
            "gas_price_gwei": { "value": "7", "age_seconds": 2.0, "error": null },
            "maximum_gas_price_gwei": "200", "gas_per_withdrawal": 100_000, "gas_is_assumed": true,
            "withdrawals_left": null, "low_balance": false, "estimated_cost": "1400000",
            "queue": {
                "open": 3, "waiting": 1, "in_progress": 1, "parked": 0, "held": 1,
                "oldest_scheduled_at": "1970-01-01T00:00:00.000000Z", "last_error": null,
            },
            "last_failure": null, "pools": [],
        }],
        "next": null,
    });
    assert_eq!(response.json(), expected);
}

#[test]
fn store_that_cannot_be_read_is_reported() {
    let failed = || Err(BatchError::Unavailable("no connection".to_owned()));
    let server = server_with_pools_and(|builder| builder.with_gas_admins(failed));
    assert_eq!(server.get(PATH).error(), (503, 1013));
}

#[test]
fn other_methods_and_parameters_are_refused() {
    let server = server_with_pools_and(|builder| builder.with_gas_admins(|| Ok(Vec::new())));
    assert_eq!(server.get(&format!("{PATH}?pool=1")).error(), (400, 1007));
    assert_eq!(server.client().request("POST", PATH, &[], b"").error(), (405, 1002));
}

#[test]
fn server_without_pools_has_no_gas_admins() {
    assert_eq!(TestServer::new().get(PATH).error(), (404, 1020));
}
