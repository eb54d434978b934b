//! Withdrawals and transactions: what has an id and a state at a server, and is cancelled and retried.

use std::{process::ExitCode, thread, time::Duration};

use grid_batch_client::ClientError;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::{Value, json};

use super::{Retries, Server, entries, field, joined, print_line};
use crate::commands::{
    arguments::{Asked, Output, RemoteArgs},
    exit::Exit,
    failure::Failure,
    key,
    print::{print_stderr, print_stdout},
};

/// The digits of an id. The ids of its batches begin with it.
const ID_LENGTH: usize = 32;

pub(in crate::commands) const WITHDRAWALS: Resource =
    Resource { name: "withdrawal", path: "/withdrawals", done: "withdrawn" };

pub(in crate::commands) const TRANSACTIONS: Resource =
    Resource { name: "transaction", path: "/v1/transactions", done: "executed" };

/// Withdrawals or transactions, as a server has them.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Resource {
    /// What one of them is called.
    name: &'static str,
    /// The path of all of them.
    pub(in crate::commands) path: &'static str,
    /// The state of one that has done what it should.
    done: &'static str,
}

impl Resource {
    /// The name of a list in the output of a command.
    pub(in crate::commands) fn list_name(self) -> String {
        format!("{}s", self.name)
    }

    /// Prints those that these filters select, up to `limit`, as JSON or with `print`.
    pub(in crate::commands) fn list(
        self,
        remote: &RemoteArgs,
        filters: &[(&str, &str)],
        limit: u32,
        print: impl Fn(&[Value]),
    ) -> Result<ExitCode, Failure> {
        let server = Server::of(&remote.server)?;
        let (found, has_more) = server.read_list(self.path, filters, limit as usize)?;
        Ok(remote.output.show_list(&self.list_name(), &found, || {
            if found.is_empty() {
                return print_stdout(format_args!("No {} matches.", self.name));
            }
            print(&found);
            if has_more {
                print_stdout(format_args!("There are more; --limit is {limit}."));
            }
        }))
    }

    pub(in crate::commands) fn read(
        self,
        server: &Server,
        name: &ItemIdPrefix,
    ) -> Result<Value, ClientError> {
        server.client.get(&self.path_named(server, name)?, &[])
    }

    /// The path of one that is named. First digits are looked up among the batches.
    fn path_named(self, server: &Server, name: &ItemIdPrefix) -> Result<String, ClientError> {
        let mut id = name.to_string();
        if id.len() < ID_LENGTH {
            id = field(&server.client.batch(name, None)?, "id");
        }
        Ok(self.path_of(id.get(..ID_LENGTH).unwrap_or(&id)))
    }

    fn path_of(self, id: &str) -> String {
        format!("{}/{id}", self.path)
    }

    /// Requests an action, such as `cancel`, for each that is named, and reports each.
    pub(in crate::commands) fn act_on_each(
        self,
        named: &[ItemIdPrefix],
        action: &str,
        server: &Server,
        asked: &Asked,
        output: &Output,
    ) -> ExitCode {
        let (mut done, mut refused) = (Vec::<Value>::new(), Vec::<(&ItemIdPrefix, Failure)>::new());
        for name in named {
            match self.act(name, action, server, asked) {
                Ok(changed) => done.push(changed),
                Err(error) => refused.push((name, Server::failed(error))),
            }
        }
        let refusal = |(name, failure): &(&ItemIdPrefix, Failure)| json!({"id": name.to_string(), "reason": failure.to_string()});
        let refusals: Vec<Value> = refused.iter().map(refusal).collect();
        let dry_run = asked.is_dry_run();
        let json = json!({ "dry_run": dry_run, (self.list_name()): done, "refused": refusals });
        output.show(&json, || {
            let would = if dry_run { "nothing changed: " } else { "" };
            for changed in &done {
                print_stdout(format_args!("{would}{}", id_and_state(changed)));
            }
            for (name, failure) in &refused {
                print_stderr(format_args!("grid-batch: {name}: {failure}"));
            }
        });
        refused.first().map_or(ExitCode::SUCCESS, |(_, failure)| failure.exit_code())
    }

