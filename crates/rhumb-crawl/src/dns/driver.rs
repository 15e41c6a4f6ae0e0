//! The driver: one task that owns every question under way.
//!
//! A *flight* is the search for one name, with the look-ups that wait for it. It has one *query* per address family.
//! A query is sent to a server and repeated by the schedule: each attempt goes to the next server that has not failed
//! it; a repetition to the same server is the same datagram on the same *route* (socket and id), so an answer to any
//! attempt is accepted until the query ends. SERVFAIL and REFUSED move it to the next server at once; when all servers
//! have failed it, it fails. An alias (CNAME) whose target the answer leaves open is asked for in turn, within the same
//! schedule.
//!
//! Everything happens in [`Driver::poll`], which looks at all sources of news in turn. There is no task, timer or lock
//! per query: all queries in attempt *n* wait equally long, so a first-in-first-out queue per attempt is a timer queue.
//!
//! **Invariant**: at most `in_flight_max` queries are in their first attempt, give or take a second family. This is the
//! *window*, which keeps socket buffers from overflowing; later attempts are outside it, so that dead names cannot clog
//! it. At most `names_max` flights exist. A flight leaves by [`Driver::finish`] only, which fills the cache before it
//! answers the waiting. Read next: `flight.rs`.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Sleep;

use super::flight::{Flight, Plain, Query, QueryKey, Route};
use super::outcome::{Part, remember};
use super::transport::{Dice, Transport, ask_over_tcp};
use super::wire::{Family, Reply, WireName, encode_query, message_id, parse_reply};
use super::{Ask, DnsError, FOREVER, Known, Shared, count, millis};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];
/// Timers may fire this much late, so that a busy driver is not woken for each.
const TICK_MS_MAX: u64 = 10;
/// Servers beyond these are never used: a query remembers in a word which have failed it.
const SERVERS_MAX: usize = 32;
const TCP_REPLIES_MAX: usize = 64;

struct Timer {
    deadline_ms: u64,
    query: QueryKey,
}

