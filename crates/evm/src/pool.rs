//! The contract of a pool: how it is called, and the event that it emits.

use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_sol_types::{SolCall, SolEvent, sol};

sol! {
    function proposeWithdraw(uint256 amount, address beneficiary);

    event WithdrawPollCreated(uint256 id, uint256 indexed member);
}

/// The data of the call that makes a withdrawal.
pub(crate) fn propose_withdraw(amount: U256, beneficiary: Address) -> Bytes {
    proposeWithdrawCall { amount, beneficiary }.abi_encode().into()
}

/// Whether the data calls the function that makes a withdrawal.
pub(crate) fn is_withdrawal(data: &[u8]) -> bool {
    data.starts_with(&proposeWithdrawCall::SELECTOR)
}

/// The topic of the event that a pool emits when it makes a withdrawal.
pub(crate) const WITHDRAWAL_EVENT: B256 = WithdrawPollCreated::SIGNATURE_HASH;

/// The amount and the beneficiary of a call that makes a withdrawal. `None`: it is another call.
pub(crate) fn read_call(data: &[u8]) -> Option<(U256, Address)> {
    let call = proposeWithdrawCall::abi_decode_validate(data).ok()?;
    // If the same terms are encoded differently, the call was not signed here.
    let terms = (call.amount, call.beneficiary);
    (propose_withdraw(terms.0, terms.1)[..] == *data).then_some(terms)
}

/// The id that the pool gave the withdrawal. Events of other contracts are ignored.
pub(crate) fn withdrawal_id(pool: Address, logs: &[Log]) -> Option<U256> {
    let mut own = logs.iter().filter(|log| log.address == pool);
    own.find_map(|log| WithdrawPollCreated::decode_log(log).ok()).map(|event| event.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{address, b256, hex};

    const POOL: Address = address!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    const TOPIC: B256 = b256!("0x91aa418bfd26049fe46510fca1b7593f8348efbf8e8e29a3844bb16584ff1448");

    fn number(n: u64) -> B256 {
        B256::from(U256::from(n))
    }

    fn log(topics: &[B256], data: &[u8]) -> Log {
        Log::new_unchecked(POOL, topics.to_vec(), Bytes::copy_from_slice(data))
    }

    fn event() -> Log {
        log(&[TOPIC, number(4)], number(17).as_slice())
    }

    #[test]
    fn call_is_encoded_as_the_pool_expects() {
        let data = propose_withdraw(U256::from(258), POOL);
        let expected = hex!(
            "f0854aac"
            "0000000000000000000000000000000000000000000000000000000000000102"
            "0000000000000000000000005aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
        );
        assert_eq!(data[..], expected);
    }

    #[test]
    fn only_an_exact_call_is_read() {
        let data = propose_withdraw(U256::from(258), POOL);
        assert_eq!(read_call(&data), Some((U256::from(258), POOL)));
        let longer = [&data[..], &[0; 32]].concat();
        let other = [&[0; 4], &data[4..]].concat();
        for data in [&data[..60], &longer, &other, &[]] {
            assert_eq!(read_call(data), None, "{data:?}");
        }
    }

    #[test]
    fn id_is_read_from_the_event() {
        assert_eq!(WithdrawPollCreated::SIGNATURE_HASH, TOPIC);
        let other = log(&[number(1)], number(17).as_slice());
        assert_eq!(withdrawal_id(POOL, &[other, event()]), Some(U256::from(17)));
    }

    #[test]
    fn other_events_are_ignored() {
        let id = number(17);
        let ignored = [
            Log { address: Address::ZERO, ..event() },
            log(&[number(1), number(4)], id.as_slice()),
            log(&[TOPIC], id.as_slice()),
            log(&[TOPIC, number(4), number(4)], id.as_slice()),
            log(&[], id.as_slice()),
            log(&[TOPIC, number(4)], &[]),
            log(&[TOPIC, number(4)], &[0; 31]),
        ];
        for log in ignored {
            assert_eq!(withdrawal_id(POOL, std::slice::from_ref(&log)), None, "{log:?}");
        }
    }
}
