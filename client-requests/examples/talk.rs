//! Makes each kind of request and prints the answers: used by the tests, natively and under Valgrind.

use grind_client_requests::{cachegrind, callgrind, discard_translations, print, running_on_valgrind, tool_name};

fn main() {
    let mut buffer = [0; 32];
    let tool = tool_name(&mut buffer).map(|name| String::from_utf8_lossy(name).into_owned());
    println!("running {}", running_on_valgrind());
    println!("tool {}", tool.as_deref().unwrap_or("-"));
    println!("printed {}", print(c"100 %s\n"));
    discard_translations(main as *const u8, 1);
    cachegrind::start_instrumentation();
    cachegrind::stop_instrumentation();
    callgrind::zero_stats();
    callgrind::add_obj_skip(c"/nowhere");
    callgrind::add_desc(c"described");
    callgrind::dump_stats_at(c"here");
    callgrind::toggle_collect();
    callgrind::toggle_collect();
    println!("done");
}
