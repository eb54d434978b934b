use super::error::NodeError;

/// Why a node refused a transaction, according to the words of its error, because error codes differ between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It already has this transaction.
    Known,
    /// The account's next nonce is higher.
    NonceTooLow,
    /// It has another transaction with this nonce, and this one does not pay enough more.
    ReplacementUnderpriced,
    /// Its fee is too low.
    FeeTooLow,
    /// The account cannot pay for it.
    InsufficientFunds,
    /// A transaction with a lower nonce is missing.
    NonceTooHigh,
    /// The node's transaction pool is full, or it has a fault of its own.
    NodeBusy,
    /// It allows more gas than a block or a transaction may use.
    GasLimitTooHigh,
    /// It allows less gas than the data alone costs.
    GasLimitTooLow,
    /// It may cost more than the node is configured to send.
    FeeAboveNodeCap,
    /// The chain does not have transactions of this type.
    TypeNotSupported,
    /// Another property of the transaction is not accepted, such as its size or its sender.
    Invalid,
    /// The words are not known.
    Unrecognized,
}

/// The words in messages of geth, erigon, nethermind, besu, reth, anvil, hardhat and ganache, with `|` between them. The
/// first match is used, so more specific words come first.
const WORDS: &[(Refusal, &str)] = &[
    (
        Refusal::Known,
        "already known|already imported|alreadyknown|known transaction|\
         existing tx with same hash",
    ),
    (Refusal::NonceTooLow, "nonce too low|nonce is too low|oldnonce"),
    (
        Refusal::ReplacementUnderpriced,
        "replacement transaction underpriced|replacementnotallowed|\
         could not replace existing tx|future transaction tries to replace pending|\
         transaction can't be replaced",
    ),
    (
        Refusal::FeeTooLow,
        "less than block base fee|gas price below|gas price is below|fee too low|feetoolow|\
         feetoolowtocompete|is too low for the next block|underpriced",
    ),
    (
        Refusal::InsufficientFunds,
        "insufficient funds|insufficientfunds|insufficient balance|\
         upfront cost exceeds account balance|doesn't have enough funds",
    ),
    (Refusal::NonceTooHigh, "nonce too high|nonce gap|noncegap|noncetoofarinfuture"),
    (Refusal::NodeBusy, "txpool is full|transaction pool is full|sub-pool is full"),
    (
        Refusal::GasLimitTooHigh,
        "exceeds block gas limit|env.block.gas_limit|intrinsic gas too high|gas limit too high|\
         gaslimitexceeded|exceeds the block gas limit|exceeds transaction gas limit cap",
    ),
    (
        Refusal::GasLimitTooLow,
        "intrinsic gas too low|intrinsic gas exceeds gas limit|\
         insufficient gas for floor data gas cost|transaction requires at least",
    ),
    (Refusal::FeeAboveNodeCap, "exceeds the configured cap|transaction fee cap exceeded"),
    (
        Refusal::TypeNotSupported,
        "transaction type not supported|unsupported transaction type|unknown transaction type|\
         invalid transaction type|notsupportedtxtype|eip-1559 style fee params|\
         eip-1559 disabled",
    ),
    (
        Refusal::Invalid,
        "oversized data|maxtxsizeexceeded|max initcode size exceeded|invalid sender|\
         invalid signature|invalid chain id|sender not an eoa|senderiscontract|\
         higher than max fee per gas",
    ),
    (
        Refusal::NodeBusy,
        "internal error|rate limit|too many requests|timeout|timed out|not synced|syncing",
    ),
];

impl Refusal {
    /// The meaning of a node's error.
    pub(crate) fn of(error: &NodeError) -> Self {
        match error {
            NodeError::Rpc { message, .. } => Self::from_message(message),
            _ => Self::Unrecognized,
        }
    }

    /// What is wrong with the transaction, if the same bytes will be refused until the node or the chain has changed.
    pub(crate) const fn lasting_reason(self) -> Option<&'static str> {
        match self {
            Self::GasLimitTooHigh => Some("its gas limit is above that of a block"),
            Self::GasLimitTooLow => Some("its gas limit is too low for its data"),
            Self::FeeAboveNodeCap => Some("it may cost more than the node is configured to send"),
            Self::TypeNotSupported => Some("the chain does not have transactions of its type"),
            Self::Invalid => Some("the node refuses it whatever its fee"),
            Self::Known
            | Self::NonceTooLow
            | Self::ReplacementUnderpriced
            | Self::FeeTooLow
            | Self::InsufficientFunds
            | Self::NonceTooHigh
            | Self::NodeBusy
            | Self::Unrecognized => None,
        }
    }

    /// The meaning of a node's error message.
    pub(crate) fn from_message(message: &str) -> Self {
        let message = message.to_lowercase();
        let says = |words: &str| words.split('|').any(|words| has_words(&message, words));
        let found = WORDS.iter().find(|(_, words)| says(words));
        found.map_or(Self::Unrecognized, |(refusal, _)| *refusal)
    }
}

