/// Why a node refused a transaction, by the words of its error. Error codes differ between nodes.
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
    /// The node's transaction pool is full.
    PoolFull,
    /// The words are not known.
    Unrecognized,
}

/// The words of geth, erigon, nethermind, besu, reth and anvil. The first match counts, so more
/// specific words come first.
const WORDS: &[(&str, Refusal)] = &[
    ("already known", Refusal::Known),
    ("already imported", Refusal::Known),
    ("alreadyknown", Refusal::Known),
    ("known transaction", Refusal::Known),
    ("existing tx with same hash", Refusal::Known),
    ("nonce too low", Refusal::NonceTooLow),
    ("nonce is too low", Refusal::NonceTooLow),
    ("oldnonce", Refusal::NonceTooLow),
    ("replacement transaction underpriced", Refusal::ReplacementUnderpriced),
    ("replacementnotallowed", Refusal::ReplacementUnderpriced),
    ("could not replace existing tx", Refusal::ReplacementUnderpriced),
    ("future transaction tries to replace pending", Refusal::ReplacementUnderpriced),
    ("less than block base fee", Refusal::FeeTooLow),
    ("gas price below", Refusal::FeeTooLow),
    ("gas price is below", Refusal::FeeTooLow),
    ("fee too low", Refusal::FeeTooLow),
    ("feetoolow", Refusal::FeeTooLow),
    ("feetoolowtocompete", Refusal::FeeTooLow),
    ("underpriced", Refusal::FeeTooLow),
    ("insufficient funds", Refusal::InsufficientFunds),
    ("insufficientfunds", Refusal::InsufficientFunds),
    ("insufficient balance", Refusal::InsufficientFunds),
    ("upfront cost exceeds account balance", Refusal::InsufficientFunds),
    ("nonce too high", Refusal::NonceTooHigh),
    ("nonce gap", Refusal::NonceTooHigh),
    ("noncegap", Refusal::NonceTooHigh),
    ("noncetoofarinfuture", Refusal::NonceTooHigh),
    ("txpool is full", Refusal::PoolFull),
    ("transaction pool is full", Refusal::PoolFull),
    ("sub-pool is full", Refusal::PoolFull),
];

impl Refusal {
    /// The meaning of a node's error message.
    pub(crate) fn from_message(message: &str) -> Self {
        let message = message.to_lowercase();
        let found = WORDS.iter().find(|(words, _)| has_words(&message, words));
        found.map_or(Self::Unrecognized, |(_, refusal)| *refusal)
    }
}

/// Whether whole words match: "unknown transaction" is not "known transaction".
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
            ("txpool is full", Refusal::PoolFull),
            // erigon
            ("INTERNAL_ERROR: existing tx with same hash", Refusal::Known),
            ("INTERNAL_ERROR: could not replace existing tx", Refusal::ReplacementUnderpriced),
            ("fee too low", Refusal::FeeTooLow),
            ("underpriced", Refusal::FeeTooLow),
            ("insufficient funds", Refusal::InsufficientFunds),
            ("pending sub-pool is full", Refusal::PoolFull),
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
            // anvil
            ("transaction already imported", Refusal::Known),
            ("max fee per gas less than block base fee", Refusal::FeeTooLow),
            ("Insufficient funds for gas * price + value", Refusal::InsufficientFunds),
        ] {
            assert_eq!(Refusal::from_message(message), expected, "{message}");
        }
    }

    #[test]
    fn other_messages_are_not_recognized() {
        for message in [
            "",
            "unknown transaction type",
            "unknown transaction",
            "invalid sender",
            "intrinsic gas too low",
            "exceeds block gas limit",
            "transaction type not supported",
            "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)",
            "max priority fee per gas higher than max fee per gas",
            "Internal error",
        ] {
            assert_eq!(Refusal::from_message(message), Refusal::Unrecognized, "{message}");
        }
    }
}
