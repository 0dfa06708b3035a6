//! One behaviour a program, named after it: each must print the same and end the same natively and under grind, and leave a
//! readable profile; when instructions are counted, with calls and returns in pairs, too, with simulations, and when calls are
//! followed, since each of these translates in its own way. Calls are followed by emitted code, or told.

mod pressure;

use std::path::{Path, PathBuf};
use std::time::Duration;

use grind_tests::build::Source;
use grind_tests::compare::assert_same;
use grind_tests::disturb::Disturbance;
use grind_tests::run::{Job, Outcome};
use grind_tests::shared::Shared;
use grind_tests::{disturb, tools};

/// A program, and what it did natively.
struct Program {
    path: PathBuf,
    native: Outcome,
}

static PROGRAMS: Shared<Program> = Shared::new();

/// An empty folder to run the program in: at the same place each time, since programs know where they are.
fn work(program: &Path) -> PathBuf {
    let work = program.with_file_name("work");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir(&work).expect("a new folder");
    work
}

fn check(name: &str, options: &[&str]) {
    check_given(name, &[], options);
}

/// The same with arguments for the program.
fn check_given(name: &str, arguments: &[&str], options: &[&str]) {
    let source = Source::open("semantics", name);
    if !source.runs_here() {
        return;
    }
    // Being interrupted all the time takes its time, and so does being told of each block to who computes until time has passed.
    let slow = disturb::wanted() != Disturbance::None || options == TOLD;
    let limit = Duration::from_secs(if slow { 180 } else { 60 });
    let words = |path: &Path| -> Vec<String> {
        [path.display().to_string()].into_iter().chain(arguments.iter().map(|a| (*a).into())).collect()
    };
    let make = |dir: &Path| {
        let path = source.build(dir, false);
        let native = Job { limit, ..Job::new(words(&path), &work(&path)) }.native();
        assert!(native.status.code() != Some(99), "{name}: fails natively\n{}", native.show());
        Program { path, native }
    };
    let profiler: Vec<String> =
        tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).into())).collect();
    PROGRAMS.with(&[&[name], arguments].concat().join("-"), make, |program| {
        let work = work(&program.path);
        let tested = Job { limit, ..Job::new(words(&program.path), &work) }.profiled(&profiler);
        assert_same(name, &program.native, &tested.outcome, &tested.log);
        if options.contains(&CALLS[0]) {
            tested.check_calls();
        } else {
            tested.profiles();
        }
    });
}

const SIMULATION: [&str; 2] = ["--cache-sim=yes", "--branch-sim=yes"];
/// Calls and returns as those of large programs.
const PAIRS: [&str; 1] = ["--pair-calls-from=0"];
const CALLS: [&str; 1] = ["--tool=callgrind"];
/// As they are told one by one, and, of programs that run for longer, followed from some moment on; and with each system call stopping.
const TOLD: [&str; 3] = ["--tool=callgrind", "--told-first=40", "--collect-systime=yes"];

/// Where nothing is counted, and programs run their own code whenever they can: with calls followed elsewhere, and without.
const OWN_CODE: [&str; 3] = ["--tool=callgrind", "--instr-atstart=no", "--native-windows=always"];
const OWN_CODE_COUNTING: [&str; 2] = ["--instr-at-start=no", "--native-windows=always"];

