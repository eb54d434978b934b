use super::simulation::PoolRefusal;

/// The conclusion from the answers of the nodes about a call that one of them refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusalOutcome {
    /// The withdrawal fails, because enough up-to-date nodes agree and none disagrees.
    Final(PoolRefusal),
    /// The node of this attempt is not up to date, but another one accepts the withdrawal.
    OtherNode(String),
    /// Nothing is certain yet, for this reason.
    Wait(String),
}

/// The vote of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Vote {
    /// The node does not count, because it does not answer or is not up to date.
    None(String),
    Accepts,
    /// It refuses at this block.
    Refuses(PoolRefusal, u64),
}

/// A node and its vote.
pub(super) type NodeVote = (String, Vote);

/// Decides about a refusal. The first vote is that of the node of this attempt; `needed` nodes must refuse.
pub(super) fn decide(refusal: &PoolRefusal, votes: &[NodeVote], needed: usize) -> RefusalOutcome {
    if let Some(accepted) = decide_if_accepted(refusal, votes) {
        return accepted;
    }
    let refusals = votes.iter().filter_map(|(node, vote)| match vote {
        Vote::Refuses(refusal, _) => Some((node, refusal)),
        Vote::None(_) | Vote::Accepts => None,
    });
    let refusals: Vec<(&String, &PoolRefusal)> = refusals.collect();
    let Some((first, rest)) = refusals.split_first() else {
        return RefusalOutcome::Wait(not_final(refusal, votes, needed));
    };
    if let Some((node, other)) = rest.iter().find(|(_, other)| !first.1.agrees_with(other)) {
        return RefusalOutcome::Wait(format!(
            "the nodes disagree: {} says that {}; {node} says that {other}",
            first.0, first.1
        ));
    }
    if refusals.len() >= needed {
        RefusalOutcome::Final(first.1.clone())
    } else {
        RefusalOutcome::Wait(not_final(first.1, votes, needed))
    }
}

/// The conclusion if a node accepts the withdrawal.
fn decide_if_accepted(refusal: &PoolRefusal, votes: &[NodeVote]) -> Option<RefusalOutcome> {
    let (accepting, _) = votes.iter().find(|(_, vote)| *vote == Vote::Accepts)?;
    let (node, vote) = votes.first()?;
    Some(match vote {
        Vote::None(reason) => {
            RefusalOutcome::OtherNode(format!("{node} {reason}; another node is used"))
        }
        Vote::Accepts => RefusalOutcome::Wait(format!(
            "{node} said a moment ago that {refusal}, and does not say so any more"
        )),
        Vote::Refuses(refusal, _) => RefusalOutcome::Wait(format!(
            "the nodes disagree: {node} says that {refusal}; {accepting} accepts it"
        )),
    })
}

/// Why a refusal is not final.
fn not_final(refusal: &PoolRefusal, votes: &[NodeVote], needed: usize) -> String {
    let missing = votes.iter().filter_map(|(node, vote)| match vote {
        Vote::None(reason) => Some(format!("{node} {reason}")),
        Vote::Accepts | Vote::Refuses(..) => None,
    });
    let missing = match missing.collect::<Vec<_>>() {
        missing if missing.is_empty() => {
            format!("only {} of the nodes can be asked", votes.len())
        }
        missing => missing.join("; "),
    };
    let needed = match needed {
        0 | 1 => "a node that is up to date says".to_owned(),
        number => format!("{number} nodes that are up to date say"),
    };
    format!("{missing}; not final until {needed} so: {refusal}")
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;

    use super::*;

    fn refused(reason: &str) -> PoolRefusal {
        PoolRefusal::Reverted(reason.to_owned())
    }

    fn refuses(reason: &str) -> Vote {
        Vote::Refuses(refused(reason), 1)
    }

    fn lags() -> Vote {
        Vote::None("is syncing".to_owned())
    }

    fn decided(votes: &[Vote], needed: usize) -> RefusalOutcome {
        let votes: Vec<NodeVote> = ["a", "b", "c"]
            .iter()
            .zip(votes)
            .map(|(node, vote)| ((*node).to_owned(), vote.clone()))
            .collect();
        decide(&refused("no"), &votes, needed)
    }

    #[test]
    fn enough_nodes_that_agree_are_final() {
        let expected = RefusalOutcome::Final(refused("no"));
        for (votes, needed) in [
            (vec![refuses("no")], 1),
            (vec![refuses("no"), refuses("not the owner")], 2),
            (vec![refuses("no"), lags()], 1),
            (vec![refuses("no"), lags(), refuses("no")], 2),
            (vec![lags(), refuses("no")], 1),
        ] {
            assert_eq!(decided(&votes, needed), expected, "{votes:?}");
        }
    }

    #[test]
    fn too_few_nodes_are_waited_for() {
        for (votes, needed, text) in [
            (vec![lags()], 1, "a is syncing; not final until a node that is up to date says so: "),
            (
                vec![refuses("no"), lags()],
                2,
                "b is syncing; not final until 2 nodes that are up to date say so: ",
            ),
            (vec![refuses("no")], 2, "only 1 of the nodes can be asked; not final until 2 nodes "),
        ] {
            let RefusalOutcome::Wait(reason) = decided(&votes, needed) else { panic!("{votes:?}") };
            assert!(reason.starts_with(text), "{reason}");
            assert!(reason.ends_with("the pool refuses the withdrawal: no"), "{reason}");
        }
    }

    #[test]
    fn one_node_that_accepts_prevents_a_failure() {
        for votes in
            [vec![refuses("no"), refuses("no"), Vote::Accepts], vec![refuses("no"), Vote::Accepts]]
        {
            let RefusalOutcome::Wait(reason) = decided(&votes, 1) else { panic!("{votes:?}") };
            assert!(
                reason.contains("the nodes disagree: a says that the pool refuses"),
                "{reason}"
            );
        }
        assert!(matches!(decided(&[Vote::Accepts], 1), RefusalOutcome::Wait(_)));
    }

    #[test]
    fn other_node_is_used_if_this_one_lags() {
        let reason = "a is syncing; another node is used".to_owned();
        assert_eq!(decided(&[lags(), Vote::Accepts], 1), RefusalOutcome::OtherNode(reason));
    }

    #[test]
    fn nodes_with_and_without_the_contract_disagree() {
        let missing = Vote::Refuses(PoolRefusal::NoContract(Address::ZERO), 1);
        let RefusalOutcome::Wait(reason) = decided(&[refuses("no"), missing], 1) else { panic!() };
        assert!(reason.starts_with("the nodes disagree: "), "{reason}");
    }
}
