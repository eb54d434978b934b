use std::collections::BTreeSet;

use grid_batch_core::ServiceId;
use grid_batch_core::operators::{ActionRefusal, OperatorAction};

use super::json::{DoneJson, RefusedJson};
use crate::http::{ApiError, RequestError};

/// What became of each action.
#[derive(Debug, Default)]
pub(super) struct Acted {
    pub(super) done: Vec<DoneJson>,
    pub(super) refused: Vec<RefusedJson>,
}

impl Acted {
    fn refuse(&mut self, action: &OperatorAction, reason: String) {
        self.refused.push(RefusedJson::new(&action.target, reason));
    }
}

/// Carries out actions, each in a commit of its own. One that is refused stops no other. After a failure of the
/// store, or without time, the rest is refused: the caller is told what was done before.
pub(super) fn act_on_each(
    actions: impl IntoIterator<Item = OperatorAction>,
    has_time: impl Fn() -> bool,
    act: impl Fn(&OperatorAction) -> Result<DoneJson, ApiError>,
) -> Result<Acted, ApiError> {
    let mut acted = Acted::default();
    // Waiting for the lock of each of its batches would take the time of all others.
    let mut locked: BTreeSet<ServiceId> = BTreeSet::new();
    let mut stopped: Option<String> = None;
    for action in actions {
        if let Some(reason) = &stopped {
            acted.refuse(&action, reason.clone());
            continue;
        }
        let service_id = action.target.service_id();
        if service_id.is_some_and(|service_id| locked.contains(service_id)) {
            acted.refuse(&action, ActionRefusal::Locked.to_string());
            continue;
        }
        match act(&action) {
            Ok(done) => acted.done.push(done),
            Err(error) if is_refused(&error) => {
                if matches!(error.get(), Some(ActionRefusal::Locked)) {
                    locked.extend(service_id.cloned());
                }
                acted.refuse(&action, error.to_string());
            }
            Err(error) if acted.done.is_empty() => return Err(error),
            Err(error) => {
                acted.refuse(&action, format!("it may have been done: {error}"));
                stopped = Some(format!("it was not tried, after this failure: {error}"));
            }
        }
        if stopped.is_none() && !has_time() {
            stopped = Some("it was not tried: the request took too long; send it again".to_owned());
        }
    }
    Ok(acted)
}

/// Whether the action was certainly not done.
fn is_refused(error: &ApiError) -> bool {
    error.get::<ActionRefusal>().is_some()
        || matches!(error.get(), Some(RequestError::UnknownTarget { .. }))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use grid_batch_core::ItemId;
    use grid_batch_core::operators::{
        ActionEffect, ActionSource, Operator, OperatorTarget, OperatorVerb,
    };

    use super::*;
    use crate::http::ServerError;

    fn actions(services: &[&str]) -> Vec<OperatorAction> {
        let operator =
            Operator { name: "alice".to_owned(), source: ActionSource::Http, instance: None };
        let target = |(number, service): (u8, &&str)| OperatorTarget::Batch {
            service_id: service.parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt: None,
        };
        let action = |target| OperatorAction {
            verb: OperatorVerb::Hold,
            target,
            reason: None,
            operator: operator.clone(),
            dry_run: false,
        };
        (1..).zip(services).map(target).map(action).collect()
    }

    fn done(action: &OperatorAction) -> DoneJson {
        let effect = ActionEffect {
            before: "new".to_owned(),
            after: "new, held".to_owned(),
            state: None,
            next_waits: false,
        };
        DoneJson::new(action, effect, None)
    }

    fn service(action: &OperatorAction) -> &str {
        action.target.service_id().unwrap().as_str()
    }

    #[test]
    fn locked_service_is_tried_once_and_stops_no_other() {
        let tried = RefCell::new(Vec::new());
        let acted = act_on_each(
            actions(&["a", "b", "a", "c"]),
            || true,
            |action| {
                tried.borrow_mut().push(service(action).to_owned());
                match service(action) {
                    "a" => Err(ActionRefusal::Locked.into()),
                    _ => Ok(done(action)),
                }
            },
        );
        let acted = acted.unwrap();
        assert_eq!(*tried.borrow(), ["a", "b", "c"]);
        assert_eq!((acted.done.len(), acted.refused.len()), (2, 2));
    }

    #[test]
    fn what_was_done_before_a_failure_is_answered() {
        let act = |action: &OperatorAction| match service(action) {
            "b" => Err(ApiError::write_interrupted()),
            _ => Ok(done(action)),
        };
        let acted = act_on_each(actions(&["a", "b", "c"]), || true, act).unwrap();
        assert_eq!((acted.done.len(), acted.refused.len()), (1, 2));
        let first = act_on_each(actions(&["b", "a"]), || true, act).unwrap_err();
        assert!(first.get::<ServerError>().is_some(), "nothing was done");
    }

    #[test]
    fn request_ends_in_time() {
        let acted =
            act_on_each(actions(&["a", "b", "c"]), || false, |action| Ok(done(action))).unwrap();
        assert_eq!((acted.done.len(), acted.refused.len()), (1, 2));
    }
}
