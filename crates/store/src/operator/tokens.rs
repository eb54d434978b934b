use std::collections::BTreeSet;

use diesel::prelude::*;
use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken, TokenId, TokenStore};
use grid_batch_core::{BatchResult, Timestamp};
use log::warn;

use crate::{
    action_log::{Logged, logged},
    sql::{
        Connection, Rows, Statement, Store, StoreError,
        rows::{limit, time},
        schema::tokens,
    },
};

impl TokenStore for Store {
    fn create_token(&self, token: &NewToken, request: &OperatorRequest) -> BatchResult<bool> {
        let is_created = logged(self, request, OperatorVerb::CreateToken, None, |connection| {
            if !insert(connection, &TokenRecord::new(token, self.now()))? {
                return Ok(Logged::unchanged(false));
            }
            let effect = ActionEffect::in_words("does not exist", described(token));
            Ok(Logged::changed(true, OperatorTarget::Token(token.id), effect))
        })?;
        Ok(is_created)
    }

    fn tokens(&self, after: Option<TokenId>, count: usize) -> BatchResult<Vec<StoredToken>> {
        let after = after.map_or_else(String::new, |id| id.to_string());
        let query = tokens::table
            .filter(tokens::token_id.gt(after))
            .order_by(tokens::token_id)
            .limit(limit(count))
            .select(TokenRecord::as_select());
        let records: Vec<TokenRecord> = self.pools.read()?.load_query("tokens", query)?;
        let tokens = records.into_iter().map(TokenRecord::into_token);
        Ok(tokens.collect::<Result<_, StoreError>>()?)
    }

    fn revoke_token(
        &self,
        id_or_name: &str,
        request: &OperatorRequest,
    ) -> BatchResult<Option<StoredToken>> {
        let revoked = logged(self, request, OperatorVerb::RevokeToken, None, |connection| {
            let Some(stored) = find_unrevoked(connection, id_or_name)? else {
                return Ok(Logged::unchanged(None));
            };
            if !revoke(connection, stored.token.id, self.now())? {
                return Ok(Logged::unchanged(None));
            }
            let target = OperatorTarget::Token(stored.token.id);
            let effect = ActionEffect::in_words(described(&stored.token), "revoked");
            Ok(Logged::changed(Some(stored), target, effect))
        })?;
        Ok(revoked)
    }

    fn unrevoked_tokens(&self) -> BatchResult<Vec<StoredToken>> {
        let query = tokens::table
            .filter(tokens::revoked_at.is_null())
            .order_by(tokens::name)
            .select(TokenRecord::as_select());
        let records: Vec<TokenRecord> = self.pools.read()?.load_query("unrevoked_tokens", query)?;
        let read = |record: TokenRecord| {
            let id = record.token_id.clone();
            let token = record.into_token();
            token
                .inspect_err(
                    |error| warn!(token:% = id, error:%; "a token cannot be read, and is refused"),
                )
                .ok()
        };
        Ok(records.into_iter().filter_map(read).collect())
    }

    fn note_token_use(&self, ids: &[TokenId]) -> BatchResult<()> {
        let now = self.now().as_micros();
        let ids: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
        let rows = Rows::default()
            .text("token_id", ids.iter().map(String::as_str))
            .long("used_at", ids.iter().map(|_| now));
        Ok(self.pools.write()?.execute_rows(
            "-- note_token_use
             update tokens as t set last_used_at = x.used_at from {x} where t.token_id = x.token_id",
            rows,
        )?)
    }
}

/// The token with this id or, if there is none, with this name.
fn find_unrevoked(
    connection: &mut Connection,
    id_or_name: &str,
) -> Result<Option<StoredToken>, StoreError> {
    let query = tokens::table
        .filter(tokens::revoked_at.is_null())
        .filter(tokens::token_id.eq(id_or_name).or(tokens::name.eq(id_or_name)))
        .order_by(tokens::token_id.eq(id_or_name).desc())
        .limit(1)
        .select(TokenRecord::as_select());
    let records: Vec<TokenRecord> = connection.load_query("token_to_revoke", query)?;
    records.into_iter().next().map(TokenRecord::into_token).transpose()
}

