//! A chain that has lost many transactions of a gas admin.

use crate::harness::WithdrawalHarness;

#[test]
fn gap_longer_than_the_limit_is_said_and_then_closed() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[("--evm-longest-gap", "2")]);
    let ids = [1, 2, 3].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_until_withdrawn(&ids);
    harness.anvil.reorg(3).unwrap();
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![], 0));

    let id = server.schedule(&harness.withdrawal_request(0, 4));
    let parked = server.wait_for_state(&id, "parked");
    let waits_for = parked["waits_for"].as_str().unwrap();
    for part in ["the nonces 0 to 2", "the lowest is 0", "set evm.longest_gap to 3"] {
        assert!(waits_for.contains(part), "{waits_for}");
    }
    assert_eq!(harness.nonce(0), 0);
    drop(server);
    let server = harness.serve_with(&[("--evm-longest-gap", "3")]);
    server.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1, 2, 3, 4]);
}
