use std::collections::HashMap;

use grid_batch_core::{BatchError, BatchResult, Excerpt};

/// The entries of a response about batches, each once, in the order of the request. A batch without an entry is left
/// out. It is an error if an entry is about another batch, or if two entries of one batch differ.
///
/// ```
/// use grid_batch_protocol::entries_in_order;
///
/// let entries = vec![("b", 2), ("a", 1), ("b", 2)];
/// assert_eq!(entries_in_order(&["a", "b", "c"], entries, |(id, _)| id), Ok(vec![("a", 1), ("b", 2)]));
/// assert!(entries_in_order(&["a"], vec![("b", 2)], |(id, _)| id).is_err());
/// assert!(entries_in_order(&["a"], vec![("a", 1), ("a", 2)], |(id, _)| id).is_err());
/// ```
pub fn entries_in_order<E: PartialEq>(
    requested: &[impl AsRef<str>],
    entries: Vec<E>,
    id: impl Fn(&E) -> &str,
) -> BatchResult<Vec<E>> {
    let mut found: HashMap<&str, Option<E>> =
        requested.iter().map(|id| (id.as_ref(), None)).collect();
    for entry in entries {
        let invalid = |reason| {
            BatchError::InvalidAnswer(format!(
                "statuses: batch {} {reason}",
                Excerpt::of(id(&entry))
            ))
        };
        match found.get_mut(id(&entry)) {
            None => return Err(invalid("was not requested")),
            Some(Some(other)) if *other != entry => {
                return Err(invalid("has two different entries"));
            }
            Some(found) => *found = Some(entry),
        }
    }
    Ok(requested.iter().filter_map(|id| found.remove(id.as_ref())?).collect())
}
