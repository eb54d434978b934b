// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A token for tests: what a pool of tokens needs of ERC-20. All of it belongs to one account at first.
contract TestToken {
    mapping(address => uint256) public balanceOf;
    /// Whether `transfer` returns nothing, as it does in some old tokens.
    bool private immutable returnsNothing;

    constructor(address holder, uint256 supply, bool returnsNothing_) {
        balanceOf[holder] = supply;
        returnsNothing = returnsNothing_;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        if (amount > balanceOf[msg.sender]) return false;
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        if (returnsNothing) {
            assembly {
                return(0, 0)
            }
        }
        return true;
    }
}
