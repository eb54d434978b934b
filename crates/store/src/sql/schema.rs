//! The definitions of the tables for Diesel's query builder.
//!
//! The migrations define the schema; a test compares these definitions with the migrated databases.

use diesel::{allow_tables_to_appear_in_same_query, joinable, table};

table! {
    services (service_id) {
        service_id -> Text,
        last_created_at -> BigInt,
        added -> BigInt,
    }
}

table! {
    ledger (id) {
        id -> Integer,
        kind -> Text,
        identity -> Text,
        name -> Text,
        recorded_at -> BigInt,
        highest_block -> Nullable<BigInt>,
    }
}

table! {
    instances (instance_id) {
        instance_id -> Text,
        name -> Nullable<Text>,
        expiry_1 -> BigInt,
        expiry_2 -> BigInt,
        ledger_id -> Nullable<Integer>,
        renewals -> BigInt,
        paused -> Bool,
        draining -> Bool,
        settings -> Nullable<Text>,
    }
}

table! {
    database_state (id) {
        id -> Integer,
        server -> Nullable<Text>,
        timeline -> Nullable<BigInt>,
        synchronous -> Bool,
        registrations -> BigInt,
        restored_at -> Nullable<BigInt>,
        restored_reason -> Nullable<Text>,
        restored_seq -> Nullable<BigInt>,
        retention_at -> Nullable<BigInt>,
        paused_at -> Nullable<BigInt>,
        scheduling -> Nullable<Text>,
    }
}

table! {
    service_id_claims (service_id) {
        service_id -> Text,
        claimant -> Nullable<Text>,
        epoch -> BigInt,
        paused_at -> Nullable<BigInt>,
        states_differ_at -> Nullable<BigInt>,
    }
}

table! {
    intake_lists (id) {
        id -> BigInt,
        service_id -> Text,
        list -> Binary,
        label -> Nullable<Text>,
        error -> Nullable<Text>,
        refused_at -> Nullable<BigInt>,
    }
}

table! {
    samples (started_at) {
        started_at -> BigInt,
        attempts -> BigInt,
        committed -> BigInt,
        invalid -> BigInt,
        open -> BigInt,
        oldest -> BigInt,
    }
}

table! {
    new_services (service_id) {
        service_id -> Text,
        signer -> Binary,
    }
}

table! {
    client_batches (batch_seq) {
        batch_seq -> BigInt,
        client -> Text,
    }
}

table! {
    service_histories (service_id) {
        service_id -> Text,
        is_known -> Nullable<Bool>,
    }
}

table! {
    past_transactions (transaction_key) {
        transaction_key -> Binary,
    }
}

table! {
    declared_new_batches (batch_seq) {
        batch_seq -> BigInt,
    }
}

table! {
    batches (seq) {
        seq -> BigInt,
        service_id -> Text,
        batch_id -> Binary,
        created_at -> BigInt,
        ended_at -> Nullable<BigInt>,
        dlt_status -> Nullable<Text>,
        attempts -> Integer,
        submitted_at -> Nullable<BigInt>,
        checked_at -> Nullable<BigInt>,
        last_error -> Nullable<Text>,
        label -> Nullable<Text>,
        trace -> Nullable<Text>,
    }
}

table! {
    batch_payloads (batch_seq) {
        batch_seq -> BigInt,
        declared_access -> Nullable<Binary>,
        serialized_batch -> Binary,
        deadline -> Nullable<Text>,
    }
}

table! {
    transactions (batch_seq, position) {
        batch_seq -> BigInt,
        position -> Integer,
        transaction_id -> Binary,
    }
}

table! {
    transaction_receipts (batch_seq, position) {
        batch_seq -> BigInt,
        position -> Integer,
        transaction_id -> Nullable<Binary>,
        error_message -> Text,
        error_data -> Binary,
    }
}

table! {
    commits_after_invalid (batch_seq) {
        batch_seq -> BigInt,
        reported_at -> BigInt,
        source -> Text,
    }
}

table! {
    submission_attempts (batch_seq, attempt) {
        batch_seq -> BigInt,
        attempt -> Integer,
        submitted_at -> Nullable<BigInt>,
        ended_at -> BigInt,
        outcome -> Text,
        error -> Nullable<Text>,
        next_try_at -> Nullable<BigInt>,
    }
}

table! {
    lanes (service_id, lane) {
        service_id -> Text,
        lane -> Integer,
        epoch -> BigInt,
        ended -> BigInt,
        last_committed_seq -> Nullable<BigInt>,
        batch_seq -> Nullable<BigInt>,
        batch_id -> Nullable<Binary>,
        created_at -> Nullable<BigInt>,
        position -> Nullable<BigInt>,
        blocker_seq -> Nullable<BigInt>,
        submitted -> Bool,
        dlt_status -> Nullable<Text>,
        commit_proven -> Bool,
        earlier_may_arrive -> Bool,
        invalid_reported -> Bool,
        attempts -> Integer,
        submitted_at -> Nullable<BigInt>,
        since -> Nullable<BigInt>,
        checked_at -> Nullable<BigInt>,
        next_try_at -> Nullable<BigInt>,
        delays -> Integer,
        delayed_since -> Nullable<BigInt>,
        refusals -> Integer,
        not_accepted -> Integer,
        last_error -> Nullable<Text>,
        held_at -> Nullable<BigInt>,
        held_reason -> Nullable<Text>,
        held_until_decision -> Bool,
        busy -> Bool,
        pool_parked -> Bool,
        by_pool -> Bool,
    }
}

