// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A pool that withdrawals are proposed to, and nothing more: no money moves. What is proposed is
/// counted and said by an event, so that a test can reckon up what happened.
contract WithdrawPool {
    /// A withdrawal was proposed: its number, and that of the member it is for.
    event WithdrawPollCreated(uint256 id, uint256 indexed member);

    /// A withdrawal of this amount was for nobody.
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
