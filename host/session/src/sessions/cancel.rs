//! What the Cancel service (Part 4, 5.7.5) needs: which waiting requests carry which request handle.
//!
//! Only a request that has to wait is entered here; one that is answered at once cannot be cancelled. Parked Publish requests are kept by
//! [`Subscriptions`](crate::Subscriptions), which has a `cancel` of its own.

use backplane_types::StatusCode;

/// Waiting requests by the request handle that their client chose.
#[derive(Debug)]
pub struct CancelTable {
    limit: usize,
    waiting: Vec<(u32, u64)>,
}

impl CancelTable {
    /// A table of at most `limit` waiting requests.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            waiting: Vec::new(),
        }
    }

    /// Enters a waiting request; `ticket` is the caller's own number for it.
    ///
    /// # Errors
    /// `BadTooManyOperations` when the table is full.
    pub fn enter(&mut self, request_handle: u32, ticket: u64) -> Result<(), StatusCode> {
        if self.waiting.len() >= self.limit {
            return Err(StatusCode::BAD_TOO_MANY_OPERATIONS);
        }
        self.waiting.push((request_handle, ticket));
        Ok(())
    }

    /// Removes a request that was answered. False when it was not there: then it has been cancelled, and the answer must not be sent.
    pub fn leave(&mut self, ticket: u64) -> bool {
        match self.waiting.iter().position(|(_, entered)| *entered == ticket) {
            Some(place) => {
                self.waiting.swap_remove(place);
                true
            }
            None => false,
        }
    }

    /// Removes all requests with this handle and returns their tickets; each is to be answered `BadRequestCancelledByRequest`. Their
    /// number is the cancelCount of the response.
    pub fn cancel(&mut self, request_handle: u32) -> Vec<u64> {
        let mut cancelled = Vec::new();
        self.waiting.retain(|(handle, ticket)| {
            let hit = *handle == request_handle;
            if hit {
                cancelled.push(*ticket);
            }
            !hit
        });
        cancelled
    }

    /// Requests waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_takes_every_request_with_the_handle_once() {
        let mut table = CancelTable::new(4);
        for (handle, ticket) in [(1, 10), (2, 11), (1, 12)] {
            table.enter(handle, ticket).unwrap();
        }
        assert_eq!(table.cancel(1), [10, 12]);
        assert_eq!(table.cancel(1), [0u64; 0]);
        assert!(!table.leave(10), "a cancelled request is not answered twice");
        assert!(table.leave(11));
        assert!(table.is_empty());
    }

    #[test]
    fn table_is_bounded() {
        let mut table = CancelTable::new(1);
        table.enter(1, 1).unwrap();
        assert_eq!(table.enter(1, 2), Err(StatusCode::BAD_TOO_MANY_OPERATIONS));
    }
}
