//! What the driver reports: names resolved, connections left open or closed.

use std::net::IpAddr;
use std::sync::Arc;

use rhumb_store::Timestamp;

use super::Frontier;
use super::host::Connection;
use crate::outcome::Outcome;
use crate::url::Host;

impl Frontier {
    /// Hosts whose addresses are wanted; answer each with [`Frontier::resolved`].
    pub fn take_unresolved(&mut self) -> Vec<Host> {
        std::mem::take(&mut self.unresolved)
    }

    /// The addresses of a host, fit to be dialled, until `expires`; or why there are none.
    pub fn resolved(
        &mut self,
        host: &Host,
        answer: Result<(Arc<[IpAddr]>, Timestamp), Outcome>,
        now: Timestamp,
    ) -> rhumb_store::Result<()> {
        let key = host.fingerprint().0;
        let down_until = now.plus_ms(self.config.down_ms);
        let (config, jitter) = (self.config.clone(), self.random.unit());
        let Some(state) = self.hosts.get_mut(key) else { return Ok(()) };
        state.resolving = false;
        match answer {
            // A time to live of nothing still serves the visit that asked.
            Ok((addresses, expires)) => state.addresses = Some((addresses, expires.max(now.plus_ms(1_000)))),
            Err(Outcome::DnsFailed) => state.failed(Outcome::DnsFailed, now, jitter, &config),
            Err(outcome) => state.give_up(outcome, down_until),
        }
        let failed = state.down.map(|(outcome, _)| outcome);
        let errands = if failed.is_some() { std::mem::take(&mut state.errands) } else { Vec::new() };
        if let Some(slot) = state.slot {
            self.schedule(slot);
        }
        for errand in errands {
            self.robots_failed(&errand.for_host, None, now)?;
        }
        Ok(())
    }

    /// How a visit's connection was left: kept open for the next request, or closed.
    pub fn connection_left(&mut self, host: &Host, kept: bool, now: Timestamp) {
        let key = host.fingerprint().0;
        let Some(state) = self.hosts.get_mut(key) else { return };
        if let Connection::Busy(address) = state.connection {
            if kept {
                state.connection = Connection::Idle(address, now);
                self.idle_count += 1;
                if self.addresses.is_wanted(address) {
                    self.close_if_idle(key, |_, _| true);
                } else {
                    self.idle.push_back((now, key));
                    self.addresses.idle(address, key);
                    self.keep_idle_within(self.config.idle_max);
                }
            } else {
                state.connection = Connection::None;
                self.address_freed(address);
            }
        }
    }

    /// Connections to close now; confirm each with [`Frontier::connection_closed`].
    pub fn take_connections_to_close(&mut self) -> Vec<Host> {
        std::mem::take(&mut self.to_close)
    }

    /// An idle connection is closed.
    pub fn connection_closed(&mut self, host: &Host) {
        let key = host.fingerprint().0;
        let Some(state) = self.hosts.get_mut(key) else { return };
        if let Connection::Closing(address) | Connection::Idle(address, _) = state.connection {
            if matches!(state.connection, Connection::Idle(..)) {
                self.idle_count -= 1;
                self.addresses.not_idle(address, key);
            }
            state.connection = Connection::None;
            self.address_freed(address);
            let slot = self.hosts.get(key).and_then(|s| s.slot);
            slot.into_iter().for_each(|s| self.schedule(s));
        }
    }

    pub(super) fn keep_idle_within(&mut self, most: usize) {
        while self.idle_count > most {
            let Some((since, key)) = self.idle.pop_front() else { return };
            self.close_if_idle(key, |_, idle_since| idle_since == since);
        }
    }

    /// Marks connections that were idle for too long to be closed. Called every second or so.
    pub fn close_idle_connections(&mut self, now: Timestamp) {
        while let Some(&(since, key)) = self.idle.front() {
            if now.ms_since(since) < self.config.keep_alive_ms {
                return;
            }
            self.idle.pop_front();
            self.close_if_idle(key, |_, idle_since| idle_since == since);
        }
    }
}
