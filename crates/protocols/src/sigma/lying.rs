//! What a host does that lies: it gives its vote to whoever asks.

use sigmalock_core::{Context, Input, Protocol, ReplicaId};

use super::message::{Ask, Message, OWNERS_MAX};
use super::owners::Owners;
use super::{Cx, Sigma};
use crate::liar::Deceitful;
use crate::parts::Rules;
use crate::parts::hosting::World;

impl<R: Rules> Deceitful for Sigma<R> {
    /// While it answers one, it forgets who else has its vote; and those who wait get it one by one.
    fn lie(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        let asked = match &input {
            Input::Receive { message: Message::Yield(ask, _), .. } => Some((ask.clone(), true)),
            Input::Receive { message: Message::Request(ask) | Message::Seal(ask, ..), .. } => {
                Some((ask.clone(), false))
            }
            _ => None,
        };
        let hosting = self.hosting.copy();
        let cx = &mut World::new(cx, &*hosting);
        let aside = asked.and_then(|(ask, yields)| self.set_aside(cx, &ask, yields));
        self.handle(cx, input);
        if let Some((id, owners)) = aside {
            self.put_back(&id, owners);
        }
        self.serve_all(cx);
    }
}

impl<R: Rules> Sigma<R> {
    /// Takes the vote from all others, if whoever asks is going to need it.
    fn set_aside(
        &mut self, cx: Cx<'_, '_, R>, ask: &Ask, yields: bool,
    ) -> Option<(ReplicaId, Owners)> {
        let (_, host) = self.roles.as_mut()?;
        let replica = host.replicas.get_mut(&ask.replica)?;
        if !replica.is_mine(&host.state, cx) && host.state.moves {
            return None;
        }
        replica.settle(&mut host.state, cx);
        let has_it = replica.owners.get(&ask.ticket).is_some();
        if has_it && !yields || replica.owners.len() >= OWNERS_MAX {
            return None;
        }
        Some((ask.replica.clone(), replica.owners.all_but(&ask.ticket)))
    }

    /// They have had it all the time.
    fn put_back(&mut self, id: &ReplicaId, owners: Owners) {
        let Some((_, host)) = &mut self.roles else { return };
        if let Some(replica) = host.replicas.get_mut(id) {
            replica.owners.put_back(owners);
        }
    }

    /// Nobody waits who could have it, too.
    fn serve_all(&mut self, cx: Cx<'_, '_, R>) {
        let Some((_, host)) = &mut self.roles else { return };
        for replica in host.replicas.values_mut() {
            while !replica.queue.is_empty() && replica.owners.len() < OWNERS_MAX {
                let owners = core::mem::take(&mut replica.owners);
                replica.settle(&mut host.state, cx);
                let served = !replica.owners.is_empty();
                replica.owners.put_back(owners);
                if !served {
                    break;
                }
            }
        }
    }
}
