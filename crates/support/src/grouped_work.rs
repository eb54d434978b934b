use std::{
    any::Any,
    mem::take,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use crate::{BlockingWork, Panic, catch_panic, lock};

/// Runs work that may block, such as a commit, for all items at once that wait for it at the same time. Each gets the
/// same answer.
#[derive(Debug)]
pub struct GroupedWork<I, A> {
    turn: BlockingWork,
    waiting: Arc<Mutex<Vec<Waiting<I, A>>>>,
}

#[derive(Debug)]
struct Waiting<I, A> {
    item: I,
    answer: oneshot::Sender<Result<A, Panic>>,
}

impl<I, A> Default for GroupedWork<I, A> {
    fn default() -> Self {
        Self { turn: BlockingWork::new(1), waiting: Arc::default() }
    }
}

impl<I: Send + 'static, A: Clone + Send + 'static> GroupedWork<I, A> {
    /// Runs `work` for this item and those that arrived during the work before. The work of one of them runs for all.
    /// Dropping the future does not take back the item.
    pub async fn run(
        &self,
        item: I,
        work: impl FnOnce(Vec<I>) -> A + Send + 'static,
    ) -> Result<A, Panic> {
        let (answer, answered) = oneshot::channel();
        lock(&self.waiting).push(Waiting { item, answer });
        let waiting = Arc::clone(&self.waiting);
        let turn = move || {
            let group = take(&mut *lock(&waiting));
            let (items, answers): (Vec<I>, Vec<_>) =
                group.into_iter().map(|it| (it.item, it.answer)).unzip();
            // An earlier group may have had the item.
            if items.is_empty() {
                return;
            }
            let result = catch_panic(|| work(items));
            for answer in answers {
                // The future may have been dropped.
                let _ = answer.send(result.clone());
            }
        };
        self.turn.run(turn).await?;
        // This turn or an earlier one has answered.
        let unanswered = |_| Err(Panic::from(Box::new("no answer") as Box<dyn Any + Send>));
        answered.await.unwrap_or_else(unanswered)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn items_that_wait_are_worked_on_together() {
        let groups = Arc::<Mutex<Vec<Vec<u32>>>>::default();
        let work = Arc::<GroupedWork<u32, usize>>::default();
        let (begun, began) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let work = Arc::clone(&work);
            async move {
                let run = move |items: Vec<u32>| {
                    begun.send(()).unwrap();
                    released.recv().unwrap();
                    items.len()
                };
                work.run(0, run).await
            }
        });
        let began = tokio::task::spawn_blocking(move || began.recv());
        began.await.unwrap().unwrap();
        let others = join_all((1..=5).map(|item| {
            let groups = Arc::clone(&groups);
            work.run(item, move |items| {
                let count = items.len();
                lock(&groups).push(items);
                count
            })
        }));
        let all_wait = async {
            while lock(&work.waiting).len() < 5 {
                tokio::task::yield_now().await;
            }
            release.send(()).unwrap();
        };
        let (answers, ()) = tokio::join!(others, all_wait);
        assert_eq!(first.await.unwrap(), Ok(1));
        assert_eq!(answers, vec![Ok(5); 5]);
        assert_eq!(*lock(&groups), [[1, 2, 3, 4, 5]]);
    }

    #[tokio::test]
    async fn panic_is_the_answer_to_its_group_alone() {
        let work = GroupedWork::<u32, u32>::default();
        let failed = work.run(1, |_| panic!("failed")).await;
        assert_eq!(failed.unwrap_err().message(), "failed");
        assert_eq!(work.run(2, |items| items.iter().sum()).await, Ok(2));
    }
}
