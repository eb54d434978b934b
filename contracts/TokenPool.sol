// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A pool that pays in an ERC-20 token. Transfer tokens to its address to fund it.
///
/// One transaction is one payment: it pays in full and emits the event, or it is reverted. Of a token that
/// deducts a fee from each transfer, the beneficiary gets less than the amount.
contract TokenPool {
    /// A payment was made: its id, and the id of the member it pays.
    event WithdrawPollCreated(uint256 id, uint256 indexed member);

    /// The gas admin: the only account that may request payments.
    address public immutable owner;
    address public immutable token;
    uint256 public polls;
    uint256 public members;
    mapping(address => uint256) public memberOf;

    constructor(address owner_, address token_) {
        require(token_.code.length > 0, "the token is not a contract");
        owner = owner_;
        token = token_;
    }

    function proposeWithdraw(uint256 amount, address beneficiary) external {
        require(msg.sender == owner, "not the owner");
        require(amount > 0, "amount is zero");
        require(beneficiary != address(0), "no beneficiary");

        if (memberOf[beneficiary] == 0) memberOf[beneficiary] = ++members;
        emit WithdrawPollCreated(++polls, memberOf[beneficiary]);
        pay(beneficiary, amount);
    }

    /// Some tokens return nothing instead of `true`.
    function pay(address beneficiary, uint256 amount) private {
        (bool called, bytes memory result) =
            token.call(abi.encodeWithSignature("transfer(address,uint256)", beneficiary, amount));
        require(
            called && (result.length == 0 || abi.decode(result, (bool))),
            "the token refuses the transfer"
        );
    }
}
