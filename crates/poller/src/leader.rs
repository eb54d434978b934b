use std::collections::HashSet;

use grid_batch_core::{BatchId, BatchResult, BatchStatus};
use log::{debug, warn};
use tokio::{
    runtime::Runtime,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, sleep_until},
};

use crate::{
    answer::Answer,
    backoff::rng,
    ending::Ending,
    health::{StoreHealth, Troubles},
    inquest::Inquest,
    inquiry::{Inquirer, Message, Question, by_service},
    line::Line,
    looks::{Looks, after},
    outbox::Outbox,
    parts::Parts,
    retries::Retries,
    runtime,
    stats::count,
};

/// Decides everything, and is the only one to call the store.
pub(crate) struct Leader<I, T> {
    parts: Parts<I, T>,
    runtime: Runtime,
    ending: Ending,
    inquirer: Inquirer<I, T>,
    messages: UnboundedReceiver<Message<I, T>>,
    looks: Looks,
    questions: Line<Question<I>>,
    inquest: Inquest,
    /// Whose turn it is, where a question and a doubt wait for one connection.
    doubts_are_next: bool,
    outbox: Outbox<I, T>,
    health: StoreHealth,
    asking: Troubles,
    retries: Retries,
}

impl<I, T> Leader<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    pub(crate) fn new(parts: Parts<I, T>, runtime: Runtime, ending: Ending) -> Self {
        let options = &parts.options;
        let (tell, messages) = unbounded_channel();
        let inquirer = Inquirer {
            runtime: runtime.handle().clone(),
            messages: tell,
            counters: parts.counters().clone(),
            answer_limit: options.answer_limit,
        };
        Self {
            looks: Looks::every(options.poll_interval),
            questions: Line::new(options.trigger_gap),
            inquest: parts.inquest(),
            doubts_are_next: false,
            outbox: Outbox::new(),
            health: StoreHealth::new(options.store_backoff.delays(rng(options.seed))),
            asking: Troubles::with("asking for the batches"),
            retries: Retries::new(options.poll_interval, options.longest_interval),
            parts,
            runtime,
            ending,
            inquirer,
            messages,
        }
    }

    /// Polls until it is to end, and gives back what it was made of.
    pub(crate) fn run(mut self) -> Parts<I, T> {
        while !self.ending.has_begun() {
            self.write();
            self.look();
            self.begin();
            self.rest();
        }
        self.wind_down();
        runtime::end(self.runtime);
        self.parts
    }

    /// Writes what has come together.
    fn write(&mut self) {
        if self.outbox.is_empty() || self.store_rests() {
            return;
        }
        let written = self.outbox.write(&self.parts.records);
        self.note(written);
    }

    /// Looks for what is to be asked. Before everything is written, the store would name batches
    /// that were asked for already; and were it not written at all, it would pile up.
    fn look(&mut self) {
        for look in [Self::look_at_suspects, Self::look_at_triggers, Self::look_for_due] {
            if self.outbox.is_empty() && !self.store_rests() {
                look(self);
            }
        }
    }

    fn look_at_suspects(&mut self) {
        let records = &self.parts.records;
        self.inquest.examine(self.parts.pace(), |service, ids| records.doubts(service, ids));
    }

    fn look_at_triggers(&mut self) {
        let now = Instant::now();
        self.retries.take_due(now).iter().for_each(|service| self.parts.trigger.trigger(service));
        let services = self.parts.trigger.take(|service| self.questions.is_free(service, now));
        if services.is_empty() {
            return;
        }
        let limit = self.parts.options.batch_limit;
        let found = self.parts.records.of(&services, limit);
        let Some(batches) = self.note(found) else {
            return services.into_iter().for_each(|service| self.parts.trigger.put_back(service));
        };
        let cut_off = batches.len() >= limit;
        by_service(batches).into_iter().for_each(|question| self.questions.push(question));
        for service in services {
            let found = self.questions.is_busy(&service);
            if found || !cut_off {
                self.parts.trigger.looked(&service, found);
            } else {
                self.parts.trigger.put_back(service);
            }
        }
    }

    fn look_for_due(&mut self) {
        let now = Instant::now();
        if !self.questions.is_empty() || !self.looks.is_due(now) {
            return;
        }
        let Some((batches, more)) = self.due_batches() else { return };
        self.looks.looked(now, more, !batches.is_empty());
        by_service(batches).into_iter().for_each(|question| self.questions.push(question));
    }

    /// Batches of services that nobody asks about yet, and whether there may be more.
    ///
    /// Those of a slow service stay due while it is asked: the look goes on past them.
    fn due_batches(&mut self) -> Option<(Vec<I>, bool)> {
        let (now, pace) = (self.parts.clock.now(), self.parts.pace());
        let mut limit = self.parts.options.batch_limit;
        loop {
            let found = self.parts.records.due(now, pace, limit);
            let mut batches = self.note(found)?;
            let found = batches.len();
            let full = found >= limit;
            batches.retain(|batch| !self.questions.is_busy(batch.get_service_id()));
            if !batches.is_empty() || !full {
                let more = full || batches.len() < found;
                return Some((batches, more));
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Begins as much as there are connections for.
    fn begin(&mut self) {
        let connections = self.parts.connections();
        while self.under_way() < connections {
            let began = (self.doubts_are_next && self.begin_doubt())
                || self.begin_question()
                || self.begin_doubt();
            if !began {
                break;
            }
        }
    }

    fn begin_question(&mut self) -> bool {
        let Some(question) = self.questions.begin(Instant::now()) else { return false };
        self.inquirer.ask(self.parts.reader.clone(), question);
        self.doubts_are_next = true;
        true
    }

    fn begin_doubt(&mut self) -> bool {
        let Some(detective) = self.parts.detective.clone() else { return false };
        let Some(doubt) = self.inquest.begin() else { return false };
        self.inquirer.look_for_evidence(detective, doubt);
        self.doubts_are_next = false;
        true
    }

    /// Waits until there is something to do, and takes in what has arrived.
    fn rest(&mut self) {
        let wake = self.next_wake();
        let message = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.ending.begun() => None,
                message = self.messages.recv() => message,
                () = self.parts.trigger.woken() => None,
                () = sleep_until(wake) => None,
            }
        });
        self.take_in(message);
    }

    fn next_wake(&mut self) -> Instant {
        let now = Instant::now();
        let latest = self.looks.latest(now);
        if let Some(rested) = self.health.rests_until(now) {
            return rested.min(latest);
        }
        let look = self.questions.is_empty().then(|| self.looks.next(now));
        let appointment = self.inquest.next_appointment().map(|wait| after(now, wait));
        let someone_waits = !self.questions.is_empty() || self.parts.trigger.is_wanted();
        let gap_end = self.questions.next_gap_end(now).filter(|_| someone_waits);
        [look, appointment, gap_end, self.retries.next()]
            .into_iter()
            .flatten()
            .fold(latest, Instant::min)
    }

    fn take_in(&mut self, first: Option<Message<I, T>>) {
        let mut next = first;
        while let Some(message) = next {
            match message {
                Message::Answered(question, answer) => self.answered(question, answer),
                Message::Found(doubt, evidence) => {
                    if let Some((doubt, resolution)) = self.inquest.found(doubt, evidence) {
                        self.outbox.settle(doubt, resolution);
                    }
                }
            }
            next = self.messages.try_recv().ok();
        }
    }

    fn answered(&mut self, question: Question<I>, answer: BatchResult<Answer<T>>) {
        let Question { service_id, batches } = question;
        self.questions.ended(&service_id);
        self.looks.something_changed();
        match answer {
            Ok(answer) => self.take_answer(service_id, batches, answer),
            Err(error) => {
                self.parts.counters().count(|stats| stats.failed += 1);
                self.asking.failed(&service_id, &error);
                self.retries.failed(&service_id, Instant::now());
                self.outbox.mark_checked(batches);
            }
        }
    }

    fn take_answer(&mut self, service_id: String, batches: Vec<I>, answer: Answer<T>) {
        let Answer { said, unknown } = answer;
        self.parts.counters().count(|stats| {
            stats.answered += 1;
            stats.unknown += count(unknown.len());
        });
        debug!(
            service = service_id.as_str(), said = said.len(), unknown = unknown.len();
            "a ledger answered"
        );
        self.asking.is_well(&service_id);
        self.retries.is_well(&service_id);
        if self.parts.detective.is_some() {
            let said = said.iter().map(|status| status.get_id().to_owned());
            self.inquest.suspect(&service_id, &unknown, said);
        }
        let unknown: HashSet<String> = unknown.into_iter().collect();
        let (silent, said_of): (Vec<I>, Vec<I>) =
            batches.into_iter().partition(|batch| unknown.contains(batch.get_id()));
        self.outbox.mark_checked(silent);
        self.outbox.update(service_id, said_of, said);
    }

    /// Waits for what is under way, and writes it.
    fn wind_down(&mut self) {
        let deadline = after(Instant::now(), self.parts.options.drain_limit);
        self.questions.clear();
        self.inquest.clear();
        loop {
            self.write();
            let now = Instant::now();
            let done = self.under_way() == 0 && self.outbox.is_empty();
            if done || now >= deadline {
                break;
            }
            let wake = self.health.rests_until(now).map_or(deadline, |end| end.min(deadline));
            let message = self.runtime.block_on(async {
                tokio::select! {
                    message = self.messages.recv() => message,
                    () = sleep_until(wake) => None,
                }
            });
            self.take_in(message);
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        let unanswered = self.under_way();
        let unwritten = self.outbox.give_up();
        if unanswered + unwritten > 0 {
            warn!(
                unanswered = unanswered, unwritten = unwritten;
                "the polling monitor ended before everything was answered and written; \
                 the next one asks again"
            );
        }
    }

    /// Notes how a call of the store went.
    fn note<R>(&mut self, result: BatchResult<R>) -> Option<R> {
        match result {
            Ok(value) => {
                self.health.is_well();
                Some(value)
            }
            Err(error) => {
                self.health.failed(&error);
                None
            }
        }
    }

    fn store_rests(&self) -> bool {
        self.health.rests_until(Instant::now()).is_some()
    }

    fn under_way(&self) -> usize {
        self.questions.under_way() + self.inquest.under_way()
    }
}