/// Whether whole words match: "unknown transaction" must not match "known transaction".
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_nodes_are_recognized() {
        for (message, expected) in [
            // geth, its forks, and reth
            ("already known", Refusal::Known),
            ("nonce too low", Refusal::NonceTooLow),
            ("nonce too low: next nonce 5, tx nonce 4", Refusal::NonceTooLow),
            ("nonce too low: address 0xf39F, tx: 4 state: 5", Refusal::NonceTooLow),
            ("replacement transaction underpriced", Refusal::ReplacementUnderpriced),
            (
                "replacement transaction underpriced: new tx gas fee cap 2 <= 1 queued + 100%",
                Refusal::ReplacementUnderpriced,
            ),
            ("future transaction tries to replace pending", Refusal::ReplacementUnderpriced),
            ("transaction underpriced", Refusal::FeeTooLow),
            (
                "transaction underpriced: gas tip cap 1, minimum needed 25000000000",
                Refusal::FeeTooLow,
            ),
            (
                "max fee per gas less than block base fee: address 0xf39F, maxFeePerGas: 1, \
                 baseFee: 7",
                Refusal::FeeTooLow,
            ),
            ("fee cap less than block base fee", Refusal::FeeTooLow),
            ("insufficient funds for gas * price + value", Refusal::InsufficientFunds),
            (
                "insufficient funds for gas * price + value: balance 0, tx cost 1",
                Refusal::InsufficientFunds,
            ),
            ("nonce too high", Refusal::NonceTooHigh),
            ("nonce too high: address 0xf39F, tx: 9 state: 5", Refusal::NonceTooHigh),
            ("txpool is full", Refusal::NodeBusy),
            ("exceeds block gas limit", Refusal::GasLimitTooHigh),
            (
                "transaction gas limit too high (cap: 16777216, tx: 30000000)",
                Refusal::GasLimitTooHigh,
            ),
            ("intrinsic gas too low: have 20000, want 21000", Refusal::GasLimitTooLow),
            (
                "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)",
                Refusal::FeeAboveNodeCap,
            ),
            ("transaction type not supported", Refusal::TypeNotSupported),
            ("transaction type not supported: 2", Refusal::TypeNotSupported),
            ("oversized data: transaction size 9, limit 8", Refusal::Invalid),
            ("invalid sender", Refusal::Invalid),
            ("max priority fee per gas higher than max fee per gas", Refusal::Invalid),
            ("Internal error", Refusal::NodeBusy),
            // erigon
            ("INTERNAL_ERROR: existing tx with same hash", Refusal::Known),
            ("INTERNAL_ERROR: could not replace existing tx", Refusal::ReplacementUnderpriced),
            ("fee too low", Refusal::FeeTooLow),
            ("underpriced", Refusal::FeeTooLow),
            ("insufficient funds", Refusal::InsufficientFunds),
            ("pending sub-pool is full", Refusal::NodeBusy),
            // nethermind
            ("AlreadyKnown", Refusal::Known),
            ("OldNonce, Current nonce: 5, nonce of rejected tx: 4", Refusal::NonceTooLow),
            ("ReplacementNotAllowed", Refusal::ReplacementUnderpriced),
            ("FeeTooLow, MaxFeePerGas too low", Refusal::FeeTooLow),
            ("FeeTooLowToCompete", Refusal::FeeTooLow),
            (
                "InsufficientFunds, Account balance: 0, cumulative cost: 1",
                Refusal::InsufficientFunds,
            ),
            ("NonceGap, Future nonce. Expected nonce: 4", Refusal::NonceTooHigh),
            ("NonceTooFarInFuture", Refusal::NonceTooHigh),
            // besu
            ("Known transaction", Refusal::Known),
            ("Nonce too low", Refusal::NonceTooLow),
            ("Replacement transaction underpriced", Refusal::ReplacementUnderpriced),
            ("Gas price below current base fee", Refusal::FeeTooLow),
            ("Gas price below configured minimum gas price", Refusal::FeeTooLow),
            ("Upfront cost exceeds account balance", Refusal::InsufficientFunds),
            ("Nonce too high", Refusal::NonceTooHigh),
            ("Transaction gas limit exceeds block gas limit", Refusal::GasLimitTooHigh),
            ("Intrinsic gas exceeds gas limit", Refusal::GasLimitTooLow),
            ("Transaction fee cap exceeded", Refusal::FeeAboveNodeCap),
            // anvil
            ("transaction already imported", Refusal::Known),
            ("max fee per gas less than block base fee", Refusal::FeeTooLow),
            ("Insufficient funds for gas * price + value", Refusal::InsufficientFunds),
            (
                "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit",
                Refusal::GasLimitTooHigh,
            ),
            // hardhat
            ("Known transaction: 0xab", Refusal::Known),
            ("Nonce too low. Expected nonce to be 1 but got 0.", Refusal::NonceTooLow),
            ("Nonce too high. Expected nonce to be 0 but got 1.", Refusal::NonceTooHigh),
            (
                "Replacement transaction underpriced. A gasPrice/maxFeePerGas of at least 7",
                Refusal::ReplacementUnderpriced,
            ),
            (
                "Transaction maxFeePerGas (1) is too low for the next block, which has a \
                 baseFeePerGas of 7",
                Refusal::FeeTooLow,
            ),
            (
                "Sender doesn't have enough funds to send tx. The max upfront cost is: 7",
                Refusal::InsufficientFunds,
            ),
            (
                "Transaction gas limit is 131071 and exceeds block gas limit of 61440",
                Refusal::GasLimitTooHigh,
            ),
            ("Transaction requires at least 21000 gas but got 1", Refusal::GasLimitTooLow),
            (
                "EIP-1559 style fee params (maxFeePerGas or maxPriorityFeePerGas) received but \
                 they are not supported by the current hardfork.",
                Refusal::TypeNotSupported,
            ),
            // ganache
            ("transaction underpriced", Refusal::FeeTooLow),
            (
                "transaction can't be replaced, mining has already started.",
                Refusal::ReplacementUnderpriced,
            ),
        ] {
            assert_eq!(Refusal::from_message(message), expected, "{message}");
        }
    }

    #[test]
    fn other_messages_are_not_recognized() {
        for message in ["", "unknown transaction", "the moon is full", "forbidden"] {
            assert_eq!(Refusal::from_message(message), Refusal::Unrecognized, "{message}");
        }
    }
}