macro_rules! programs {
    ($($(#[$attribute:meta])* $name:ident)*) => {
        $(#[test] $(#[$attribute])* fn $name() { check(stringify!($name), &[]); })*

        mod with_simulations {
            $(#[test] $(#[$attribute])* fn $name() { super::check(stringify!($name), &super::SIMULATION); })*
        }

        mod with_pairs {
            $(#[test] $(#[$attribute])* fn $name() { super::check(stringify!($name), &super::PAIRS); })*
        }

        mod with_calls {
            $(#[test] $(#[$attribute])* fn $name() { super::check(stringify!($name), &super::CALLS); })*
        }

        mod with_calls_told {
            $(#[test] $(#[$attribute])* fn $name() { super::check(stringify!($name), &super::TOLD); })*
        }

        mod with_own_code {
            $(#[test] $(#[$attribute])* fn $name() {
                super::check(stringify!($name), &super::OWN_CODE);
                super::check(stringify!($name), &super::OWN_CODE_COUNTING);
            })*
        }

        #[test]
        fn no_program_is_forgotten() {
            let mut named = vec![$(stringify!($name).to_owned()),*];
            named.push("process_ptraces_its_child".to_owned());
            let mut there: Vec<String> = std::fs::read_dir(tools::fixtures("semantics"))
                .expect("the folder of programs")
                .map(|e| e.expect("a folder entry").file_name().into_string().expect("a name in ASCII"))
                .filter_map(|n| Some(n.split_once('.')?.0.to_owned()).filter(|_| !n.ends_with(".h")))
                .collect();
            named.sort();
            there.sort();
            assert_eq!(named, there);
            let table = std::fs::read_to_string(tools::workspace_root().join("tests/README.md")).expect("the table");
            let missing: Vec<_> = there.iter().filter(|name| !table.contains(&format!("`{name}`"))).collect();
            assert!(missing.is_empty(), "not in tests/README.md: {missing:?}");
        }
    };
}

programs! {
    code_at_the_end_of_a_mapping code_beside_unmapped_pages code_changed_by_int80 code_dlopen_dlclose code_fifteen_byte_instructions code_given_back_by_brk code_instructions_across_page_ends
    code_in_the_middle_of_instructions code_jit_double_mapping code_jit_flipped_protection
    code_jit_writable_executable code_jumps_through_constants code_made_when_the_first_thread_has_ended code_made_writable_before_it_runs code_mapped_apart_after_a_fork
    code_moved_by_mremap
    code_partly_reprotected_beside_a_thread code_partly_rewritten_beside_a_thread code_read_into_by_system_calls code_replaced_without_mmap code_rewrites_its_own_block
    code_rewritten_by_another_thread code_trampolines_on_the_stack code_unmapped_and_mapped_by_another_thread code_unmapped_and_mapped_elsewhere
    corner_address_space_limit corner_avx512 corner_backtrace corner_closed_descriptors corner_code_bytes_read_back
    corner_cpu_features_agree corner_cpuid_changes_nothing_else corner_exceptions corner_flags_across_a_chain_of_landings corner_flags_across_calls_and_returns corner_fs_segment corner_gs_segment corner_huge_argv
    corner_int80 corner_int80_and_syscall_flags corner_invalid_system_call corner_large_allocations corner_lock_all_memory corner_misaligned_accesses corner_no_descriptor_is_left
    corner_personality_and_affinity corner_proc_self corner_rdtsc_moves_on corner_resource_limits
    corner_registers_across_many_stops corner_return_address_is_original corner_rust_panic corner_setjmp_longjmp corner_split_stacks corner_stack_at_an_unusual_place corner_stack_ends_at_a_return_address
    corner_swapcontext_coroutines corner_taken_registers corner_trap_flag corner_trap_flag_repeats corner_unmaps_around_itself corner_vdso_time corner_vsyscall_page corner_x87_addresses
    death_atexit_handlers death_by_kill_keeps_output death_child_outlives_parent death_exit_status_is_masked
    eviction_while_a_process_is_stopped eviction_while_threads_wait_for_each_other eviction_while_threads_wait_in_int80
    fault_blocked_ignored_and_handled fault_bus_error fault_divide fault_in_a_thread fault_int3 fault_kills_when_blocked
    fault_kills_when_unhandled fault_lazily_mapped_memory fault_registers_in_ucontext fault_return_to_nowhere
    fault_segv_address fault_undefined_instruction
    process_created_by_int80 process_daemon process_exec_failures process_exec_self_again process_first_of_its_namespace process_fork_storm process_fork_tree
    process_group_killed_by_a_thread process_groups process_parent_death_signal process_posix_spawn
    process_reaped_by_sigchld process_seccomp_filter process_seccomp_forbids_mappings process_seccomp_strict process_seccomp_traps process_stop_and_continue
    process_stops_itself process_user_namespace process_vfork process_wait_variants
    signal_alarm_in_a_long_block signal_alarm_in_computation signal_alarm_in_floating_point signal_alarm_in_recursion signal_alarm_in_rep
    signal_alarm_in_system_calls signal_alarm_with_live_flags signal_altstack signal_before_an_instruction_that_sets_flags signal_blocked_across_exec signal_faults_sent_by_others signal_frame_beside_code_on_the_stack signal_handler_gets_siginfo
    signal_ignored_and_default signal_ignored_by_threads_that_wait signal_ignored_while_waiting signal_in_blocked_futex signal_interrupts_int80 signal_interrupts_nanosleep
    signal_kills_with_core_signal signal_many_threads_timer signal_mask_in_handler signal_mask_of_a_thread_that_executes signal_masks_changed_thousands_of_times signal_nested_handlers signal_of_a_child_that_is_waited_for
    signal_pause_sigsuspend signal_posix_timer signal_ppoll signal_realtime_queue signal_resethand
    signal_restart_read signal_sending_forbidden_by_filter signal_siglongjmp_out_of_handler signal_signalfd signal_sigwait
    signal_stack_overflow_on_altstack signal_timers_of_microseconds signal_trap_blocked_and_ignored signal_trap_queued_to_threads
    thread_cancelled thread_clone3 thread_condition_variables thread_detached thread_directed_signals
    thread_exec_from_another thread_exit_group_from_another thread_fork_in_a_thread thread_kills_its_process thread_local_storage
    thread_lock_free_stack thread_main_exits_first thread_names_and_ids thread_oldest_among_busy_ones thread_raw_clone thread_registers_at_birth
    thread_thousands_in_a_row thread_two_hundred_at_once
}

/// With so little room for code all translations are thrown away many times.
mod with_eviction {
    const OPTIONS: [&[&str]; 3] = [&[], &super::SIMULATION, &super::CALLS];

    fn check(name: &str) {
        for options in OPTIONS {
            super::check(name, &[options, &["--code-limit=4"]].concat());
        }
    }

    #[test]
    fn eviction_while_a_process_is_stopped() {
        check("eviction_while_a_process_is_stopped");
    }

    #[test]
    fn eviction_while_threads_wait_for_each_other() {
        check("eviction_while_threads_wait_for_each_other");
    }

    #[test]
    fn eviction_while_threads_wait_in_int80() {
        check("eviction_while_threads_wait_in_int80");
    }

    /// Who shared translations gets some of its own before.
    #[test]
    fn corner_no_descriptor_is_left() {
        check("corner_no_descriptor_is_left");
    }
}

/// Threads are stopped wherever they are, again and again, and brought to the end of a block, before all is translated anew.
mod while_code_is_made_anew {
    fn check(name: &str) {
        super::check(name, &["--hot-after=20000"]);
    }

    #[test]
    fn signal_many_threads_timer() {
        check("signal_many_threads_timer");
    }

    #[test]
    fn thread_directed_signals() {
        check("thread_directed_signals");
    }

    #[test]
    fn signal_alarm_in_system_calls() {
        check("signal_alarm_in_system_calls");
    }

    #[test]
    fn process_fork_tree() {
        check("process_fork_tree");
    }

    #[test]
    fn signal_restart_read() {
        // A call that the engine has interrupted is still one that a signal interrupts.
        for _ in 0..5 {
            super::check("signal_restart_read", &["--hot-after=1000", "--pair-calls-from=0", "--beside=always"]);
        }
    }

    #[test]
    fn fault_kills_when_blocked() {
        super::check("fault_kills_when_blocked", &["--hot-after=1"]);
    }

    #[test]
    fn fault_blocked_ignored_and_handled() {
        super::check_given("fault_blocked_ignored_and_handled", &["few"], &["--hot-after=1"]);
    }

    #[test]
    fn thread_kills_its_process() {
        super::check("thread_kills_its_process", &["--hot-after=1000"]);
    }
}

/// Programs that are executed are followed.
mod with_children {
    #[test]
    fn signal_blocked_across_exec() {
        super::check("signal_blocked_across_exec", &["--trace-children=yes"]);
    }

    #[test]
    fn corner_no_descriptor_is_left() {
        super::check("corner_no_descriptor_is_left", &["--trace-children=yes"]);
    }
}

/// Intervals that the kernel alone may not get on with are no reason not to end.
mod timers_of_few_microseconds {
    use super::*;

    /// Runs the program with these arguments in `dir`.
    fn run(dir: &Path, program: &Path, arguments: &[&str], options: &[&str]) {
        let profiler: Vec<String> =
            tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).into())).collect();
        let words = [program.display().to_string()].into_iter().chain(arguments.iter().map(|a| (*a).into()));
        let tested = Job { disturbed: Disturbance::None, ..Job::new(words, dir) }.profiled(&profiler);
        let outcome = &tested.outcome;
        assert!(outcome.status.success(), "{arguments:?} {options:?}: {}\n{}", outcome.show(), tested.log);
    }

    fn check(options: &[&str]) {
        let source = Source::open("semantics", "signal_timers_of_microseconds");
        if !source.runs_here() {
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = source.build(dir.path(), false);
        for us in ["5", "10", "20"] {
            run(dir.path(), &program, &["20", us], options);
        }
    }

    /// A thread that waits for a processor has not got on, however long that takes.
    #[test]
    fn end_though_each_waits_for_others() {
        let source = Source::open("semantics", "signal_timers_of_microseconds");
        if !source.runs_here() {
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = source.build(dir.path(), false);
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..3 * processors {
                scope.spawn(|| {
                    let own = tempfile::tempdir().expect("a temporary folder");
                    for options in [&CALLS[..], &SIMULATION, &CALLS, &[]] {
                        run(own.path(), &program, &[], options);
                    }
                });
            }
        });
    }

    #[test]
    fn end() {
        check(&[]);
    }

    #[test]
    fn end_with_calls() {
        check(&CALLS);
    }
}

/// The program does what it does natively, again and again, while signals of all kinds that nobody sees are sent to it.
fn check_disturbed(name: &str, options: &[&str], rounds: u32) {
    let source = Source::open("semantics", name);
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let words = [source.build(dir.path(), false).display().to_string()];
    let native = Job::new(words.clone(), dir.path()).native();
    let profiler: Vec<String> =
        tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).into())).collect();
    for round in 0..rounds {
        let job = Job { disturbed: Disturbance::Kinds, ..Job::new(words.clone(), dir.path()) };
        let tested = job.profiled(&profiler);
        assert_same(&format!("{name}, round {round}"), &native, &tested.outcome, &tested.log);
    }
}

