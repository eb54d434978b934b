use grid_batch_core::operators::ActionRefusal;

use crate::http::{Refusal, Refused};

impl Refused for ActionRefusal {
    fn refusal(&self) -> Refusal {
        match self {
            Self::Locked => Refusal::STORE_UNAVAILABLE,
            _ => Refusal::ACTION_REFUSED,
        }
    }
}
