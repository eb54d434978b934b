//! Transactions that the nodes have applied but this adapter has not sent, because another client or an earlier process
//! sent them. They are stored, so that a batch with one of them is not sent after the nodes have forgotten it.

use std::{
    collections::HashMap,
    mem::take,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::ledger::CommitHistory;
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use grid_batch_support::{BoundedMap, lock};
use log::warn;
use tokio::{runtime::Handle, time::sleep};

use crate::context::ScabbardContext;

#[derive(Default)]
struct Transactions {
    /// Transactions that an event has named but that are not stored yet.
    heard: HashMap<ServiceId, Vec<ItemId>>,
    /// Whether a task is storing them.
    is_writing: bool,
}

/// The transactions of other clients, until they are stored.
pub(crate) struct ForeignTransactions {
    /// The latest transactions that this adapter has sent.
    sent: Mutex<BoundedMap<(ServiceId, ItemId), ()>>,
    transactions: Mutex<Transactions>,
}

impl ForeignTransactions {
    const REMEMBERED: usize = 100_000;
    /// The pause after a failure of the store.
    const PAUSE: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Self {
        let sent = Mutex::new(BoundedMap::new(Self::REMEMBERED));
        Self { sent, transactions: Mutex::default() }
    }

    /// Records that these transactions are sent with a batch of this server, so that they are not foreign.
    pub(crate) fn sent(&self, service: &ServiceId, transactions: &[ItemId]) {
        let mut sent = lock(&self.sent);
        for transaction in transactions {
            sent.set(&(service.clone(), *transaction), ());
        }
    }

    /// Records that an event has named the transaction. It is stored soon, unless this adapter has sent it.
    pub(crate) fn heard(
        &self,
        context: &Arc<ScabbardContext>,
        service: &ServiceId,
        transaction: ItemId,
    ) {
        let is_sent = lock(&self.sent).contains(&(service.clone(), transaction));
        if is_sent || context.history_of_services.get().is_none() {
            return;
        }
        let mut transactions = lock(&self.transactions);
        transactions.heard.entry(service.clone()).or_default().push(transaction);
        if !transactions.is_writing
            && let Ok(runtime) = Handle::try_current()
        {
            transactions.is_writing = true;
            runtime.spawn(store_all(Arc::clone(context)));
        }
    }

    /// Stores the transactions that events have named, of all services. Blocks.
    pub(crate) fn store_heard(&self, history: &dyn CommitHistory) -> BatchResult<()> {
        let heard = take(&mut lock(&self.transactions).heard);
        let mut result = Ok(());
        for (service, transactions) in heard {
            if result.is_ok() {
                result = history.add_applied(&service, &transactions);
            }
            if result.is_err() {
                lock(&self.transactions).heard.entry(service).or_default().extend(transactions);
            }
        }
        result
    }

    /// Returns whether everything is stored. If so, the task ends.
    fn ends_writing(&self) -> bool {
        let mut transactions = lock(&self.transactions);
        transactions.is_writing = !transactions.heard.is_empty();
        !transactions.is_writing
    }
}

async fn store_all(context: Arc<ScabbardContext>) {
    let foreign = &context.foreign_transactions;
    while !foreign.ends_writing() {
        if let Err(error) = context.write_history(None).await {
            warn!(error:%; "cannot store the transactions of other clients; trying again");
            sleep(ForeignTransactions::PAUSE).await;
        }
    }
}