struct TcpReply {
    query: QueryKey,
    server: usize,
    id: u16,
    answer: io::Result<Vec<u8>>,
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    asks: mpsc::Receiver<Ask>,
    prefetches: mpsc::Receiver<Arc<str>>,
    transport: Transport,
    dice: Dice,
    flights: HashMap<u32, Flight, Plain>,
    by_name: HashMap<Arc<str>, u32>,
    by_route: HashMap<u32, QueryKey, Plain>,
    next_serial: u32,
    /// Flights that wait for room in the window.
    waiting: VecDeque<u32>,
    /// Queries whose datagram found the socket's buffer full.
    unsent: Vec<QueryKey>,
    window_used: usize,
    /// The server asked first. It changes to one that answers where this one stays silent.
    lead: usize,
    timers: Vec<VecDeque<Timer>>,
    tick_ms: u64,
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` ends; never, while no query waits.
    alarm_ms: u64,
    tcp_gate: Arc<Semaphore>,
    tcp_sender: mpsc::Sender<TcpReply>,
    tcp_replies: mpsc::Receiver<TcpReply>,
    datagram: Vec<u8>,
    now_ms: u64,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<Shared>,
        asks: mpsc::Receiver<Ask>,
        prefetches: mpsc::Receiver<Arc<str>>,
    ) -> io::Result<Driver> {
        let config = &shared.config;
        let servers = &config.servers[..config.servers.len().min(SERVERS_MAX)];
        let transport = Transport::bind(servers, config.sockets.clamp(1, 256))?;
        let (tcp_sender, tcp_replies) = mpsc::channel(TCP_REPLIES_MAX);
        Ok(Driver {
            asks,
            prefetches,
            transport,
            dice: Dice::new(),
            flights: HashMap::default(),
            by_name: HashMap::new(),
            by_route: HashMap::default(),
            next_serial: 0,
            waiting: VecDeque::new(),
            unsent: Vec::new(),
            window_used: 0,
            lead: 0,
            timers: config.schedule.iter().map(|_| VecDeque::new()).collect(),
            tick_ms: (millis(config.schedule[0]) / 20).clamp(1, TICK_MS_MAX),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            alarm_ms: u64::MAX,
            tcp_gate: Arc::new(Semaphore::new(config.tcp_max.max(1))),
            tcp_sender,
            tcp_replies,
            datagram: Vec::with_capacity(512),
            now_ms: 0,
            shared,
        })
    }

    pub(super) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// One round: news first, because it makes room; then new names as far as there is room. Ready when the resolver
    /// is gone.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.now_ms = self.shared.now_ms();
        for socket in 0..self.transport.socket_count() {
            while let Poll::Ready(()) = self.poll_socket(cx, socket) {}
        }
        while let Poll::Ready(Some(reply)) = self.tcp_replies.poll_recv(cx) {
            self.take_tcp_reply(cx, reply);
        }
        for key in std::mem::take(&mut self.unsent) {
            if self.query(key).is_some_and(|query| query.deadline_ms.is_some()) {
                self.send(cx, key);
            }
        }
        self.run_timers(cx);
        while self.flights.len() < self.shared.config.names_max.max(1) {
            match self.asks.poll_recv(cx) {
                Poll::Ready(Some(ask)) => self.admit(ask.name, Some(ask.reply)),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        loop {
            self.start_waiting(cx);
            // Names that somebody waits for go first; a quarter of the window is kept free for those to come.
            let room = self.shared.config.in_flight_max.max(1).div_ceil(4) * 3;
            let crowded = self.flights.len() >= self.shared.config.names_max;
            if !self.waiting.is_empty() || self.window_used >= room || crowded {
                break;
            }
            let Poll::Ready(Some(name)) = self.prefetches.poll_recv(cx) else { break };
            count(&self.shared.counters.prefetched);
            self.admit(name, None);
        }
        self.set_alarm(cx);
        Poll::Pending
    }

    /// Takes up a name, unless it has become known on its way here or is being asked for already.
    fn admit(&mut self, name: Arc<str>, waiter: Option<oneshot::Sender<Known>>) {
        if let Some(known) = self.shared.cache.get(&name, self.now_ms) {
            if let Some(waiter) = waiter {
                count(&self.shared.counters.cache_hits);
                let _ = waiter.send(known);
            }
            return;
        }
        if let Some(flight) = self.by_name.get(&name).and_then(|serial| self.flights.get_mut(serial)) {
            if let Some(waiter) = waiter {
                count(&self.shared.counters.coalesced);
                flight.waiters.push(waiter);
            }
            return;
        }
        let Some(target) = WireName::from_text(&name) else {
            // Not reached: the name has passed `canonical_name`.
            waiter.map(|waiter| waiter.send((Err(DnsError::BadName), self.now_ms)));
            return;
        };
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let second = self.shared.config.ipv6.then(|| Query::new(target.clone()));
        let queries = [Some(Query::new(target)), second];
        self.by_name.insert(Arc::clone(&name), serial);
        self.flights.insert(serial, Flight { name, waiters: waiter.into_iter().collect(), queries });
        self.waiting.push_back(serial);
    }

    fn start_waiting(&mut self, cx: &mut Context<'_>) {
        while self.window_used < self.shared.config.in_flight_max.max(1) {
            let Some(serial) = self.waiting.pop_front() else { return };
            for family in 0..FAMILIES.len() {
                if let Some(query) = self.query((serial, family)) {
                    query.in_window = true;
                    self.window_used += 1;
                    self.send(cx, (serial, family));
                }
            }
        }
    }

    fn query(&mut self, (serial, family): QueryKey) -> Option<&mut Query> {
        self.flights.get_mut(&serial)?.queries[family].as_mut()
    }

    /// Sends a query's present attempt and starts its wait.
    fn send(&mut self, cx: &mut Context<'_>, key: QueryKey) {
        let servers = self.transport.server_count();
        let Some(query) = self.flights.get_mut(&key.0).and_then(|flight| flight.queries[key.1].as_mut()) else {
            return;
        };
        let Some(server) = (0..servers)
            .map(|step| (self.lead + query.attempt + step) % servers)
            .find(|server| query.failed_servers & 1 << server == 0)
        else {
            return;
        };
        let route = query.routes.iter().copied().find(|route| self.transport.server_of(route.socket) == server);
        let route = route.unwrap_or_else(|| {
            // There are many times more routes than flights, so a free one is found in a throw or two.
            let route = loop {
                let dice = self.dice.throw();
                let route = Route { socket: self.transport.any_socket_of(server, dice >> 32), id: dice as u16 };
                if !self.by_route.contains_key(&route.key()) {
                    break route;
                }
            };
            self.by_route.insert(route.key(), key);
            query.routes.push(route);
            route
        });
        encode_query(&mut self.datagram, route.id, &query.target, FAMILIES[key.1], query.edns);
        if self.transport.poll_send(cx, route.socket, &self.datagram).is_pending() {
            self.unsent.push(key);
        } else {
            count(&self.shared.counters.queries);
        }
        let wait_ms = millis(self.shared.config.schedule[query.attempt]);
        let deadline_ms = self.now_ms.saturating_add(wait_ms);
        query.deadline_ms = Some(deadline_ms);
        self.timers[query.attempt].push_back(Timer { deadline_ms, query: key });
    }

    fn poll_socket(&mut self, cx: &mut Context<'_>, socket: usize) -> Poll<()> {
        let packet = std::task::ready!(self.transport.poll_receive(cx, socket));
        let counters = &self.shared.counters;
        let matching = message_id(packet).and_then(|id| {
            let key = *self.by_route.get(&Route { socket: socket as u16, id }.key())?;
            let query = self.flights.get(&key.0)?.queries[key.1].as_ref()?;
            Some((key, parse_reply(packet, &query.target, FAMILIES[key.1], query.links)?))
        });
        match matching {
            Some((key, reply)) => {
                count(&counters.answers);
                self.take_reply(cx, key, self.transport.server_of(socket as u16), reply);
            }
            None => count(&counters.strays),
        }
        Poll::Ready(())
    }

    fn take_reply(&mut self, cx: &mut Context<'_>, key: QueryKey, server: usize, reply: Reply) {
        let Some(query) = self.query(key) else { return };
        let silent_before = query.attempt > 0;
        let chain_ttl_s = query.chain_ttl_s;
        match reply {
            Reply::Addresses { addresses, ttl_s } => {
                if silent_before {
                    self.lead = server;
                }
                self.conclude(key, Part::Addresses { addresses, ttl_s: ttl_s.min(chain_ttl_s) });
            }
            Reply::Alias { target, links, ttl_s } => {
                query.target = target;
                query.links = links;
                query.chain_ttl_s = chain_ttl_s.min(ttl_s);
                query.failed_servers = 0;
                self.forget_routes(key);
                self.send(cx, key);
            }
            Reply::AliasLoop => self.conclude(key, Part::Failed { error: DnsError::CnameLoop, ttl_s: None }),
            Reply::NoName { ttl_s } => self.conclude(key, Part::Failed { error: DnsError::NxDomain, ttl_s }),
            Reply::NoData { ttl_s } => self.conclude(key, Part::Failed { error: DnsError::NoData, ttl_s }),
            Reply::Truncated => self.ask_over_tcp(key, server),
            Reply::NotUnderstood if query.edns => {
                query.edns = false;
                self.send(cx, key);
            }
            Reply::NotUnderstood | Reply::ServerFailure => self.server_failed(cx, key, server, DnsError::ServFail),
            Reply::Refused => self.server_failed(cx, key, server, DnsError::Refused),
            Reply::Malformed => self.server_failed(cx, key, server, DnsError::Malformed),
        }
    }

    /// This server has nothing to say on the query: on to the next at once, or to the end.
    fn server_failed(&mut self, cx: &mut Context<'_>, key: QueryKey, server: usize, error: DnsError) {
        let servers = self.transport.server_count();
        let Some(query) = self.query(key) else { return };
        query.failed_servers |= 1 << server;
        query.last_failure = Some(error);
        if query.failed_servers.count_ones() as usize >= servers {
            self.conclude(key, Part::Failed { error, ttl_s: None });
        } else {
            self.send(cx, key);
        }
    }

    fn ask_over_tcp(&mut self, key: QueryKey, server: usize) {
        count(&self.shared.counters.tcp);
        self.leave_window(key);
        self.forget_routes(key);
        let id = self.dice.throw() as u16;
        let Some(query) = self.query(key) else { return };
        // The TCP task reports in any case, within its own time.
        query.deadline_ms = None;
        let mut message = Vec::new();
        encode_query(&mut message, id, &query.target, FAMILIES[key.1], query.edns);
        let (gate, replies) = (Arc::clone(&self.tcp_gate), self.tcp_sender.clone());
        let (address, wait) = (self.transport.server_address(server), self.shared.config.tcp_wait);
        tokio::spawn(async move {
            let answer = ask_over_tcp(&gate, address, &message, wait).await;
            // The driver may be gone; then nobody waits for the reply either.
            let _ = replies.send(TcpReply { query: key, server, id, answer }).await;
        });
    }

    fn take_tcp_reply(&mut self, cx: &mut Context<'_>, TcpReply { query: key, server, id, answer }: TcpReply) {
        let Some(query) = self.query(key).filter(|query| query.part.is_none()) else { return };
        let reply = match answer {
            Ok(packet) if message_id(&packet) == Some(id) => {
                parse_reply(&packet, &query.target, FAMILIES[key.1], query.links)
            }
            Ok(_) => Some(Reply::Malformed),
            Err(error) => {
                tracing::debug!(%error, "dns over tcp failed");
                return self.expire(cx, key);
            }
        };
        match reply {
            Some(Reply::Truncated) | None => self.server_failed(cx, key, server, DnsError::Malformed),
            Some(reply) => self.take_reply(cx, key, server, reply),
        }
    }

    fn run_timers(&mut self, cx: &mut Context<'_>) {
        if self.now_ms < self.alarm_ms {
            return;
        }
        self.alarm_ms = u64::MAX;
        for attempt in 0..self.timers.len() {
            while let Some(&Timer { deadline_ms, query: key }) = self.timers[attempt].front() {
                if deadline_ms > self.now_ms {
                    break;
                }
                self.timers[attempt].pop_front();
                // A timer whose query has moved on or ended is stale.
                if self.query(key).is_some_and(|query| query.deadline_ms == Some(deadline_ms)) {
                    count(&self.shared.counters.timeouts);
                    self.expire(cx, key);
                }
            }
        }
    }

    /// Has this task woken at the earliest deadline, but not more often than once a tick.
    fn set_alarm(&mut self, cx: &mut Context<'_>) {
        let earliest_ms = self.timers.iter().filter_map(|queue| queue.front()).map(|timer| timer.deadline_ms).min();
        let alarm_ms = earliest_ms.map_or(u64::MAX, |earliest_ms| earliest_ms.max(self.now_ms + self.tick_ms));
        if alarm_ms < self.alarm_ms {
            self.alarm_ms = alarm_ms;
            let until = self.shared.began + Duration::from_millis(alarm_ms).min(FOREVER);
            self.sleep.as_mut().reset(until.into());
        }
        if self.alarm_ms != u64::MAX && self.sleep.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// The wait is over: on to the next attempt, or to the end.
    fn expire(&mut self, cx: &mut Context<'_>, key: QueryKey) {
        self.leave_window(key);
        let attempts = self.timers.len();
        let Some(flight) = self.flights.get_mut(&key.0) else { return };
        let other_found = matches!(&flight.queries[1 - key.1], Some(Query { part: Some(Part::Addresses { .. }), .. }));
        let Some(query) = flight.queries[key.1].as_mut() else { return };
        query.attempt += 1;
        if query.attempt >= attempts || other_found {
            let error = query.last_failure.unwrap_or(DnsError::Timeout);
            self.conclude(key, Part::Failed { error, ttl_s: None });
        } else {
            self.send(cx, key);
        }
    }

    /// A query has its result. The flight ends when all have, or when the name is known not to exist. Some servers
    /// deny the name itself when only its IPv6 address is missing, so that is believed of the IPv4 query only.
    fn conclude(&mut self, key: QueryKey, part: Part) {
        self.leave_window(key);
        self.forget_routes(key);
        let Some(flight) = self.flights.get_mut(&key.0) else { return };
        let Some(query) = flight.queries[key.1].as_mut() else { return };
        let decisive = key.1 == 0 && matches!(part, Part::Failed { error: DnsError::NxDomain, .. });
        query.deadline_ms = None;
        query.part = Some(part);
        if decisive || flight.queries.iter().flatten().all(|query| query.part.is_some()) {
            self.finish(key.0);
        }
    }

    fn finish(&mut self, serial: u32) {
        for family in 0..FAMILIES.len() {
            self.leave_window((serial, family));
            self.forget_routes((serial, family));
        }
        let Some(flight) = self.flights.remove(&serial) else { return };
        self.by_name.remove(&flight.name);
        let parts = flight.queries.into_iter().flatten().filter_map(|query| query.part);
        let known = remember(&self.shared, &flight.name, parts, self.now_ms);
        for waiter in flight.waiters {
            // Whoever has stopped waiting does not mind.
            let _ = waiter.send(known.clone());
        }
    }

    fn leave_window(&mut self, key: QueryKey) {
        if self.query(key).is_some_and(|query| std::mem::take(&mut query.in_window)) {
            self.window_used -= 1;
        }
    }

    fn forget_routes(&mut self, key: QueryKey) {
        let routes = self.query(key).map(|query| std::mem::take(&mut query.routes)).unwrap_or_default();
        for route in routes {
            self.by_route.remove(&route.key());
        }
    }
}
