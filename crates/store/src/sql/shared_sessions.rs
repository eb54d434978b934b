//! Detects a connection pooler that gives a session of the server to another client after each transaction or
//! statement. Settings and prepared statements belong to a session, so this program cannot work behind such a pooler.

use diesel::{
    Connection, QueryResult, RunQueryDsl, connection::SimpleConnection, pg::PgConnection, sql_query,
};
use log::debug;

use super::{StoreError, columns::Tuple};

/// On how many connections a transaction is open at the same time. A pooler uses free sessions before it opens more.
/// With two connections, one of them gets the session that the first connection had, whether the pooler prefers the
/// most or the least recently used session.
const OPEN_TRANSACTIONS: usize = 2;

/// Fails if connections to this URL share sessions. `first` is one of them.
///
/// If connections have their own sessions, each always has the same one, and no two have the same. No settings are
/// changed meanwhile, because they would remain in the sessions of other clients.
pub(super) fn expect_own_session(first: &mut PgConnection, url: &str) -> Result<(), StoreError> {
    match has_own_session(first, url) {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::SharedSessions),
        Err(Failed::Query) if refuses_transactions(url) => Err(StoreError::SharedSessions),
        // The database refuses connections or has few left. The next use of it will report the error.
        Err(Failed::Connect | Failed::Query) => {
            debug!("cannot check whether connections share sessions");
            Ok(())
        }
    }
}

enum Failed {
    Connect,
    Query,
}

fn has_own_session(first: &mut PgConnection, url: &str) -> Result<bool, Failed> {
    let own = session_in_transaction(first).map_err(|_| Failed::Query)?;
    let mut others = Vec::new();
    for _ in 0..OPEN_TRANSACTIONS {
        let mut other = PgConnection::establish(url).map_err(|_| Failed::Connect)?;
        other.batch_execute("begin").map_err(|_| Failed::Query)?;
        let other_session = session(&mut other).map_err(|_| Failed::Query)?;
        others.push(other);
        // The first connection would wait if the pooler has no other session.
        if other_session == own || session_in_transaction(first).map_err(|_| Failed::Query)? != own
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A pooler in statement mode closes a connection that begins a transaction.
fn refuses_transactions(url: &str) -> bool {
    PgConnection::establish(url).is_ok_and(|mut connection| {
        connection.batch_execute("select 1").is_ok() && connection.batch_execute("begin").is_err()
    })
}

fn session_in_transaction(connection: &mut PgConnection) -> QueryResult<i32> {
    connection.batch_execute("begin")?;
    let session = session(connection)?;
    connection.batch_execute("commit")?;
    Ok(session)
}

/// The number of the server's process. The query is prepared without a name.
fn session(connection: &mut PgConnection) -> QueryResult<i32> {
    let query = sql_query("select pg_backend_pid() as process");
    Ok(query.get_result::<Tuple<(i32,)>>(connection)?.0.0)
}
