//! The plans of operators' queries, which are built with Diesel's query builder.

#[cfg(feature = "withdrawals")]
mod pages;
#[cfg(feature = "withdrawals")]
mod tests;

use std::cell::RefCell;

use diesel::{
    QueryResult,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::Untyped,
};

use super::{PlanRow, SqlitePlanRow};
use crate::sql::{
    Connection, Dialect, StoreError,
    any_connection::{MultiBackend, load_qualified},
};

/// The name of a query, and the lines of its plan.
type QueryPlan = (&'static str, Vec<String>);

thread_local! {
    static PLANS: RefCell<Option<Vec<QueryPlan>>> = const { RefCell::new(None) };
}

/// Records the plan of a query that is about to run, while a test collects them.
pub(crate) fn record_plan(
    connection: &mut Connection,
    name: &'static str,
    query: &impl QueryFragment<MultiBackend>,
) -> Result<(), StoreError> {
    if PLANS.with_borrow(Option::is_none) {
        return Ok(());
    }
    let plan = match connection.dialect() {
        Dialect::Postgres => {
            let explain = Explain { prefix: "explain ", query };
            let rows: Vec<PlanRow> = load_qualified(connection, explain)?;
            rows.into_iter().map(|row| row.line).collect()
        }
        Dialect::Sqlite => {
            let explain = Explain { prefix: "explain query plan ", query };
            let rows: Vec<SqlitePlanRow> = load_qualified(connection, explain)?;
            rows.into_iter().map(|row| row.detail).collect()
        }
    };
    PLANS.with_borrow_mut(|plans| {
        if let Some(plans) = plans {
            plans.push((name, plan));
        }
    });
    Ok(())
}

/// The plans of the queries that `run` runs.
pub(super) fn plans_of(run: impl FnOnce()) -> Vec<QueryPlan> {
    PLANS.set(Some(Vec::new()));
    run();
    PLANS.take().unwrap_or_default()
}

struct Explain<'q, Q> {
    prefix: &'static str,
    query: &'q Q,
}

impl<Q> Query for Explain<'_, Q> {
    type SqlType = Untyped;
}
impl<Q> QueryId for Explain<'_, Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}
impl<Q: QueryFragment<MultiBackend>> QueryFragment<MultiBackend> for Explain<'_, Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        out.push_sql(self.prefix);
        self.query.walk_ast(out)
    }
}
