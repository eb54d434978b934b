//! Requests of clients that a node answers.

use futures_util::TryStreamExt;
use grid_batch_core::ledger::{ForwardedRequest, Ledger};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};

use crate::{
    batches::{SERVICE, scope, token},
    nodes::Nodes,
};

fn pass_through(urls: &[String]) -> Scabbard {
    Scabbard::new(&token(), Nodes::at(urls.to_vec()), ScabbardOptions::default()).unwrap()
}

fn path(end: &str) -> String {
    format!("/scabbard/{}/{end}", SERVICE.replace("::", "/"))
}

#[test]
fn only_what_reads_is_served() {
    let nodes = pass_through(&[]);
    let ends = ["state", "state/ab", "state_root", "batch_statuses"];
    let served = ends.map(path);
    let others = ["/admin/circuits", "/admin/circuits/a-b", "/registry/nodes", "/status"];
    for path in served.iter().map(String::as_str).chain(others) {
        assert!(nodes.serves(false, path), "{path}");
        assert!(!nodes.serves(true, path), "{path}");
    }
    for path in ["/admin/submit", "/biome/login", "/admin/circuits/%2e%2e", "/scabbard/a/../state"]
    {
        assert!(!nodes.serves(false, path), "{path}");
    }
    assert!(nodes.serves_socket(&path("ws/subscribe")));
    for path in [path("ws"), path("state"), "/scabbard/a/../ws/subscribe".to_owned()] {
        assert!(!nodes.serves_socket(&path), "{path}");
    }
}

#[tokio::test]
async fn node_gets_the_token_of_the_client_or_that_of_the_server() {
    let own = SigningKey::from_seed(99);
    for (authorization, allowed, expected) in [
        (Some(format!("Bearer Cylinder:{}", CylinderToken::new(&own).as_str())), &own, 200),
        (None, &own, 401),
        // The token is for this server, so the node gets the server's own.
        (Some("Bearer token-of-this-server".to_owned()), &own, 401),
    ] {
        let ledger = LedgerSim::scabbard([scope()]).allow_keys([allowed.public_key()]);
        let ledger = ledger.start().unwrap();
        let mut request = ForwardedRequest::get(path("state_root"), None);
        request.headers.extend(authorization.map(|it| ("authorization", it)));
        let answer = pass_through(&[ledger.url()]).forward(request).await.unwrap();
        assert_eq!(answer.status, expected);
        assert!(!answer.body.try_concat().await.unwrap().is_empty());
    }
}
