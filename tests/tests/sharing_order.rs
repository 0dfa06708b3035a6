//! Lines that go from thread to thread, end to end: as often as closed forms say, and as a map of who has which line says of threads that
//! take turns in a random order.

use std::collections::{BTreeMap, BTreeSet};

use grind_tests::mem::Process;

use super::sharing::{HEAD, ORDER, Random, Sharing, run, written};

/// Two threads that hand a line to each other, each so many times: who waits reads it, and writes it then.
const HANDED: &str = "\
#include <sched.h>
static void *play(void *me) {
    WAIT();
    for (long turn = (long)me; turn < 2 * TIMES; turn += 2) {
        while (*(volatile long *)shared != turn) SPIN;
        *(volatile long *)shared = turn + 1;
    }
    WAIT();
    return me;
}
int main(void) {
    pthread_t t[2];
    pthread_barrier_init(&together, 0, 2);
    for (long n = 0; n < 2; n++) pthread_create(&t[n], 0, play, (void *)n);
    for (int n = 0; n < 2; n++) pthread_join(t[n], 0);
    return 0;
}
";

/// By thread, and by who had written the lines: reads and writes.
type Moves = BTreeMap<(u64, u64), [u64; 2]>;

/// The moves of what has this name, by thread, and by who had written it: reads and writes; and the upgrades of threads.
fn moves(of: &Process, name: &str) -> (Moves, BTreeMap<u64, u64>) {
    let (mut moves, mut upgrades) = (Moves::new(), BTreeMap::new());
    for used in of.rows(name).iter().flat_map(|row| &row.uses) {
        for moved in &used.moves {
            let sums = moves.entry((used.thread, moved.from)).or_default();
            *sums = [sums[0] + moved.reads, sums[1] + moved.writes];
        }
        if used.upgrades > 0 {
            *upgrades.entry(used.thread).or_default() += used.upgrades;
        }
    }
    (moves, upgrades)
}

#[test]
fn a_line_that_is_handed_over_moves_as_often() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (times, spin) in [(1u64, "sched_yield()"), (700, "sched_yield()"), (20, "")] {
        let text = format!("#define TIMES {times}\n#define SPIN {spin}\n{HEAD}{HANDED}");
        let program = written(&text, dir.path());
        let of = run(&["--objects=yes", ORDER], &program, dir.path()).remove(0);
        let (moves, upgrades) = moves(&of, "shared");
        // However a read meets the other one's write, the line comes once for each turn; only the first turn has no one before it.
        let sum = |thread, from| moves.get(&(thread, from)).map_or(0, |[reads, writes]| reads + writes);
        assert_eq!((sum(3, 2), sum(2, 3)), (times, times - 1), "{times}: {moves:?}");
        assert!(moves.keys().all(|key| [(3, 2), (2, 3)].contains(key)), "{moves:?}");
        assert!(upgrades.values().all(|n| *n <= times), "{upgrades:?}");
        // The sums of the object, which those of the rows are, too.
        let shared = of.mem().objects.iter().find(|o| o.name == "shared").expect("the variable");
        assert_eq!(shared.counts[6] + shared.counts[7], 2 * times - 1);
        let order = of.mem().head.sharing.as_ref().and_then(|head| head.order.clone()).expect("an order");
        assert_eq!(order.unplaced, 0);
        // Without objects they are the same lines.
        let of = run(&[ORDER], &program, dir.path()).remove(0);
        let most = of.mem().sharing.iter().map(|row| row.moved()[0] + row.moved()[1]).max();
        assert!(most >= Some(2 * times - 1), "{most:?}");
    }
}

