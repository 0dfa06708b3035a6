//! Six dynamically linked programs: the same instructions in every function as under Valgrind, outside the loader and start-up.
//!
//! The reference loads one object more (its preload library), sets `LD_PRELOAD`, hides the vDSO and places things elsewhere.
//! What may differ because of that is listed here, with its reason and a bound; every other difference fails. The test prints
//! what differed (`--nocapture`), and how much of the program was compared exactly. Python hashes objects by address, so that
//! its counts are not reproducible even between two runs of the reference in other environments: there only the sum of all
//! differences is bounded, and a difference of one goes unseen.

use std::collections::BTreeMap;

use grind_tests::compare::{assert_none, assert_same};
use grind_tests::dynamic::{Program, in_loader};
use grind_tests::profile::Profile;

/// Functions that may differ: names (a `*` ends a prefix or starts a suffix), at most how much, why.
const MAY_DIFFER: &[(&str, u64, &str)] = &[
    (
        "memset index strcmp strlen memcpy mempcpy strdup strcspn stat fstat fstatat mmap mprotect __open_nocancel \
         __read_nocancel __GI___close_nocancel __sigsetjmp",
        2000,
        "the loader's own copies and calls, more with one object more",
    ),
    ("__libc_scratch_buffer_set_array_size __cxa_finalize __unregister_atfork", 400, "once for each loaded object"),
    ("getenv unsetenv getauxval sysconf", 2000, "reads the environment and the auxiliary vector, which are others"),
    ("clock_gettime* gettimeofday* time time_syscall", 1 << 40, "the vDSO is hidden by the reference"),
    (
        "*_avx2 *_avx2_movbe *_avx_unaligned_erms *_avx2_unaligned_erms",
        1 << 40,
        "takes other paths by the alignment of its arguments, and the stack lies elsewhere",
    ),
    (
        "_IO_* __underflow __uflow getdelim getline __vfscanf_internal __isoc99_sscanf *strtoul* pthread_getattr_np* \
         __libc_cleanup_*",
        20000,
        "Rust's start-up reads /proc/self/maps, which is another",
    ),
    ("???", 200, "initialisers of the preloaded object"),
];

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(middle), _) if middle.ends_with('*') => name.contains(middle.trim_end_matches('*')),
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == pattern,
    }
}

fn reason(name: &str, difference: u64) -> Option<&'static str> {
    let fits = |(names, most, _): &&(&str, u64, &str)| {
        difference <= *most && names.split_whitespace().any(|pattern| matches(pattern, name))
    };
    MAY_DIFFER.iter().find(fits).map(|(_, _, why)| *why)
}

/// Functions outside the loader.
fn functions(profile: &Profile) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for ((file, function, _), n) in &profile.ir {
        if !in_loader(file) {
            *sums.entry(function.clone()).or_default() += n;
        }
    }
    sums
}

/// By so many thousandths of all instructions functions may differ in all where paths hang on addresses.
const BY_ADDRESS: u64 = 5;

/// Compares all functions.
fn check(program: &Program) {
    let name = program.name;
    if !program.can_be_compared() {
        return;
    }
    let job = program.job();
    let (native, tested, reference) = (job.native(), job.grind(), job.valgrind());
    assert_same(name, &native, &tested.outcome, &tested.log);
    assert_same("the reference", &native, &reference.outcome, &reference.log);
    let (expected, got) = (functions(&reference.only()), functions(&tested.only()));
    let total: u64 = expected.values().sum();
    let (mut wrong, mut exact, mut moved) = (Vec::new(), 0, 0);
    let mut names: Vec<&String> = expected.keys().chain(got.keys()).collect();
    names.sort();
    names.dedup();
    for function in names {
        let [e, g] = [&expected, &got].map(|m| m.get(function).copied().unwrap_or(0));
        let line = format!("{function}: expected {e}, got {g}");
        if e == g {
            exact += e;
        } else if let Some(why) = reason(function, e.abs_diff(g)) {
            println!("{name}: {line} ({why})");
        } else if program.by_address {
            moved += e.abs_diff(g);
            println!("{name}: {line} (objects are hashed and compared by address)");
        } else {
            wrong.push(line);
        }
    }
    println!("{name}: {exact} of {total} instructions in functions with exactly equal counts; {moved} moved");
    assert_none(&format!("{name}: functions, against Valgrind"), &wrong);
    assert!(
        moved * 1000 <= total * BY_ADDRESS,
        "{name}: {moved} of {total} instructions differ, more than addresses explain"
    );
}

grind_tests::test_dynamic_programs! { check }
