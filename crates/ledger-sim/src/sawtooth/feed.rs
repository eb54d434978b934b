//! The frames of Sawtooth's event websocket: blocks, without batch ids.

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{Hex, ItemId};
use serde::{Deserialize, Serialize};

use crate::events::{CommitEvent, EventFrames, Events, EventsOf, Subscription};

/// The previous block of the first block.
const NO_BLOCK: &str = "0000000000000000";
const ADDRESS_LENGTH: usize = 70;

/// The blocks for one client, after it has subscribed.
#[derive(Debug, Default)]
struct BlockFeed {
    prefixes: Option<Vec<String>>,
    last_block: Option<String>,
}

pub(super) fn subscribe(events: &Events) -> Subscription {
    let last_block = events.sent().last().map(block_id);
    Subscription {
        of: EventsOf::Ledger,
        backlog: Vec::new(),
        next: events.sent().len(),
        feed: Box::new(BlockFeed { prefixes: None, last_block }),
    }
}

#[derive(Deserialize)]
struct Command {
    action: String,
    #[serde(default)]
    address_prefixes: Vec<String>,
}

impl EventFrames for BlockFeed {
    fn frames(&mut self, position: usize, event: &CommitEvent) -> Vec<String> {
        let previous = self.last_block.replace(block_id(event));
        let frame = |prefixes: &Vec<String>| frame(position, event, previous.as_deref(), prefixes);
        self.prefixes.as_ref().map(frame).into_iter().collect()
    }

    fn disconnected(&self) -> Vec<String> {
        vec![warning("Validator unavailable")]
    }

    fn receive(&mut self, text: &str, events: &Events) -> Vec<String> {
        let Ok(command) = serde_json::from_str::<Command>(text) else {
            return vec![error("Invalid input")];
        };
        match &*command.action {
            "subscribe" => {
                let latest = latest(events, &command.address_prefixes);
                self.prefixes = Some(command.address_prefixes);
                latest.into_iter().collect()
            }
            "unsubscribe" => {
                self.prefixes = None;
                Vec::new()
            }
            other => vec![error(&format!("Unknown action \"{other}\""))],
        }
    }

    fn may_end_with_client(&self) -> bool {
        true
    }
}

/// The newest block when a client subscribes.
fn latest(events: &Events, prefixes: &[String]) -> Option<String> {
    let (last, before) = events.sent().split_last()?;
    let previous = before.last().map(block_id);
    Some(frame(before.len(), last, previous.as_deref(), prefixes))
}

#[derive(Serialize)]
struct Frame<'a> {
    block_id: String,
    block_num: String,
    previous_block_id: &'a str,
    state_changes: Vec<StateChange>,
}

#[derive(Serialize)]
struct StateChange {
    address: String,
    value: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct WarningFrame<'a> {
    warning: &'a str,
}

#[derive(Serialize)]
struct ErrorFrame<'a> {
    error: &'a str,
}

fn frame(
    position: usize,
    event: &CommitEvent,
    previous: Option<&str>,
    prefixes: &[String],
) -> String {
    let is_subscribed = |address: &String| {
        prefixes.is_empty() || prefixes.iter().any(|prefix| address.starts_with(prefix))
    };
    let changes = event.transaction_ids.iter().map(address).filter(is_subscribed);
    let frame = Frame {
        block_id: block_id(event),
        block_num: position.to_string(),
        previous_block_id: previous.unwrap_or(NO_BLOCK),
        state_changes: changes.map(StateChange::at).collect(),
    };
    serde_json::to_string(&frame).unwrap_or_default()
}

fn error(message: &str) -> String {
    serde_json::to_string(&ErrorFrame { error: message }).unwrap_or_default()
}

fn warning(message: &str) -> String {
    serde_json::to_string(&WarningFrame { warning: message }).unwrap_or_default()
}

impl StateChange {
    fn at(address: String) -> Self {
        Self { address, value: BASE64_STANDARD.encode([1]), kind: "SET" }
    }
}

/// A fictitious address that belongs to one transaction.
fn address(id: &ItemId) -> String {
    id.to_string()[..ADDRESS_LENGTH].to_owned()
}

/// A unique id: that of the first transaction with every bit inverted.
fn block_id(event: &CommitEvent) -> String {
    let first = event.transaction_ids.first().copied();
    let bytes = first.map(|id| id.as_bytes().iter().map(|byte| !byte).collect::<Vec<_>>());
    Hex(&bytes.unwrap_or_else(|| vec![0; ItemId::BYTES])).to_string()
}
