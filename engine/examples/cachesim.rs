//! Totals of a cache simulation, by the plainest models.
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};

use grind_engine::trace::*;
use grind_engine::*;

#[derive(Clone)]
struct Cache {
    sets: u64,
    assoc: usize,
    bits: u32,
    tags: Vec<u64>,
}
impl Cache {
    fn new(size: u64, assoc: usize, line: u64) -> Self {
        let sets = size / line / assoc as u64;
        Self { sets, assoc, bits: line.trailing_zeros(), tags: vec![0; sets as usize * assoc] }
    }
    fn block(&mut self, b: u64) -> bool {
        let s = (b & (self.sets - 1)) as usize * self.assoc;
        let ways = &mut self.tags[s..s + self.assoc];
        if ways[0] == b {
            return false;
        }
        for i in 1..ways.len() {
            if ways[i] == b {
                ways.copy_within(0..i, 1);
                ways[0] = b;
                return false;
            }
        }
        let n = ways.len();
        ways.copy_within(0..n - 1, 1);
        ways[0] = b;
        true
    }
    fn access(&mut self, a: u64, size: u64) -> bool {
        let (x, y) = (a >> self.bits, (a + size - 1) >> self.bits);
        let m = self.block(x);
        if x == y { m } else { self.block(y) | m }
    }
}
#[derive(Default, Clone, Copy, Debug)]
struct Totals {
    i1: u64,
    il: u64,
    dr: u64,
    dw: u64,
    d1r: u64,
    dlr: u64,
    d1w: u64,
    dlw: u64,
    bcm: u64,
    bim: u64,
    records: u64,
}
#[derive(Clone)]
struct Th {
    i1: Cache,
    d1: Cache,
    hist: usize,
    cond: Vec<u8>,
    btac: Vec<u64>,
}
struct Pr {
    space: SpaceId,
    ll: Cache,
    th: HashMap<i32, Th>,
    t: Totals,
}
struct S {
    geo: [(u64, usize, u64); 3],
    sites: HashMap<SpaceId, Vec<Site>>,
    sp: HashMap<SpaceId, Vec<Special>>,
    pr: HashMap<i32, Pr>,
    out: Arc<Mutex<Totals>>,
}
impl Sink for S {
    fn sites(&mut self, s: SpaceId, v: &[Site], sp: &[Special]) {
        self.sp.entry(s).or_default().extend_from_slice(sp);
        self.sites.entry(s).or_default().extend_from_slice(v);
    }
    fn space_copied(&mut self, f: SpaceId, t: SpaceId) {
        let v = self.sites[&f].clone();
        self.sites.insert(t, v);
    }
    fn image(&mut self, pid: i32, s: SpaceId) {
        let g = self.geo[2];
        self.pr.insert(pid, Pr { space: s, ll: Cache::new(g.0, g.1, g.2), th: HashMap::new(), t: Totals::default() });
    }
    fn moved(&mut self, pid: i32, s: SpaceId) {
        self.pr.get_mut(&pid).unwrap().space = s;
    }
    fn forked(&mut self, p: i32, _t: i32, c: i32) {
        let q = &self.pr[&p];
        let n = Pr { space: q.space, ll: q.ll.clone(), th: HashMap::new(), t: q.t };
        self.pr.insert(c, n);
    }
    fn records(&mut self, pid: i32, tid: i32, w: &[u32]) {
        let g = self.geo;
        let p = self.pr.get_mut(&pid).unwrap();
        let sites = &self.sites[&p.space];
        let sp = &self.sp[&p.space];
        let th = p.th.entry(tid).or_insert_with(|| Th {
            i1: Cache::new(g[0].0, g[0].1, g[0].2),
            d1: Cache::new(g[1].0, g[1].1, g[1].2),
            hist: 0,
            cond: vec![0; 1 << 14],
            btac: vec![0; 512],
        });
        let t = &mut p.t;
        let mut i = 0;
        let word = |i: usize| u64::from(w[i]) | u64::from(w[i + 1]) << 32;

        while i < w.len() {
            t.records += 1;
            let s = sites[w[i] as usize];
            match s.kind {
                SiteKind::Fetch => {
                    if th.i1.access(s.addr.0, s.len.into()) {
                        t.i1 += 1;
                        if p.ll.access(s.addr.0, s.len.into()) {
                            t.il += 1;
                        }
                    }
                }
                SiteKind::Read(n) | SiteKind::Modify(n) => {
                    let a = word(i + 1);
                    if th.d1.access(a, n.into()) {
                        t.d1r += 1;
                        if p.ll.access(a, n.into()) {
                            t.dlr += 1;
                        }
                    }
                }
                SiteKind::Write(n) => {
                    let a = word(i + 1);
                    if th.d1.access(a, n.into()) {
                        t.d1w += 1;
                        if p.ll.access(a, n.into()) {
                            t.dlw += 1;
                        }
                    }
                }
                SiteKind::Special { index, words } => {
                    for x in sp[index as usize].touches(&w[i..i + words as usize]) {
                        let m = th.d1.access(x.address, x.size.min(g[1].2));
                        let l = m && p.ll.access(x.address, x.size.min(g[1].2));
                        if x.done == Done::Write {
                            t.dw += 1;
                            t.d1w += u64::from(m);
                            t.dlw += u64::from(l);
                        } else {
                            t.dr += 1;
                            t.d1r += u64::from(m);
                            t.dlr += u64::from(l);
                        }
                    }
                }
                SiteKind::Conditional => {
                    let taken = w[i + 1] != 0;
                    let k = (th.hist & 127) << 7 | (s.addr.0 as usize & 127);
                    if (th.cond[k] >= 2) != taken {
                        t.bcm += 1;
                    }
                    if taken {
                        if th.cond[k] < 3 {
                            th.cond[k] += 1;
                        }
                    } else if th.cond[k] > 0 {
                        th.cond[k] -= 1;
                    }
                    th.hist = th.hist << 1 | usize::from(taken);
                }
                SiteKind::Indirect => {
                    let k = s.addr.0 as usize & 511;
                    let target = word(i + 1);
                    if th.btac[k] != target {
                        t.bim += 1;
                        th.btac[k] = target;
                    }
                }
                SiteKind::Repeated { size, source, target, narrow, .. } => {
                    let mask = if narrow { 0xffff_ffff } else { u64::MAX };
                    let word = |i| word(i) & mask;
                    let (n, si, di) = (word(i + 1).wrapping_sub(word(i + 7)), word(i + 3), word(i + 5));
                    let down = word(i + 9) < si || word(i + 11) < di;
                    let step = if down { (size as u64).wrapping_neg() } else { size as u64 };
                    for k in 0..n {
                        let off = step.wrapping_mul(k);
                        let z = u64::from(size);
                        if source {
                            t.dr += 1;
                            let a = si.wrapping_add(off);
                            if th.d1.access(a, z) {
                                t.d1r += 1;
                                if p.ll.access(a, z) {
                                    t.dlr += 1;
                                }
                            }
                        }
                        let a = di.wrapping_add(off);
                        match target {
                            Target::Read => {
                                t.dr += 1;
                                if th.d1.access(a, z) {
                                    t.d1r += 1;
                                    if p.ll.access(a, z) {
                                        t.dlr += 1;
                                    }
                                }
                            }
                            Target::Write => {
                                t.dw += 1;
                                if th.d1.access(a, z) {
                                    t.d1w += 1;
                                    if p.ll.access(a, z) {
                                        t.dlw += 1;
                                    }
                                }
                            }
                            Target::Unused => {}
                        }
                    }
                }
            }
            i += s.kind.words();
        }
    }
    fn thread_ended(&mut self, _: i32, _: i32) {}
    fn process_ended(&mut self, pid: i32) {
        *self.out.lock().unwrap() = self.pr[&pid].t;
    }
}
struct R {
    out: Arc<Mutex<Totals>>,
}
impl Session for R {
    fn follow_exec(&mut self, _: i32, _: &Path, _: &[OsString]) -> bool {
        false
    }
    fn image_started(&mut self, _: i32, _: i32, _: &Path, _: &[OsString]) {}
    fn forked(&mut self, _: i32, _: i32) {}
    fn process_ends(&mut self, r: &ProcessReport<'_>) {
        let t = *self.out.lock().unwrap();
        let (mut ir, mut dr, mut dw, mut bc, mut bi) = (0, t.dr, t.dw, 0, 0);
        for c in r.counts {
            ir += c.count;
            dr += c.count * u64::from(c.events.reads + c.events.modifies);
            dw += c.count * u64::from(c.events.writes);
            bc += c.count * u64::from(c.events.conditional);
            bi += c.count * u64::from(c.events.indirect);
        }
        eprintln!(
            "summary: {ir} {} {} {dr} {} {} {dw} {} {} {bc} {} {bi} {} ({} records)",
            t.i1, t.il, t.d1r, t.dlr, t.d1w, t.dlw, t.bcm, t.bim, t.records
        );
    }
    fn client_print(&mut self, _: i32, _: &[u8]) {}
    fn redundant_instrumentation(&mut self, _: i32, _: Instrumentation) {}
    fn tool_name(&self) -> &str {
        "cachegrind"
    }
    fn notice(&mut self, _: i32, n: Notice) {
        eprintln!("{n:?}");
    }
}
fn main() {
    let a: Vec<OsString> = std::env::args_os().skip(1).collect();
    let geo: Vec<(u64, usize, u64)> = a[0]
        .to_str()
        .unwrap()
        .split(' ')
        .map(|g| {
            let v: Vec<u64> = g.split(',').map(|x| x.parse().unwrap()).collect();
            (v[0], v[1] as usize, v[2])
        })
        .collect();
    let mode = a[1].to_str().unwrap().to_owned();
    let f = |g: (u64, usize, u64)| Filter { line: g.2 as u32, sets: (g.0 / g.2 / g.1 as u64) as u32 };
    let trace = TraceSettings {
        fetches: mode.contains('i').then(|| f(geo[0])),
        accesses: mode.contains('d').then(|| f(geo[1])),
        branches: mode.contains('b'),
    };
    let program = Program {
        path: a[2].clone().into(),
        args: a[2..].to_vec(),
        env: std::env::vars_os()
            .map(|(k, v)| {
                let mut s = k;
                s.push("=");
                s.push(v);
                s
            })
            .collect(),
    };
    let settings = Settings { cpu: CpuModel::Baseline, count_at_start: true, trace };
    let out = Arc::new(Mutex::new(Totals::default()));
    let sink = S {
        geo: [geo[0], geo[1], geo[2]],
        sites: HashMap::new(),
        sp: HashMap::new(),
        pr: HashMap::new(),
        out: out.clone(),
    };
    let r = run_traced(&program, &settings, &mut R { out }, Box::new(sink));
    eprintln!("{r:?}");
}
