//! Compares the definitions of the tables with the migrated databases.

use std::collections::BTreeMap;

use diesel::{
    Column, Expression, RunQueryDsl, Table, sql_query,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text},
};
use grid_batch_test_postgres::TestDatabase;

#[cfg(feature = "withdrawals")]
use crate::withdrawals::schema::*;
use crate::{
    StoreOptions,
    sql::{Store, connection::Session, result_row, schema::*},
};

/// The columns of each table, in order.
type Schema = BTreeMap<String, Vec<ColumnDefinition>>;

/// One column: its name, the name of its type, and whether it can be null.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ColumnDefinition {
    name: String,
    sql_type: String,
    nullable: bool,
}

/// The names that each database has for one of Diesel's types.
trait SqlTypeName {
    const POSTGRES: &'static str;
    const SQLITE: &'static str;
    const NULLABLE: bool = false;
}

macro_rules! sql_type_names {
    ($($sql_type:ty: $postgres:literal, $sqlite:literal;)*) => {
        $(impl SqlTypeName for $sql_type {
            const POSTGRES: &'static str = $postgres;
            const SQLITE: &'static str = $sqlite;
        })*
    };
}

sql_type_names! {
    BigInt: "bigint", "INTEGER";
    Binary: "bytea", "BLOB";
    Bool: "boolean", "INTEGER";
    Integer: "integer", "INTEGER";
    Text: "text", "TEXT";
}

impl<T> SqlTypeName for Nullable<T>
where
    T: SqlTypeName + diesel::sql_types::SqlType<IsNull = diesel::sql_types::is_nullable::NotNull>,
{
    const POSTGRES: &'static str = T::POSTGRES;
    const SQLITE: &'static str = T::SQLITE;
    const NULLABLE: bool = true;
}

/// A tuple of columns, as `Table::all_columns` returns it.
trait ColumnTuple {
    fn definitions(is_postgres: bool) -> Vec<ColumnDefinition>;
}

macro_rules! column_tuples {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<$first, $($rest),*> ColumnTuple for ($first, $($rest,)*)
        where
            $first: Column + Expression<SqlType: SqlTypeName>,
            $($rest: Column + Expression<SqlType: SqlTypeName>),*
        {
            fn definitions(is_postgres: bool) -> Vec<ColumnDefinition> {
                vec![definition::<$first>(is_postgres), $(definition::<$rest>(is_postgres)),*]
            }
        }
        column_tuples!($($rest)*);
    };
}
column_tuples!(A B C D E F G H I J K L M N O P Q R S T U V W X Y Z AA AB AC AD AE AF);

fn definition<C: Column + Expression<SqlType: SqlTypeName>>(is_postgres: bool) -> ColumnDefinition {
    let sql_type = if is_postgres { C::SqlType::POSTGRES } else { C::SqlType::SQLITE };
    ColumnDefinition {
        name: C::NAME.to_owned(),
        sql_type: sql_type.to_owned(),
        nullable: C::SqlType::NULLABLE,
    }
}

fn columns_of<T: Table<AllColumns: ColumnTuple>>(
    _table: T,
    is_postgres: bool,
) -> Vec<ColumnDefinition> {
    T::AllColumns::definitions(is_postgres)
}

/// The schema that the modules `schema` define.
fn defined(is_postgres: bool) -> Schema {
    macro_rules! tables {
        ($($name:literal: $table:ident,)*) => {
            [$(($name.to_owned(), columns_of($table::table, is_postgres))),*].into()
        };
    }
    let tables: Schema = tables! {
        "services": services,
        "ledger": ledger,
        "instances": instances,
        "intake_lists": intake_lists,
        "database_state": database_state,
        "samples": samples,
        "service_id_claims": service_id_claims,
        "new_services": new_services,
        "client_batches": client_batches,
        "service_histories": service_histories,
        "past_transactions": past_transactions,
        "declared_new_batches": declared_new_batches,
        "batches": batches,
        "batch_payloads": batch_payloads,
        "transactions": transactions,
        "transaction_receipts": transaction_receipts,
        "commits_after_invalid": commits_after_invalid,
        "submission_attempts": submission_attempts,
        "lanes": lanes,
        "operator_actions": operator_actions,
        "waiting_holds": waiting_holds,
        "waiting_batches": waiting_batches,
        "declared_addresses": declared_addresses,
        "address_lengths": address_lengths,
        "missing_transactions": missing_transactions,
        "transaction_lookups": transaction_lookups,
        "changed_blockers": changed_blockers,
        "halts": halts,
        "event_groups": event_groups,
        "batch_events": batch_events,
        "event_feed": event_feed,
        "webhooks": webhooks,
        "failed_deliveries": failed_deliveries,
        "tokens": tokens,
    };
    #[cfg(feature = "withdrawals")]
    let tables = {
        let others: Schema = tables! {
            "rewards": rewards,
            "withdrawals": withdrawals,
            "account_nonces": account_nonces,
            "payment_sums": payment_sums,
            "last_failures": last_failures,
            "signed_transactions": signed_transactions,
        };
        tables.into_iter().chain(others).collect()
    };
    tables
}

result_row! {
    struct ColumnRow {
        table_name: String,
        column_name: String,
        data_type: String,
        nullable: bool,
    }
}

/// The schema that the migrations created, without the table in which they are recorded.
fn migrated(url: &str) -> Schema {
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    let rows: Vec<ColumnRow> = match &mut store.pools.read().unwrap().session {
        Session::Postgres(inner) => sql_query(
            "select table_name::text, column_name::text, data_type::text,
                 is_nullable = 'YES' as nullable
             from information_schema.columns join information_schema.tables
                 using (table_schema, table_name)
             where table_schema = current_schema() and table_type = 'BASE TABLE'
                 and table_name <> 'grid_batch_migrations'
             order by table_name, ordinal_position",
        )
        .load(&mut ***inner)
        .unwrap(),
        // table_xinfo lists generated columns too. A primary key is never null.
        Session::Sqlite(inner) => sql_query(
            "select t.name as table_name, c.name as column_name, c.type as data_type,
                 c.\"notnull\" = 0 and c.pk = 0 as nullable
             from pragma_table_list t join pragma_table_xinfo(t.name) c
             where t.schema = 'main' and t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\'
                 and t.name <> 'grid_batch_migrations'
             order by t.name, c.cid",
        )
        .load(&mut ***inner)
        .unwrap(),
    };
    let mut schema = Schema::new();
    for row in rows {
        schema.entry(row.table_name).or_default().push(ColumnDefinition {
            name: row.column_name,
            sql_type: row.data_type,
            nullable: row.nullable,
        });
    }
    schema
}

/// Compares table by table, so that differences are easy to find.
fn assert_same(defined: &Schema, migrated: &Schema) {
    let names = |schema: &Schema| schema.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(defined), names(migrated));
    for (table, columns) in defined {
        assert_eq!(columns, &migrated[table], "table {table}");
    }
}

#[test]
fn schema_matches_the_migrations_on_postgres() {
    assert_same(&defined(true), &migrated(TestDatabase::create().url()));
}

#[test]
fn schema_matches_the_migrations_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/schema.db", dir.path().display());
    assert_same(&defined(false), &migrated(&url));
}
