// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A pool that pays in the chain's own coin. Send coins to its address to fund it.
///
/// One transaction is one payment: it pays in full and emits the event, or it is reverted.
contract NativePool {
    /// A payment was made: its id, and the id of the member it pays.
    event WithdrawPollCreated(uint256 id, uint256 indexed member);

    /// The gas that a beneficiary with code may use, so that it cannot spend the gas admin's coins.
    uint256 private constant BENEFICIARY_GAS = 50_000;

    /// The gas admin: the only account that may request payments.
    address public immutable owner;
    uint256 public polls;
    uint256 public members;
    mapping(address => uint256) public memberOf;

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    function proposeWithdraw(uint256 amount, address beneficiary) external {
        require(msg.sender == owner, "not the owner");
        require(amount > 0, "amount is zero");
        require(beneficiary != address(0), "no beneficiary");
        require(amount <= address(this).balance, "the pool has too little");

        if (memberOf[beneficiary] == 0) memberOf[beneficiary] = ++members;
        emit WithdrawPollCreated(++polls, memberOf[beneficiary]);
        (bool paid,) = beneficiary.call{value: amount, gas: BENEFICIARY_GAS}("");
        require(paid, "the beneficiary refuses the payment");
    }
}
