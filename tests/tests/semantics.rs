//! One behaviour a program, named after it: each must print the same and end the same natively and under grind, and leave a
//! readable profile.

use std::time::Duration;

use grind_tests::build::Source;
use grind_tests::compare::assert_same;
use grind_tests::run::Job;
use grind_tests::tools;

fn check(name: &str) {
    let source = Source::open("semantics", name);
    if !source.runs_here() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = source.build(dir.path(), false);
    let work = dir.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let job = Job { limit: Duration::from_secs(30), ..Job::new([program.display().to_string()], &work) };
    let native = job.native();
    assert!(native.status.code() != Some(99), "{name}: fails natively\n{}", native.show());
    let tested = job.grind();
    assert_same(name, &native, &tested.outcome, &tested.log);
    tested.profiles();
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn no_program_is_forgotten() {
            let mut named = vec![$(stringify!($name).to_owned()),*];
            let mut there: Vec<String> = std::fs::read_dir(tools::fixtures("semantics"))
                .expect("the folder of programs")
                .map(|e| e.expect("a folder entry").file_name().into_string().expect("a name in ASCII"))
                .filter_map(|n| Some(n.split_once('.')?.0.to_owned()).filter(|_| !n.ends_with(".h")))
                .collect();
            named.sort();
            there.sort();
            assert_eq!(named, there);
        }
    };
}

programs! {
    fault_bus_error fault_divide fault_in_a_thread fault_int3 fault_kills_when_blocked
    fault_kills_when_unhandled fault_lazily_mapped_memory fault_registers_in_ucontext fault_return_to_nowhere
    fault_segv_address fault_undefined_instruction
    signal_alarm_in_computation signal_alarm_in_floating_point signal_alarm_in_recursion signal_alarm_in_rep
    signal_alarm_in_system_calls signal_alarm_with_live_flags signal_altstack signal_handler_gets_siginfo
    signal_ignored_and_default signal_in_blocked_futex signal_interrupts_nanosleep
    signal_kills_with_core_signal signal_many_threads_timer signal_mask_in_handler signal_nested_handlers
    signal_pause_sigsuspend signal_posix_timer signal_ppoll signal_realtime_queue signal_resethand
    signal_restart_read signal_siglongjmp_out_of_handler signal_signalfd signal_sigwait
    signal_stack_overflow_on_altstack
}
