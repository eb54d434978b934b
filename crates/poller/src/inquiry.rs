use std::{collections::HashMap, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchId, BatchResult, BatchStatus, BatchStatusReader, Evidence, EvidenceReader,
    UnresolvedBatch,
};
use tokio::{runtime::Handle, sync::mpsc::UnboundedSender, time::timeout};

use crate::{MonitorCounters, answer::Answer, line::Job, panics::catch_future};

pub(crate) type Reader<T> = Arc<dyn BatchStatusReader<Status = T> + Sync>;
pub(crate) type Detective = Arc<dyn EvidenceReader + Sync>;

/// A question for the statuses of batches of one service.
#[derive(Debug)]
pub(crate) struct Question<I> {
    pub(crate) service_id: String,
    pub(crate) batches: Vec<I>,
}

/// What comes back.
pub(crate) enum Message<I, T> {
    Answered(Question<I>, BatchResult<Answer<T>>),
    Found(UnresolvedBatch, BatchResult<Evidence>),
}

/// Asks ledgers, each question in a task of its own.
pub(crate) struct Inquirer<I, T> {
    pub(crate) runtime: Handle,
    pub(crate) messages: UnboundedSender<Message<I, T>>,
    pub(crate) counters: MonitorCounters,
    pub(crate) answer_limit: Duration,
}

impl<I, T> Inquirer<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    pub(crate) fn ask(&self, reader: Reader<T>, question: Question<I>) {
        self.counters.count(|stats| stats.asked += 1);
        let (messages, counters, limit) = self.parts();
        self.runtime.spawn(async move {
            let ids: Vec<String> = question.batches.iter().map(|b| b.get_id().to_owned()).collect();
            let service = question.service_id.as_str();
            let asking = within(limit, async { reader.get_batch_statuses(service, &ids).await });
            let answer = counters.survive(catch_future(asking).await);
            let answer = answer.and_then(|statuses| Answer::validate(&ids, statuses));
            // Without a leader nobody wants to know any more.
            let _ = messages.send(Message::Answered(question, answer));
        });
    }

    pub(crate) fn look_for_evidence(&self, detective: Detective, doubt: UnresolvedBatch) {
        self.counters.count(|stats| stats.evidence_asked += 1);
        let (messages, counters, limit) = self.parts();
        self.runtime.spawn(async move {
            let looking = async { detective.find_evidence(&doubt).await };
            let evidence = counters.survive(catch_future(within(limit, looking)).await);
            let _ = messages.send(Message::Found(doubt, evidence));
        });
    }

    fn parts(&self) -> (UnboundedSender<Message<I, T>>, MonitorCounters, Duration) {
        (self.messages.clone(), self.counters.clone(), self.answer_limit)
    }
}

async fn within<R>(limit: Duration, call: impl Future<Output = BatchResult<R>>) -> BatchResult<R> {
    let late = |_| Err(BatchError::Unavailable(format!("there was no answer in {limit:?}")));
    timeout(limit, call).await.unwrap_or_else(late)
}

impl<I> Job for Question<I> {
    fn service(&self) -> &str {
        &self.service_id
    }
}

impl Job for UnresolvedBatch {
    fn service(&self) -> &str {
        self.service_id.as_str()
    }
}

/// One question for each service, in the order in which the services come first.
pub(crate) fn by_service<I: BatchId>(batches: Vec<I>) -> Vec<Question<I>> {
    let mut questions: Vec<Question<I>> = Vec::new();
    let mut places = HashMap::new();
    for batch in batches {
        let service_id = batch.get_service_id().to_owned();
        let place = *places.entry(service_id.clone()).or_insert(questions.len());
        match questions.get_mut(place) {
            Some(question) => question.batches.push(batch),
            None => questions.push(Question { service_id, batches: vec![batch] }),
        }
    }
    questions
}