table! {
    operator_actions (id) {
        id -> BigInt,
        acted_at -> BigInt,
        operator -> Text,
        source -> Text,
        instance -> Nullable<Text>,
        verb -> Text,
        target -> Text,
        service_id -> Nullable<Text>,
        batch_id -> Nullable<Binary>,
        attempt -> Nullable<BigInt>,
        target_instance -> Nullable<Text>,
        reason -> Nullable<Text>,
        state_before -> Text,
        state_after -> Text,
        target_id -> Nullable<Text>,
    }
}

table! {
    waiting_holds (batch_seq) {
        batch_seq -> BigInt,
        held_at -> BigInt,
        held_reason -> Text,
        cause -> Text,
    }
}

table! {
    waiting_batches (batch_seq) {
        batch_seq -> BigInt,
        service_id -> Text,
        position -> Nullable<BigInt>,
        blocker_seq -> Nullable<BigInt>,
        depends_on_blocker -> Bool,
    }
}

table! {
    declared_addresses (service_id, address, kind, position) {
        service_id -> Text,
        address -> Text,
        kind -> Integer,
        position -> BigInt,
        batch_seq -> BigInt,
    }
}

table! {
    address_lengths (service_id, length) {
        service_id -> Text,
        length -> Integer,
        since -> BigInt,
    }
}

table! {
    missing_transactions (transaction_id, batch_seq) {
        transaction_id -> Binary,
        batch_seq -> BigInt,
        service_id -> Text,
        since -> BigInt,
        asked_at -> BigInt,
        found_at -> Nullable<BigInt>,
        overdue -> Bool,
        invalid_seq -> Nullable<BigInt>,
        signer -> Binary,
    }
}

table! {
    transaction_lookups (service_id, signer, transaction_id) {
        service_id -> Text,
        signer -> Binary,
        transaction_id -> Binary,
        since -> BigInt,
        lookups -> BigInt,
        next_lookup_at -> BigInt,
    }
}

table! {
    changed_blockers (batch_seq) {
        batch_seq -> BigInt,
        changed_at -> BigInt,
    }
}

table! {
    halts (batch_seq) {
        batch_seq -> BigInt,
        service_id -> Text,
        position -> BigInt,
        since -> BigInt,
        ends_until -> Nullable<BigInt>,
        origin -> Text,
        positioned -> Bool,
    }
}

table! {
    event_groups (seq) {
        seq -> BigInt,
        xid -> Nullable<BigInt>,
        at -> BigInt,
        instance -> Nullable<Text>,
        batch_seqs -> Binary,
    }
}

table! {
    batch_events (batch_seq, group_seq, position) {
        batch_seq -> BigInt,
        group_seq -> BigInt,
        at -> BigInt,
        position -> Integer,
        attempt -> Integer,
        kind -> Integer,
        state -> Integer,
        detail -> Nullable<Text>,
    }
}

table! {
    event_feed (id) {
        id -> Integer,
        generation -> BigInt,
        removed_seq -> BigInt,
        removed_xid -> BigInt,
    }
}

table! {
    webhooks (id) {
        id -> BigInt,
        url -> Text,
        secret -> Binary,
        services -> Text,
        kinds -> Text,
        created_at -> BigInt,
        cursor -> Text,
        lease -> BigInt,
        leased_until -> BigInt,
        attempts -> Integer,
        next_try_at -> BigInt,
        last_error -> Nullable<Text>,
        disabled_at -> Nullable<BigInt>,
        missed_at -> Nullable<BigInt>,
        paused_at -> Nullable<BigInt>,
        previous_secret -> Nullable<Binary>,
        previous_secret_until -> Nullable<BigInt>,
    }
}

table! {
    failed_deliveries (id) {
        id -> BigInt,
        webhook_id -> BigInt,
        message_id -> Text,
        body -> Text,
        attempts -> Integer,
        error -> Text,
        failed_at -> BigInt,
        again -> Bool,
    }
}

table! {
    tokens (token_id) {
        token_id -> Text,
        name -> Text,
        secret_hash -> Binary,
        scopes -> Text,
        services -> Text,
        created_at -> BigInt,
        expires_at -> Nullable<BigInt>,
        last_used_at -> Nullable<BigInt>,
        revoked_at -> Nullable<BigInt>,
        may_send -> Text,
    }
}

joinable!(batch_payloads -> batches (batch_seq));
joinable!(transactions -> batches (batch_seq));
joinable!(transaction_receipts -> batches (batch_seq));
joinable!(commits_after_invalid -> batches (batch_seq));
joinable!(submission_attempts -> batches (batch_seq));
joinable!(waiting_holds -> batches (batch_seq));
joinable!(waiting_batches -> batches (batch_seq));
joinable!(missing_transactions -> batches (batch_seq));
joinable!(changed_blockers -> batches (batch_seq));
joinable!(halts -> batches (batch_seq));
joinable!(lanes -> services (service_id));
joinable!(batch_events -> event_groups (group_seq));
joinable!(failed_deliveries -> webhooks (webhook_id));

allow_tables_to_appear_in_same_query!(
    services,
    ledger,
    instances,
    service_id_claims,
    database_state,
    intake_lists,
    samples,
    new_services,
    client_batches,
    service_histories,
    past_transactions,
    declared_new_batches,
    batches,
    batch_payloads,
    transactions,
    transaction_receipts,
    commits_after_invalid,
    submission_attempts,
    lanes,
    waiting_holds,
    waiting_batches,
    declared_addresses,
    address_lengths,
    missing_transactions,
    transaction_lookups,
    changed_blockers,
    halts,
    event_groups,
    batch_events,
    webhooks,
    failed_deliveries,
    tokens,
);
