//! Plain inserts into the tables of the server.

use diesel::{
    ExpressionMethods, PgConnection, RunQueryDsl, SqliteConnection, insert_into, sql_query,
    sql_types::{Array, BigInt, Binary, Text},
    table,
};

use crate::requests::Request;

table! {
    batches (seq) {
        seq -> BigInt,
        service_id -> Text,
        batch_id -> Binary,
        created_at -> BigInt,
    }
}
table! {
    batch_payloads (batch_seq) {
        batch_seq -> BigInt,
        serialized_batch -> Binary,
    }
}
table! {
    transactions (batch_seq, position) {
        batch_seq -> BigInt,
        position -> Integer,
        transaction_id -> Binary,
    }
}

/// Later than every batch of the server.
const CREATED_AT: i64 = 1 << 60;

/// One statement for each table, as a server inserts a group.
const INSERT: &str = "with b as (insert into batches (service_id, batch_id, created_at) \
     select s, b, c from unnest($1, $2, $3) x(s, b, c) returning seq, batch_id), \
     p as (insert into batch_payloads (batch_seq, serialized_batch) \
     select b.seq, x.body from b join unnest($2, $4) x(id, body) on x.id = b.batch_id) \
     insert into transactions (batch_seq, position, transaction_id) select seq, 0, batch_id from b";

pub(super) fn insert_postgres(connection: &mut PgConnection, first: i64, group: &[Request]) {
    let services: Vec<&str> = group.iter().map(|request| &*request.service).collect();
    let ids: Vec<Vec<u8>> = group.iter().map(id).collect();
    let times: Vec<i64> = (CREATED_AT + first..).take(group.len()).collect();
    let bodies: Vec<&[u8]> = group.iter().map(|request| &*request.body).collect();
    sql_query(INSERT)
        .bind::<Array<Text>, _>(services)
        .bind::<Array<Binary>, _>(ids)
        .bind::<Array<BigInt>, _>(times)
        .bind::<Array<Binary>, _>(bodies)
        .execute(connection)
        .unwrap();
}

pub(super) fn insert_sqlite(connection: &mut SqliteConnection, first: i64, group: &[Request]) {
    let inserted = connection.immediate_transaction(|connection| {
        for (seq, request) in (CREATED_AT + first..).zip(group) {
            let id = id(request);
            insert_into(batches::table)
                .values((
                    batches::seq.eq(seq),
                    batches::service_id.eq(&request.service),
                    batches::batch_id.eq(&id),
                    batches::created_at.eq(seq),
                ))
                .execute(connection)?;
            insert_into(batch_payloads::table)
                .values((
                    batch_payloads::batch_seq.eq(seq),
                    batch_payloads::serialized_batch.eq(&request.body),
                ))
                .execute(connection)?;
            insert_into(transactions::table)
                .values((
                    transactions::batch_seq.eq(seq),
                    transactions::position.eq(0),
                    transactions::transaction_id.eq(&id),
                ))
                .execute(connection)?;
        }
        diesel::QueryResult::Ok(())
    });
    inserted.unwrap();
}

/// The id of the only batch of a request.
fn id(request: &Request) -> Vec<u8> {
    let digits = request.batch_ids[0].as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}
