//! The continuation points of one session (Part 4, 7.9).
//!
//! Owns how many there are, which one gives way, and that each is valid once. A point keeps the graph it was made in, so that paging through a large
//! folder is not disturbed by changes; it keeps no manager.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::graph::Graph;
use crate::services::browse::Position;

/// A Browse that has not come to its end.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) graph: Arc<Graph>,
    pub(super) position: Position,
}

/// See the module text. The session side of the server owns one for each session.
#[derive(Debug, Default)]
pub struct ContinuationPoints {
    /// Oldest first: number, request it was made in, point.
    points: VecDeque<(u64, u64, Point)>,
    next: u64,
    request: u64,
}

impl ContinuationPoints {
    /// No points.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many points are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether no points are held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Frees all points.
    pub fn clear(&mut self) {
        self.points.clear();
    }

    /// Another request begins: points made before it may give way to points it makes.
    pub(super) fn begin_request(&mut self) {
        self.request = self.request.wrapping_add(1);
    }

    /// Whether a point can be made: there is room, or one of an earlier request that gives way.
    pub(super) fn has_room(&self, limit: u16) -> bool {
        self.points.len() < usize::from(limit) || self.points.front().is_some_and(|oldest| oldest.1 != self.request)
    }

    /// Holds a point, and answers its id. `limit`: how many points there may be; the oldest one gives way.
    pub(super) fn add(&mut self, point: Point, limit: u16) -> [u8; 8] {
        while !self.points.is_empty() && self.points.len() >= usize::from(limit) {
            self.points.pop_front();
        }
        self.next = self.next.wrapping_add(1);
        self.points.push_back((self.next, self.request, point));
        self.next.to_le_bytes()
    }

    /// Takes a point out: it is valid once.
    pub(super) fn take(&mut self, id: Option<&[u8]>) -> Option<Point> {
        let number = u64::from_le_bytes(id?.try_into().ok()?);
        let place = self.points.iter().position(|point| point.0 == number)?;
        self.points.remove(place).map(|point| point.2)
    }
}
