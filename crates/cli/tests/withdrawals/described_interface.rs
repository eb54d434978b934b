//! Requests made from the description of the interface.

use grid_batch_test_support::schemathesis::assert_interface_is_as_described;

use crate::harness::WithdrawalHarness;

#[test]
fn interface_of_withdrawals_is_as_described() {
    let harness = WithdrawalHarness::on_postgres(1);
    let server = harness.serve();
    let paid = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(std::slice::from_ref(&paid));
    let pool = harness.pools[0].address();
    let configuration =
        format!("[parameters]\n'path.id' = ['{paid}', 'x']\n'query.pool' = '{pool}'\n");
    assert_interface_is_as_described(server.address, &configuration);
}
