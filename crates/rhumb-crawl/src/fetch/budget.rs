//! Memory for pages, counted in bytes over all threads: from the first byte of a body to the moment its record is committed.
//!
//! Every visit may hold [`FREE_BYTES`] without asking, so that ordinary pages never wait. A body that grows beyond asks
//! here before it grows, and waits, unread, until there is room: the sender's TCP window closes, and that is how a
//! full crawler pushes back.
//!
//! A body's size is often not known before its end, so it grows in steps, and those who hold some and wait for more could
//! wait for each other for ever. Hence the *lane*: one visit at a time, the one that has waited longest, may grow beyond
//! the budget and never waits again. Whenever somebody waits, somebody else is in the lane and on the way to the end
//! of a fetch that is bounded in time; then, at the latest when all of it is committed, the lane is free for the next. So
//! nobody starves, and the most that is ever held is the budget and one body.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// What every visit may hold without asking.
pub const FREE_BYTES: usize = 64 << 10;

/// Divides the memory for pages: how many large bodies may be handled at once, each of which may take `large_bytes` while
/// it is decoded and packed, and what is left for bodies that arrive or wait.
pub fn split(bytes_max: usize, large_bytes: usize, threads: usize) -> (usize, usize) {
    let large = (bytes_max / 2 / large_bytes.max(1)).clamp(1, threads.max(1));
    (large, bytes_max.saturating_sub(large * large_bytes).max(bytes_max / 4))
}

/// The budget. One for a crawl.
#[derive(Debug)]
pub struct PageBudget {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    used_most: usize,
    lane_taken: bool,
    waiting: VecDeque<(usize, oneshot::Sender<Held>)>,
}

impl PageBudget {
    /// A budget of so many bytes beside what is free and what is in the lane.
    pub fn new(bytes_max: usize) -> Arc<PageBudget> {
        Arc::new(PageBudget { bytes_max, state: Mutex::default() })
    }

    /// Nothing yet, to grow as a body does.
    pub fn hold(self: &Arc<Self>) -> Held {
        Held { budget: self.clone(), bytes: 0, lane: false }
    }

    /// The most that was ever held at once.
    pub fn used_most(&self) -> usize {
        self.lock().used_most
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while counting bytes")
    }

    /// Gives bytes and perhaps the lane back, and hands both on to those who wait.
    fn give_back(self: &Arc<Self>, bytes: usize, lane: bool) {
        let mut granted = Vec::new();
        let mut state = self.lock();
        state.used -= bytes;
        state.lane_taken &= !lane;
        while let Some(&(wanted, _)) = state.waiting.front() {
            let fits = state.used + wanted <= self.bytes_max;
            if !fits && state.lane_taken {
                break;
            }
            let (wanted, sender) = state.waiting.pop_front().expect("it was just looked at");
            if sender.is_closed() {
                continue;
            }
            state.take(wanted);
            state.lane_taken |= !fits;
            granted.push((sender, Held { budget: self.clone(), bytes: wanted, lane: !fits }));
        }
        drop(state);
        // Who gave up in this very moment lets go of it again, by the drop of what could not be sent.
        for (sender, held) in granted {
            let _ = sender.send(held);
        }
    }
}

impl State {
    fn take(&mut self, bytes: usize) {
        self.used += bytes;
        self.used_most = self.used_most.max(self.used);
    }
}

/// Bytes that one visit holds; dropped, they are free for others.
#[derive(Debug)]
pub struct Held {
    budget: Arc<PageBudget>,
    bytes: usize,
    lane: bool,
}

impl Held {
    /// Holds `bytes` altogether, those that are free included; waits until that is possible. False if there was no need to.
    pub async fn grow_to(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE_BYTES).saturating_sub(self.bytes);
        if wanted == 0 {
            return false;
        }
        let waiting = {
            let mut state = self.budget.lock();
            let fits = state.waiting.is_empty() && state.used + wanted <= self.budget.bytes_max;
            if fits || self.lane || !state.lane_taken {
                state.take(wanted);
                if !fits && !self.lane {
                    state.lane_taken = true;
                    self.lane = true;
                }
                self.bytes += wanted;
                return false;
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back((wanted, sender));
            receiver
        };
        let mut granted = waiting.await.expect("a budget outlives its waiting line");
        self.bytes += std::mem::take(&mut granted.bytes);
        self.lane |= std::mem::take(&mut granted.lane);
        true
    }

    /// Holds no more than `bytes` from now on, those that are free included.
    pub fn shrink_to(&mut self, bytes: usize) {
        let keep = bytes.saturating_sub(FREE_BYTES).min(self.bytes);
        let free = self.bytes - keep;
        if free == 0 {
            return;
        }
        // Who keeps more than the budget has room for stays in the lane, or the next one there would come on top of it.
        let leaves = self.lane && self.budget.lock().used - free <= self.budget.bytes_max;
        self.bytes = keep;
        self.lane &= !leaves;
        self.budget.give_back(free, leaves);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 || self.lane {
            self.budget.give_back(self.bytes, self.lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn small_pages_never_ask() {
        let budget = PageBudget::new(0);
        let mut held: Vec<Held> = (0..100).map(|_| budget.hold()).collect();
        block_on(async {
            for held in &mut held {
                assert!(!held.grow_to(FREE_BYTES).await);
            }
        });
        assert_eq!(budget.used_most(), 0);
    }

    /// Bodies that grow step by step, each holding what it has while it waits for more, in a budget that holds one and a half.
    #[test]
    fn all_of_many_huge_bodies_end_and_the_bound_is_kept() {
        const BODY: usize = 16 << 20;
        let budget = PageBudget::new(BODY * 3 / 2);
        block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for n in 0..32_usize {
                let budget = budget.clone();
                tasks.spawn(async move {
                    let mut held = budget.hold();
                    let mut size = FREE_BYTES;
                    while size < BODY {
                        size *= 2;
                        held.grow_to(size).await;
                        tokio::time::sleep(Duration::from_millis(n as u64 % 3)).await;
                    }
                    // The engine takes its time with what is left of it.
                    held.shrink_to(BODY / 4);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                });
            }
            let all =
                tokio::time::timeout(Duration::from_secs(60), async { while tasks.join_next().await.is_some() {} });
            all.await.expect("no two wait for each other");
        });
        assert!(budget.used_most() <= BODY * 5 / 2, "{}", budget.used_most());
        let state = budget.lock();
        assert_eq!((state.used, state.lane_taken, state.waiting.len()), (0, false, 0), "all was given back");
    }

    #[test]
    fn who_gives_up_while_waiting_takes_nothing_along() {
        let budget = PageBudget::new(1 << 20);
        block_on(async {
            let (mut first, mut lane) = (budget.hold(), budget.hold());
            first.grow_to(FREE_BYTES + (1 << 20)).await;
            lane.grow_to(FREE_BYTES + (1 << 20)).await;
            let mut third = budget.hold();
            let waited = tokio::time::timeout(Duration::from_millis(10), third.grow_to(1 << 20)).await;
            assert!(waited.is_err(), "no room, and the lane is taken");
            drop((first, lane));
            assert!(!third.grow_to(1 << 20).await);
        });
        assert_eq!(budget.lock().used, 0);
    }
}