/// Signals that wait when a handler ends come before the program goes on, whatever somebody else sends meanwhile.
#[test]
fn signals_that_wait_come_first_whoever_interrupts() {
    check_disturbed("signal_realtime_queue", &[CALLS[0], "--beside=always"], 12);
}

/// Who gets many signals is left alone for a spell, with all of them held back: that blocks none of those that kill.
#[test]
fn who_is_left_alone_for_a_spell_is_killed_all_the_same() {
    let options = [&["--code-limit=4", "--beside=always"][..], &SIMULATION].concat();
    check_disturbed("process_group_killed_by_a_thread", &options, 8);
}

/// A child that has ended is waited for, though an ignored signal has interrupted that and the child's, with a handler, comes before the
/// kernel has made the call again; in the program's own code as in translations.
#[test]
fn children_are_waited_for_whoever_interrupts() {
    let simulated = [&["--hot-after=20000"][..], &SIMULATION].concat();
    for options in [&simulated[..], &["--tool=callgrind", "--instr-atstart=no", "--native-windows=always"]] {
        check_disturbed("signal_of_a_child_that_is_waited_for", options, 4);
    }
}

/// A signal with a handler comes, though one that is ignored waits as well, and comes after it.
#[test]
fn waits_for_signals_end_whoever_interrupts() {
    let anew = ["--hot-after=20000", "--code-limit=4", "--beside=always"];
    for options in [&anew[..], &["--tool=callgrind", "--instr-atstart=no", "--native-windows=always"]] {
        check_disturbed("signal_pause_sigsuspend", options, 8);
    }
}

/// A system call that a filter traps is where it is in the program, also if its thread was told to stop before the signal of that came.
#[test]
fn trapped_calls_are_where_they_are_whoever_interrupts() {
    check_disturbed("process_seccomp_traps", &["--hot-after=1", "--code-limit=16", "--beside=always"], 16);
}

/// What is traced cannot be traced again: the program gets EPERM, and the log says why.
#[test]
fn process_that_ptraces_its_child_is_told_why_not() {
    let source = Source::open("semantics", "process_ptraces_its_child");
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), false);
    let job = Job { limit: Duration::from_secs(30), ..Job::new([program.display().to_string()], dir.path()) };
    let tested = job.grind();
    assert!(tested.log.contains("uses ptrace"), "{}", tested.log);
    let text = tested.outcome.show();
    assert!(text.contains("Operation not permitted"), "{text}");
}