    fn act(
        self,
        name: &ItemIdPrefix,
        action: &str,
        server: &Server,
        asked: &Asked,
    ) -> Result<Value, ClientError> {
        let path = self.path_named(server, name)?;
        server.act(asked, &format!("{path}/{action}"), &[], json!({}))
    }

    /// Why it could not be requested. Without an answer it may be stored, so this prints what to give to repeat the
    /// request.
    pub(in crate::commands) fn not_requested(self, error: ClientError, repeat: &str) -> Failure {
        let failure = Failure::from(error);
        if failure.is_unreachable() {
            let name = self.name;
            print_stderr(format_args!(
                "grid-batch: the {name} may be stored; to repeat the request, give {repeat}"
            ));
        }
        failure
    }

    /// Reads what was stored until it has ended or the time has passed.
    pub(in crate::commands) fn wait(
        self,
        server: &Server,
        stored: Value,
        retries: Retries,
    ) -> Result<Value, Failure> {
        const PAUSE: Duration = Duration::from_millis(500);
        let path = self.path_of(&field(&stored, "id"));
        let mut latest = stored;
        while latest["ended_at"].is_null() && !retries.left().is_zero() {
            thread::sleep(PAUSE.min(retries.left()));
            latest = retries.run(|| server.client.get(&path, &[]))?;
        }
        Ok(latest)
    }

    /// The result of a command that has waited for it.
    pub(in crate::commands) fn exit_of(self, waited_for: &Value) -> Exit {
        match field(waited_for, "state").as_str() {
            state if state == self.done => Exit::Done,
            "failed" => Exit::Failed,
            _ => Exit::TimedOut,
        }
    }

    /// Prints each transaction that was signed for it.
    pub(in crate::commands) fn print_signed(self, shown: &Value) {
        for signed in entries(shown, "transactions") {
            print_line("sent as", &self.signed_text(signed));
        }
    }

    fn signed_text(self, signed: &Value) -> String {
        let (hash, nonce) = (field(signed, "hash"), field(signed, "nonce"));
        let fee = field(signed, "max_fee_gwei");
        let mut text = format!("{hash} with the nonce {nonce}, at most {fee} gwei");
        if signed["cancels"].as_bool().unwrap_or(false) {
            text.push_str(&format!("; it cancels the {}", self.name));
        }
        let error = field(signed, "last_error");
        if !error.is_empty() {
            text.push_str(&format!("; {error}"));
        }
        text
    }
}

/// The state, and why.
pub(in crate::commands) fn state_and_reason(shown: &Value) -> String {
    joined(shown, &["state", "fail_reason", "waits_for"], ": ")
}

pub(in crate::commands) fn id_and_state(shown: &Value) -> String {
    format!("{} {}", field(shown, "id"), state_and_reason(shown))
}

/// The fields that have a value.
pub(in crate::commands) fn given_fields(fields: Value) -> Value {
    match fields {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// The key of a request for which none is given, so that its repetition has one, too.
pub(in crate::commands) fn random_idempotency_key() -> Result<String, Failure> {
    let bytes = key::random_bytes().map_err(Failure::new)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_follows_the_state() {
        let exit = |state: &str| TRANSACTIONS.exit_of(&json!({ "state": state }));
        assert_eq!(exit("executed"), Exit::Done);
        assert_eq!(exit("failed"), Exit::Failed);
        assert_eq!(exit("parked"), Exit::TimedOut);
        assert_eq!(WITHDRAWALS.exit_of(&json!({"state": "withdrawn"})), Exit::Done);
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        let fields = json!({"a": null, "b": false, "c": [null]});
        assert_eq!(given_fields(fields), json!({"b": false, "c": [null]}));
    }
}