/// Threads that take turns, each of which says what its thread does in which line, by the same numbers as [`turns`] has them.
const TURNS: &str = "\
#include <sched.h>
static _Alignas(64) volatile long turn;
static _Alignas(64) unsigned char data[64 * (LINES + 4)];
static unsigned long state = SEED;
static unsigned long below(unsigned long n) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (state >> 33) % n;
}
static struct { unsigned char thread, what; unsigned short line, at; } todo[STEPS];
static void *play(void *me) {
    WAIT();
    for (long n = 0; n < STEPS; n++) {
        if (todo[n].thread != (long)me) continue;
        while (turn != n) sched_yield();
        unsigned char *at = data + 64 * todo[n].line + todo[n].at, *from = data + 64 * (LINES - todo[n].line);
        unsigned long left = 100, words = 9;
        switch (todo[n].what) {
        case 0: case 1: (void)*(volatile u8 *)at; break;
        case 2: *(volatile u8 *)at = n; break;
        case 3: __asm__ volatile(\"incq %0\" : \"+m\"(*(u8 *)at)); break;
        case 4: __asm__ volatile(\"rep stosb\" : \"+D\"(at), \"+c\"(left) : \"a\"(1) : \"memory\"); break;
        default: __asm__ volatile(\"rep movsq\" : \"+D\"(at), \"+S\"(from), \"+c\"(words) : : \"memory\");
        }
        turn = n + 1;
    }
    WAIT();
    return me;
}
int main(void) {
    pthread_t t[THREADS];
    for (long n = 0; n < STEPS; n++) {
        todo[n].thread = below(THREADS);
        todo[n].what = below(6);
        todo[n].line = below(LINES);
        todo[n].at = below(64);
    }
    pthread_barrier_init(&together, 0, THREADS);
    for (long n = 0; n < THREADS; n++) pthread_create(&t[n], 0, play, (void *)n);
    for (int n = 0; n < THREADS; n++) pthread_join(t[n], 0);
    return 0;
}
";

/// What is said of lines that threads use in this order: the slow and obvious twin of the table that emitted code keeps.
#[derive(Default)]
struct Lines {
    /// By line who has written it last, and who has it.
    lines: BTreeMap<u64, (Option<u64>, BTreeSet<u64>)>,
    moves: Moves,
    upgrades: BTreeMap<u64, u64>,
}

impl Lines {
    fn access(&mut self, thread: u64, line: u64, writes: bool) {
        let (writer, have) = self.lines.entry(line).or_default();
        if let Some(from) = writer.filter(|from| *from != thread) {
            self.moves.entry((thread, from)).or_default()[usize::from(writes)] += 1;
        } else if writes && have.iter().any(|other| *other != thread) {
            *self.upgrades.entry(thread).or_default() += 1;
        }
        if writes {
            *have = BTreeSet::from([thread]);
            *writer = Some(thread);
        } else {
            have.insert(thread);
            *writer = writer.filter(|from| *from == thread);
        }
    }
}

/// What the threads of [`TURNS`] do.
fn turns(seed: u64, threads: u64, lines: u64, steps: u64) -> Lines {
    let mut random = Random(seed);
    let mut of = Lines::default();
    let touched = |from: u64, bytes: u64| from / 64..=(from + bytes - 1) / 64;
    for _ in 0..steps {
        // The first thread of the process has created these.
        let thread = random.below(threads) + 2;
        let (what, line, at) = (random.below(6), random.below(lines), random.below(64));
        let at = 64 * line + at;
        match what {
            0..=3 => touched(at, 8).for_each(|line| of.access(thread, line, what >= 2)),
            4 => touched(at, 100).for_each(|line| of.access(thread, line, true)),
            _ => {
                for n in 0..9 {
                    touched(64 * (lines - line) + 8 * n, 8).for_each(|line| of.access(thread, line, false));
                    touched(at + 8 * n, 8).for_each(|line| of.access(thread, line, true));
                }
            }
        }
    }
    of
}

#[test]
fn threads_that_take_turns_move_lines_as_a_map_says() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (seed, threads, lines, steps) in [(1, 2, 3, 400), (2, 4, 6, 600), (3, 5, 40, 900)] {
        let numbers = [("SEED", seed), ("THREADS", threads), ("LINES", lines), ("STEPS", steps)]
            .map(|(name, n)| format!("#define {name} {n}\n"));
        let program = written(&format!("{}{HEAD}{TURNS}", numbers.concat()), dir.path());
        let of = run(&["--objects=yes", ORDER], &program, dir.path()).remove(0);
        let twin = turns(seed, threads, lines, steps);
        assert!(twin.moves.len() > 1 && twin.upgrades.len() > 1);
        assert_eq!(moves(&of, "data"), (twin.moves, twin.upgrades), "{seed}");
    }
}
