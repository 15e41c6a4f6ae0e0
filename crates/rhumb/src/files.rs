//! How many files and sockets may be open at once, and what that leaves for connections.
//!
//! A crawl never runs into the limit by itself: what it keeps open for its own ends is set aside first, and workers and idle
//! connections share the rest.

/// With fewer a crawl does not begin.
pub const MIN: usize = 64;

/// Standard streams, the lock, the status socket, signals, log, archive and index, and second handles of these while they are synced.
const OWN: usize = 28;
/// Sieve runs and host tables, those being merged among them.
const STATE: usize = 18;
/// What a thread's runtime keeps open.
const PER_THREAD: usize = 3;

/// What may be open of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// Visits under way, each with a connection.
    pub workers: usize,
    /// Connections kept beside them.
    pub idle: usize,
    /// Threads that carry out visits.
    pub threads: usize,
    /// Sockets for each name server.
    pub dns_sockets: usize,
}

impl Files {
    /// Divides `limit`, if it can be had, among what is wanted.
    pub fn within(limit: usize, workers: usize, threads: usize, servers: usize) -> Files {
        let threads = threads.min(limit / 32).max(1);
        let dns_sockets = (limit / 32 / servers.max(1)).clamp(1, 8);
        let own = OWN + STATE + PER_THREAD * threads + dns_sockets * servers;
        let room = limit.saturating_sub(own).max(4);
        let workers = workers.min(room * 3 / 4).max(1);
        Files { workers, idle: room - workers, threads, dns_sockets }
    }
}

/// The limit, raised as far as the system lets us and it is of use.
pub fn limit() -> usize {
    rlimit::increase_nofile_limit(65_536).map_or(1_024, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_open_stays_below_the_limit() {
        let check = |limit: usize, workers: usize, threads: usize, servers: usize, expected: [usize; 4]| {
            let f = Files::within(limit, workers, threads, servers);
            assert_eq!([f.workers, f.idle, f.threads, f.dns_sockets], expected, "{limit} files");
            let all = OWN + STATE + PER_THREAD * f.threads + f.dns_sockets * servers + f.workers + f.idle;
            assert!(all <= limit, "{all} of {limit}");
        };
        check(64, 256, 8, 1, [7, 3, 2, 2]);
        check(64, 1, 1, 3, [1, 11, 1, 1]);
        check(1_024, 256, 4, 2, [256, 694, 4, 8]);
        check(65_536, 100_000, 64, 3, [48_955, 16_319, 64, 8]);
    }
}
