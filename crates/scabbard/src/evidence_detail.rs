//! Describes what is known about a batch, for the operator who must decide about it.

use std::time::Duration;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::queries::ServicePause;
use grid_batch_http::origin;

use crate::{
    absence::AbsenceFacts,
    context::ScabbardContext,
    node_reports::StatusAtNode,
    observed_nodes::{EventSource, ObservedNode},
    state_roots::StateRoots,
};

/// Describes what was observed and what is missing for a proof.
pub(crate) fn detail(
    context: &ScabbardContext,
    service: &ServiceId,
    reports: &[StatusAtNode],
    facts: &AbsenceFacts,
    provable_in: Option<Duration>,
) -> String {
    let mut parts: Vec<String> = reports.iter().map(node_detail).collect();
    parts.push(events_detail(context, service, facts));
    if facts.is_never_accepted {
        parts.push("no node has accepted it".to_owned());
    } else if !facts.is_own {
        parts.push(
            "this process has not sent it; another one may have, and may do so again".to_owned(),
        );
    }
    if facts.peer_is_watched {
        parts.push("events of another node were received without a gap".to_owned());
    }
    match facts.state_roots {
        StateRoots::NotKnown => {}
        StateRoots::Equal => parts.push("the nodes' state roots are equal".to_owned()),
        StateRoots::Differ => parts.push("the nodes' state roots differ at present".to_owned()),
        StateRoots::DifferLastingly => parts.push(ServicePause::DIFFERENT_STATES.to_owned()),
    }
    if !facts.may_arrive_for.is_zero() {
        parts.push(format!(
            "a request that was not answered may still arrive for {} s",
            facts.may_arrive_for.as_secs() + 1
        ));
    }
    if let Some(wait) = provable_in {
        parts.push(format!(
            "it was not applied, and is sent again in {} s if this does not change",
            wait.as_secs() + 1
        ));
    }
    parts.join("; ")
}

fn node_detail(StatusAtNode { node, status }: &StatusAtNode) -> String {
    let place = match node.source {
        EventSource::Node | EventSource::Replay => origin(&node.url),
        EventSource::Peer(_) => format!("{} ({})", origin(&node.url), node.scope),
    };
    match status {
        Ok(LedgerStatus::NotReported) => format!("{place} reports Unknown"),
        Ok(status) => format!("{place} reports {status:?}"),
        Err(error) => format!("{place} gives no status ({error})"),
    }
}

/// Describes what the events of the node to which the batch was sent can show.
fn events_detail(context: &ScabbardContext, service: &ServiceId, facts: &AbsenceFacts) -> String {
    if facts.node_events_are_complete && !facts.node_is_live {
        return "its event stream is open, but the node does not answer on it".to_owned();
    }
    if facts.node_events_are_complete {
        return "its events were received without a gap since the first POST".to_owned();
    }
    let gap = if facts.node_subscription_broke {
        "its event stream broke after the first POST"
    } else {
        "its events were not received since before the first POST"
    };
    let replay = match context.observed.read(service, EventSource::Node, ObservedNode::replayed) {
        Some(count) => format!("{count} transactions were replayed"),
        None => "the replay of its events is not whole, as is usual with 64 or more transactions"
            .to_owned(),
    };
    format!("{gap}; {replay}")
}
