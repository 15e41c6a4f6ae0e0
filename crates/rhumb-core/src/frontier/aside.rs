//! URLs that a learned rule holds back: they wait aside, on disk, and are judged again when a rule ends.

use rhumb_store::Result;
use rhumb_store::codec::Take;
use rhumb_store::disk::Disk;
use rhumb_store::fifo::Fifo;

use super::{Frontier, MOVES_MAX, Verdict, malformed};
use crate::visit::Entry;

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Aside {
    urls: Fifo,
    /// So many of them, from the first, are still to be judged again.
    to_judge: u64,
}

impl Aside {
    pub fn len(&self) -> u64 {
        self.urls.len()
    }

    pub fn is_being_judged(&self) -> bool {
        self.to_judge > 0
    }

    pub fn queue(&self) -> &Fifo {
        &self.urls
    }

    /// After a restart all of it is judged again: it is simpler than remembering how far that was, and does no harm.
    pub fn save(&mut self, into: &mut Vec<u8>, unsynced: &mut Vec<String>) {
        self.urls.take_unsynced(unsynced);
        self.urls.save(&[], into);
    }

    pub fn load(from: &mut Take<'_>, disk: &dyn Disk) -> Result<Aside> {
        let urls = Fifo::load(from, disk)?;
        Ok(Aside { to_judge: urls.len(), urls })
    }
}

impl Frontier {
    /// The first entry of a back queue that no rule speaks against. A few at a time are looked at, so that no call takes long.
    pub(super) fn pop_wanted(&mut self, slot: u32) -> Result<Option<Entry>> {
        for _ in 0..MOVES_MAX {
            let Some(entry) = self.pop(slot)? else { return Ok(None) };
            // What the user named, and what failed before and is tried again, is not in question.
            if entry.seed || entry.attempt > 0 || self.traps.judge(&entry.url) == Verdict::Visit {
                return Ok(Some(entry));
            }
            self.waiting -= 1;
            let bytes = entry.to_bytes();
            self.with_front(|this, on| this.aside.urls.push(&bytes, on))?;
        }
        Ok(None)
    }

    /// When a rule has ended, lets the URLs it held back go on.
    pub(super) fn admit_released(&mut self) -> Result<()> {
        if self.traps.take_released() {
            self.aside.to_judge = self.aside.urls.len();
        }
        for _ in 0..MOVES_MAX.min(self.aside.to_judge as usize) {
            self.aside.to_judge -= 1;
            let Some(bytes) = self.with_front(|this, on| this.aside.urls.pop(on))? else { return Ok(()) };
            let entry = Entry::from_bytes(&bytes).map_err(malformed)?;
            if self.is_ghost(&entry) {
                continue;
            }
            if self.traps.speaks_of(&entry.url).is_some() {
                self.with_front(|this, on| this.aside.urls.push(&bytes, on))?;
            } else {
                self.admit(&entry)?;
            }
        }
        Ok(())
    }
}
