//! The definitions of the withdrawal tables for Diesel's query builder. Other folders do not use them.

use diesel::{allow_tables_to_appear_in_same_query, joinable, table};

use crate::sql::schema::{batches, lanes};

table! {
    rewards (reward_id) {
        reward_id -> Binary,
        pool -> Text,
        amount -> Text,
        once_per_member -> Bool,
        created_at -> BigInt,
    }
}

table! {
    withdrawals (seq) {
        seq -> BigInt,
        withdrawal_id -> Binary,
        service_id -> Text,
        kind -> Text,
        reward_id -> Nullable<Binary>,
        pool -> Text,
        beneficiary -> Text,
        amount -> Text,
        generation -> Integer,
        batch_seq -> BigInt,
        created_at -> BigInt,
        cancelled_at -> Nullable<BigInt>,
        list_state -> Text,
        counted_at -> Nullable<BigInt>,
        idempotency_key -> Nullable<Text>,
        call -> Nullable<Text>,
        speed_up_at -> Nullable<BigInt>,
    }
}

table! {
    payment_sums (pool, started_at) {
        pool -> Text,
        started_at -> BigInt,
        amount -> Text,
    }
}

table! {
    last_failures (service_id, pool) {
        service_id -> Text,
        pool -> Text,
        withdrawal_seq -> BigInt,
        batch_seq -> BigInt,
        failed_at -> BigInt,
    }
}

table! {
    account_nonces (service_id, nonce) {
        service_id -> Text,
        nonce -> BigInt,
        withdrawal_seq -> Nullable<BigInt>,
        generation -> Nullable<Integer>,
        assigned_at -> BigInt,
        note -> Nullable<Text>,
        foreign_hash -> Nullable<Binary>,
        outcome -> Nullable<Text>,
        pool_withdrawal_id -> Nullable<Text>,
        undecided -> Bool,
        mined_hash -> Nullable<Binary>,
        block_number -> Nullable<BigInt>,
        gas_used -> Nullable<BigInt>,
        gas_price -> Nullable<BigInt>,
        logs -> Nullable<Text>,
    }
}

table! {
    signed_transactions (service_id, nonce, position) {
        service_id -> Text,
        nonce -> BigInt,
        position -> Integer,
        hash -> Binary,
        bytes -> Binary,
        max_fee -> BigInt,
        tip -> BigInt,
        is_filler -> Bool,
        signed_at -> BigInt,
        sent_at -> Nullable<BigInt>,
        last_error -> Nullable<Text>,
        adopted -> Bool,
    }
}

joinable!(withdrawals -> batches (batch_seq));

allow_tables_to_appear_in_same_query!(withdrawals, account_nonces, signed_transactions);
allow_tables_to_appear_in_same_query!(withdrawals, batches);
allow_tables_to_appear_in_same_query!(withdrawals, lanes);
allow_tables_to_appear_in_same_query!(account_nonces, lanes);
