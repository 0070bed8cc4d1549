//! Machines at a router that can be told to lose what one of them sends to another: cuts of any shape, and
//! each way on its own. Nobody is told: packets vanish.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lan::ip;

/// Who is not heard by whom: pairs of machines, sender first.
pub(crate) type Cuts = BTreeSet<(usize, usize)>;

/// These groups do not hear each other.
pub(crate) fn apart(groups: &[&[usize]]) -> Cuts {
    let mut cuts = Cuts::new();
    for (index, group) in groups.iter().enumerate() {
        for other in groups[index + 1..].iter() {
            cuts.extend(unheard(group, other));
            cuts.extend(unheard(other, group));
        }
    }
    cuts
}

/// What these say is not heard by those, who are heard themselves.
pub(crate) fn unheard(these: &[usize], those: &[usize]) -> Cuts {
    these.iter().flat_map(|from| those.iter().map(|to| (*from, *to))).collect()
}

/// A router, and machines at it. Each has a cable of its own.
pub(crate) struct Router {
    stem: String,
    machines: usize,
    cuts: Mutex<Cuts>,
}

impl Router {
    /// `None` where namespaces cannot be made; then it says so.
    pub(crate) fn new(machines: usize) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let stem = format!("sr{}x{number}", std::process::id());
        let router = Self { stem, machines, cuts: Mutex::default() };
        if !ip(&format!("netns add {}", router.hub())) {
            eprintln!(
                "SKIPPED, NOTHING TESTED: no network namespaces can be made here (they take `ip` and root)"
            );
            return None;
        }
        let made = (0..machines).all(|index| router.plug_in(index)) && router.forwards();
        assert!(made, "there are namespaces, but no router can be made of one");
        Some(router)
    }

    fn hub(&self) -> String {
        format!("{}hub", self.stem)
    }

    fn machine(&self, index: usize) -> String {
        format!("{}m{index}", self.stem)
    }

    /// The address of a machine.
    pub(crate) fn address(index: usize) -> String {
        format!("10.78.0.{}", index + 1)
    }

    fn plug_in(&self, index: usize) -> bool {
        let (hub, machine, address) = (self.hub(), self.machine(index), Self::address(index));
        let gateway = "10.78.0.254";
        ip(&format!("netns add {machine}"))
            && ip(&format!("-n {machine} link add cable type veth peer name c{index} netns {hub}"))
            && ip(&format!("-n {machine} addr add {address}/32 dev cable"))
            && ip(&format!("-n {machine} link set lo up"))
            && ip(&format!("-n {machine} link set cable up"))
            && ip(&format!("-n {hub} addr add {gateway}/32 dev c{index}"))
            && ip(&format!("-n {hub} link set c{index} up"))
            && ip(&format!("-n {hub} route add {address}/32 dev c{index}"))
            && ip(&format!("-n {machine} route add {gateway}/32 dev cable"))
            && ip(&format!("-n {machine} route add default via {gateway} dev cable"))
    }

    /// Has the router pass packets on, also from those whom it would not send any to.
    fn forwards(&self) -> bool {
        let script = "cd /proc/sys/net/ipv4 && echo 1 > ip_forward \
                      && for filter in conf/*/rp_filter; do echo 0 > $filter; done";
        let mut shell = Command::new("ip");
        shell.args(["netns", "exec", &self.hub(), "sh", "-c", script]);
        shell.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// The binary on one of the machines. The process is that of the binary itself.
    pub(crate) fn command(&self, index: usize) -> Command {
        assert!(index < self.machines, "there is no machine {index}");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.machine(index)]);
        command.arg(env!("CARGO_BIN_EXE_sigmalock"));
        command
    }

    /// From now on exactly these are cut, all at once.
    pub(crate) fn lose(&self, wanted: Cuts) {
        let mut cuts = self.cuts.lock().expect("nobody panics here");
        let rule = |verb: &str, (from, to): &(usize, usize)| {
            let (from, to) = (Self::address(*from), Self::address(*to));
            format!("rule {verb} from {from} to {to} blackhole\n")
        };
        let mended = cuts.difference(&wanted).map(|cut| rule("del", cut));
        let script: String =
            mended.chain(wanted.difference(&cuts).map(|c| rule("add", c))).collect();
        let mut batch = Command::new("ip");
        batch.args(["-n", &self.hub(), "-batch", "-"]).stdin(Stdio::piped());
        let mut batch = batch.spawn().expect("`ip` starts");
        let mut input = batch.stdin.take().expect("it is piped");
        input.write_all(script.as_bytes()).expect("`ip` reads");
        drop(input);
        assert!(
            batch.wait().expect("`ip` ends").success(),
            "the router does not do this:\n{script}"
        );
        *cuts = wanted;
    }

    /// The router's end of a cable goes down.
    pub(crate) fn unplug(&self, index: usize) {
        assert!(ip(&format!("-n {} link set c{index} down", self.hub())));
    }

    /// And up again.
    pub(crate) fn plug(&self, index: usize) {
        let (hub, address) = (self.hub(), Self::address(index));
        assert!(ip(&format!("-n {hub} link set c{index} up")));
        assert!(ip(&format!("-n {hub} route add {address}/32 dev c{index}")));
    }

    /// From now on the router takes packets of so many bytes at most from any machine, and loses longer ones without a
    /// word; the machines go on to believe that 1,500 will do.
    pub(crate) fn takes(&self, mtu: u32) {
        for index in 0..self.machines {
            let machine = self.machine(index);
            // The cable itself would else pass large ones on in one piece, whatever the other end takes.
            assert!(ip(&format!("-n {machine} link set cable gso_max_segs 1")));
            assert!(ip(&format!("-n {} link set c{index} mtu {mtu}", self.hub())));
        }
    }

    /// Everybody hears everybody.
    pub(crate) fn heal(&self) {
        self.lose(Cuts::new());
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        for index in 0..self.machines {
            ip(&format!("netns del {}", self.machine(index)));
        }
        ip(&format!("netns del {}", self.hub()));
    }
}
