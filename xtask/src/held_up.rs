//! Holds threads of other processes up at random, so that tests meet orders of events which a machine that has nothing else to do shows once
//! in a thousand runs: a thread that ends before its sibling begins, a signal that finds somebody else, a wait that is over too early.
//! A thread that is held up is scheduled when nothing else wants its processor (SCHED_IDLE, sched(7)), and something else always does.
//!
//! What it must never do: touch a process that does not descend from this one, or leave one held up. (It needs `chrt` of util-linux, and
//! no rights: whoever owns a thread may do both.)

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How long a thread is held up, or not, at least.
const ROUND: Duration = Duration::from_millis(50);

/// One thread in so many is held up in a round.
const ONE_IN: u64 = 7;

/// Processes that use nothing but time: enough that a thread that is held up hardly runs, few enough that the others do.
fn spinners() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2))
}

/// Does `work`; meanwhile threads of the processes that it starts are held up.
pub(crate) fn meanwhile<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let there = Command::new("chrt").arg("--version").stdout(Stdio::null()).status();
    ensure!(there.context("cannot run chrt (Debian's package: util-linux)")?.success(), "chrt does not work");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..spinners() {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                threads_below(std::process::id()).into_iter().for_each(|tid| set(tid, random().is_multiple_of(ONE_IN)));
                thread::sleep(ROUND);
            }
            threads_below(std::process::id()).into_iter().for_each(|tid| set(tid, false));
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A field of `/proc/ID/stat` behind the name, from 3 on (proc(5)).
fn field(id: u32, n: usize) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(n - 3)?.parse().ok()
}

fn is_held_up(tid: u32) -> bool {
    const POLICY: usize = 41;
    const SCHED_IDLE: u64 = 5;
    field(tid, POLICY) == Some(SCHED_IDLE)
}

/// A thread that has ended meanwhile is passed over.
fn set(tid: u32, held_up: bool) {
    if is_held_up(tid) != held_up {
        let policy = if held_up { "--idle" } else { "--other" };
        let words = [policy, "--pid", "0", &tid.to_string()];
        Command::new("chrt").args(words).stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
    }
}

/// The threads of all processes that descend from one.
fn threads_below(ancestor: u32) -> Vec<u32> {
    const PARENT: usize = 4;
    let ids = |folder: &str| -> Vec<u32> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    };
    let parents: HashMap<u32, u32> =
        ids("/proc").into_iter().filter_map(|pid| Some((pid, u32::try_from(field(pid, PARENT)?).ok()?))).collect();
    let descends = |pid: u32| {
        let mut above = std::iter::successors(parents.get(&pid), |parent| parents.get(parent)).take(parents.len());
        above.any(|parent| *parent == ancestor)
    };
    let below = parents.keys().copied().filter(|pid| descends(*pid));
    below.flat_map(|pid| ids(&format!("/proc/{pid}/task"))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn threads_of_children_are_held_up_now_and_then_and_left_alone_at_the_end() {
        let run = |words: &[&str]| Command::new("bash").args(["-c", "sleep 60 & wait", "sh"]).args(words).spawn();
        let mut others: Vec<_> = (0..8).map(|_| run(&[]).expect("a child")).collect();
        let mut seen = [false; 2];
        meanwhile(|| {
            let until = Instant::now() + Duration::from_secs(30);
            while seen != [true; 2] && Instant::now() < until {
                threads_below(std::process::id()).into_iter().for_each(|tid| seen[usize::from(is_held_up(tid))] = true);
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
        .expect("chrt");
        assert_eq!(seen, [true; 2], "some were, and some were not");
        let below = threads_below(std::process::id());
        assert!(below.len() >= 16 && !below.iter().any(|tid| is_held_up(*tid)), "{below:?}");
        for child in &mut others {
            Command::new("pkill").args(["-P", &child.id().to_string()]).status().expect("pkill");
            child.wait().expect("its end");
        }
    }
}
