use std::fmt;

use crate::ServiceId;
use crate::batches::StoredBatch;
use crate::operators::OperatorVerb;

/// What an operator could do.
///
/// Its text is the command that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PossibleAction<'a> {
    /// What.
    pub verb: OperatorVerb,
    /// About what.
    pub target: ActionTarget<'a>,
}

/// What a possible action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionTarget<'a> {
    /// A batch.
    Batch(&'a StoredBatch),
    /// A service.
    Service(&'a ServiceId),
    /// All services.
    AllServices,
}

impl<'a> PossibleAction<'a> {
    /// The batch that it is about; `None`: it is about a service.
    pub const fn batch(&self) -> Option<&'a StoredBatch> {
        match self.target {
            ActionTarget::Batch(batch) => Some(batch),
            ActionTarget::Service(_) | ActionTarget::AllServices => None,
        }
    }

    /// The service that it is about, or that its batch belongs to; `None`: it is about all services.
    pub const fn service_id(&self) -> Option<&'a ServiceId> {
        match self.target {
            ActionTarget::Batch(batch) => Some(&batch.service_id),
            ActionTarget::Service(service_id) => Some(service_id),
            ActionTarget::AllServices => None,
        }
    }

    /// The command without the attempt, and the decision that it names.
    fn words(&self) -> (String, Option<&'static str>) {
        match self.verb {
            OperatorVerb::EndCommitted => ("decide".to_owned(), Some("committed")),
            OperatorVerb::EndInvalid => ("decide".to_owned(), Some("invalid")),
            verb => (verb.as_str().replace('_', "-"), None),
        }
    }
}

impl fmt::Display for PossibleAction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (command, decision) = self.words();
        write!(f, "grid-batch {command} ")?;
        match self.target {
            ActionTarget::Batch(batch) => batch.batch_id.fmt(f)?,
            ActionTarget::Service(service_id) => fmt_word(service_id.as_str(), f)?,
            ActionTarget::AllServices => f.write_str("--all")?,
        }
        if let Some(decision) = decision {
            write!(f, " {decision}")?;
        }
        if let Some(batch) = self.batch().filter(|_| self.verb.decides_attempt()) {
            write!(f, " --attempt {}", batch.progress.attempts)?;
        }
        f.write_str(" --reason TEXT")
    }
}

/// Writes one word of a shell. Clients choose the names of services.
fn fmt_word(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | ':');
    if text.chars().all(is_plain) {
        f.write_str(text)
    } else {
        write!(f, "'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemId, Timestamp};

    #[test]
    fn text_is_the_command_as_it_is_typed() {
        let mut batch = StoredBatch::new(
            "a::b".parse().unwrap(),
            ItemId::from_bytes([0x5a; 64]),
            Timestamp::from_micros(1),
        );
        batch.progress.attempts = 3;
        let id = batch.batch_id.to_string();
        let of_batch = |verb| PossibleAction { verb, target: ActionTarget::Batch(&batch) };
        for (verb, text) in [
            (OperatorVerb::EndFollowing, format!("end-following {id}")),
            (OperatorVerb::EndCommitted, format!("decide {id} committed --attempt 3")),
            (OperatorVerb::Resubmit, format!("resubmit {id} --attempt 3")),
        ] {
            assert_eq!(of_batch(verb).to_string(), format!("grid-batch {text} --reason TEXT"));
        }
        let verb = OperatorVerb::Resume;
        let of_all = PossibleAction { verb, target: ActionTarget::AllServices };
        assert_eq!(of_all.to_string(), "grid-batch resume --all --reason TEXT");
        let (service, odd) = ("a::b".parse().unwrap(), "a;b'c".parse().unwrap());
        for (service, word) in [(&service, "a::b"), (&odd, "'a;b'\\''c'")] {
            let of_service = PossibleAction { verb, target: ActionTarget::Service(service) };
            assert_eq!(of_service.to_string(), format!("grid-batch resume {word} --reason TEXT"));
        }
    }
}
