//! Adds batches to a store and commits some of them until it is killed. It prints one line for each
//! batch that was added or committed, after the store has returned.

use std::{env, error::Error, io::Write, time::Duration};

use grid_batch_core::batches::{Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("usage: feed <database URL>")?;
    let store = Store::open(&url.parse()?, StoreOptions::default())?;
    // Short, so that a new run of the name can take over soon after this one was killed.
    let idle_expiry = Duration::from_millis(500);
    let name = Some("feeder".to_owned());
    let options = ClaimOptions { name, idle_expiry, ..ClaimOptions::default() };
    let claims = ClaimStore::register(store.clone(), options)?;
    let services: Vec<ServiceId> =
        (0..3).map(|n| format!("feed::{n}").parse()).collect::<Result<_, _>>()?;
    for first in (0..).step_by(6) {
        let list: Vec<NewBatch> =
            (first..first + 6).map(|number| batch(number, &services)).collect();
        for result in store.add(&[&list])? {
            result?;
        }
        for number in first..first + 6 {
            print_line("added", number)?;
        }
        claims.renew()?;
        claims.take_services(&services)?;
        commit_some(&claims, &services)?;
    }
    Ok(())
}

fn batch(number: u64, services: &[ServiceId]) -> NewBatch {
    let mut id = [0; ItemId::BYTES];
    id[..8].copy_from_slice(&number.to_be_bytes());
    NewBatch {
        service_id: services[number as usize % services.len()].clone(),
        batch_id: ItemId::from_bytes(id),
        signer: None,
        transaction_ids: vec![ItemId::from_bytes(id)],
        serialized_batch: number.to_be_bytes().repeat(50),
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// Commits one batch of each service, so that fewer batches are committed than added.
fn commit_some(claims: &ClaimStore, services: &[ServiceId]) -> Result<(), Box<dyn Error>> {
    for taken in claims.take_next(services)? {
        let accepted = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted };
        for event in [accepted, Event::status(LedgerStatus::Committed)] {
            let change = Change::new(taken.service_id.clone(), taken.batch_id, event);
            let recorded = claims.store().record(&[change])?;
            if !matches!(recorded[0], ChangeOutcome::Applied { .. }) {
                return Err(format!("{recorded:?}").into());
            }
        }
        let mut number = [0; 8];
        number.copy_from_slice(&taken.batch_id.as_bytes()[..8]);
        print_line("committed", u64::from_be_bytes(number))?;
    }
    Ok(())
}

fn print_line(what: &str, number: u64) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {number}")?;
    out.flush()
}
