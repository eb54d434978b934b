use crate::sql::{Connection, StoreError};

/// Limit on the number of entries that are examined for a page.
const MOST_EXAMINED: usize = 5_000;
/// How many entries are read at once, after the first ones, which may fill the page.
const STEP: usize = 500;

/// A page of up to `count` selected entries after a cursor, and where the next one starts. `next` returns the cursors of
/// a step, fewer than requested only at the end; `select` reads the entries at cursors, and leaves out those that are
/// not selected.
pub(crate) fn fill_page<C: Copy, T>(
    connection: &mut Connection,
    mut after: Option<C>,
    count: usize,
    next: impl Fn(&mut Connection, Option<C>, usize) -> Result<Vec<C>, StoreError>,
    select: impl Fn(&mut Connection, &[C]) -> Result<Vec<(C, T)>, StoreError>,
) -> Result<(Vec<T>, Option<C>), StoreError> {
    let (mut page, mut last) = (Vec::new(), None);
    let (mut examined, mut step) = (0, count.saturating_add(1));
    loop {
        let cursors = next(connection, after, step)?;
        for (cursor, entry) in select(connection, &cursors)? {
            if page.len() >= count {
                return Ok((page, last));
            }
            last = Some(cursor);
            page.push(entry);
        }
        if cursors.len() < step {
            return Ok((page, None));
        }
        examined += cursors.len();
        after = cursors.last().copied().or(after);
        if examined >= MOST_EXAMINED {
            return Ok((page, after));
        }
        step = STEP;
    }
}
