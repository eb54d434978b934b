// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A pool for tests. It moves no funds: it counts the proposed withdrawals and emits an event for
/// each, so that a test can check what happened.
contract WithdrawPool {
    /// A withdrawal was proposed: its id, and the id of the member it pays.
    event WithdrawPollCreated(uint256 id, uint256 indexed member);

    /// The withdrawal has no beneficiary.
    error NoBeneficiary(uint256 amount);

    address public owner;
    uint256 public polls;
    uint256 public members;
    mapping(address => uint256) public memberOf;

    constructor(address owner_) {
        owner = owner_;
    }

    function proposeWithdraw(uint256 amount, address beneficiary) external {
        require(msg.sender == owner, "not the owner");
        require(amount > 0, "amount is zero");
        if (beneficiary == address(0)) revert NoBeneficiary(amount);

        if (memberOf[beneficiary] == 0) memberOf[beneficiary] = ++members;
        emit WithdrawPollCreated(++polls, memberOf[beneficiary]);
    }
}