/// Revokes a token. Returns `false` if another transaction has just revoked it.
fn revoke(connection: &mut Connection, id: TokenId, now: Timestamp) -> Result<bool, StoreError> {
    let id = id.to_string();
    let statement = Statement::new(
        "-- revoke_token
         update tokens set revoked_at = ? where revoked_at is null and token_id = ?",
    )
    .long(now.as_micros())
    .text(&id);
    Ok(connection.execute(&statement)? > 0)
}

/// Describes what a token allows.
fn described(token: &NewToken) -> String {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let (name, scopes, services) = (&token.name, scopes.join(", "), token.services.join(" "));
    let sends = match token.may_send.as_slice() {
        [] => String::new(),
        rules => format!(", sends {}", rules.join(" ")),
    };
    let until = token.expires_at.map(|at| format!(" until {}", at.rfc3339())).unwrap_or_default();
    format!("{name}: {scopes} for {services}{sends}{until}")
}

fn insert(connection: &mut Connection, record: &TokenRecord) -> Result<bool, StoreError> {
    let rows = Rows::default()
        .text("token_id", [record.token_id.as_str()])
        .text("name", [record.name.as_str()])
        .bytes("secret_hash", [record.secret_hash.as_slice()])
        .text("scopes", [record.scopes.as_str()])
        .text("service_names", [record.services.as_str()])
        .text("may_send", [record.may_send.as_str()])
        .long("created_at", [record.created_at])
        .optional_long("expires_at", [record.expires_at]);
    let statement = Statement::new(
        "-- insert_token
         insert into tokens (token_id, name, secret_hash, scopes, services, may_send, created_at, expires_at)
         select x.token_id, x.name, x.secret_hash, x.scopes, x.service_names, x.may_send, x.created_at, x.expires_at
         from {x} where true
         on conflict do nothing",
    )
    .rows(rows);
    Ok(connection.execute(&statement)? > 0)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tokens)]
struct TokenRecord {
    token_id: String,
    name: String,
    secret_hash: Vec<u8>,
    scopes: String,
    services: String,
    created_at: i64,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
    revoked_at: Option<i64>,
    may_send: String,
}

impl TokenRecord {
    fn new(token: &NewToken, now: Timestamp) -> Self {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        Self {
            token_id: token.id.to_string(),
            name: token.name.clone(),
            secret_hash: token.secret_hash.to_vec(),
            scopes: scopes.join(" "),
            services: token.services.join(" "),
            created_at: now.as_micros(),
            expires_at: token.expires_at.map(Timestamp::as_micros),
            last_used_at: None,
            revoked_at: None,
            may_send: token.may_send.join(" "),
        }
    }

    fn into_token(self) -> Result<StoredToken, StoreError> {
        let corrupt = |_| StoreError::corrupt("a token whose columns cannot be read");
        let scopes = self.scopes.split(' ').map(str::parse::<AccessScope>);
        let token = NewToken {
            id: self.token_id.parse().map_err(StoreError::corrupt)?,
            name: self.name,
            secret_hash: self.secret_hash.try_into().map_err(corrupt)?,
            scopes: scopes.collect::<Result<_, _>>().map_err(StoreError::corrupt)?,
            services: self.services.split(' ').map(str::to_owned).collect(),
            may_send: self.may_send.split_whitespace().map(str::to_owned).collect(),
            expires_at: time(self.expires_at),
        };
        Ok(StoredToken {
            token,
            created_at: Timestamp::from_micros(self.created_at),
            last_used_at: time(self.last_used_at),
            revoked_at: time(self.revoked_at),
        })
    }
}
