//! From what the recorder found to the profile's text.
//!
//! Nothing is left out and nothing added: a part's total is what its threads collected. Where the files go is the caller's
//! business.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use cg_calls::Profile;
use cg_format::callgrind::{EventSet, Header, Names, Part, PartHeader, Positions, Writer, command_line};
use cg_format::count::TooLarge;

use super::code::Catalogue;
use super::rows;
use super::settings::Settings;
use super::sink::Found;

/// What stands at the beginning of a file.
#[must_use]
pub fn header(pid: i32, args: &[OsString]) -> Header {
    let program = args.first().map_or(&b""[..], |a| a.as_bytes());
    Header {
        creator: format!("grind-{}", crate::called::VERSION).into_bytes(),
        pid: u64::try_from(pid).ok(),
        cmd: command_line(program, args.iter().skip(1).map(|a| a.as_bytes())),
        desc: ["I1 cache: ", "D1 cache: ", "LL cache: "].map(|d| d.as_bytes().to_vec()).to_vec(),
    }
}

/// What a part tells of itself. `number` is the part's, `thread` the thread's if threads are kept apart.
#[must_use]
pub fn part_header(
    settings: &Settings,
    events: EventSet,
    found: &Found,
    number: u64,
    thread: Option<u64>,
) -> PartHeader {
    PartHeader {
        number: Some(number),
        thread,
        desc: vec![found.trigger.description()],
        positions: Positions { instr: settings.dump_instr, line: settings.dump_line },
        types: events.types(),
        events: events.names(),
    }
}

/// The parts of what was found: one, or one for each thread if threads are kept apart, with the thread's number.
///
/// # Errors
/// When a cost is larger than a profile can hold.
pub fn parts(
    settings: &Settings,
    events: EventSet,
    catalogue: &Mutex<Catalogue>,
    found: &Found,
    number: u64,
    names: &mut Names,
) -> Result<Vec<(Option<u64>, Part)>, TooLarge> {
    let mut catalogue = catalogue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut make = |thread: Option<u64>, profile: &Profile| {
        let resolved = catalogue.resolve(profile, &[]);
        let header = part_header(settings, events, found, number, thread);
        rows::part(header, profile, &[], &resolved, names).map(|part| (thread, part))
    };
    if settings.separate_threads {
        return found.threads.iter().map(|(thread, profile)| make(Some(*thread), profile)).collect();
    }
    let mut all = Profile::default();
    for (_, profile) in &found.threads {
        all.merge(profile.clone());
    }
    Ok(vec![make(None, &all)?])
}

/// A whole file of one part.
///
/// # Errors
/// Whatever `out` answers.
pub fn write(
    out: &mut dyn std::io::Write,
    settings: &Settings,
    header: &Header,
    names: &Names,
    part: &Part,
) -> std::io::Result<()> {
    let mut writer = Writer::new(settings.write_options());
    writer.header(out, header)?;
    writer.part(out, names, part, &header.desc)
}

/// The summary at the end of the log: what was collected of each event, then what that means.
#[must_use]
pub fn summary(events: EventSet, total: &[i128]) -> String {
    let names = events.names().join(" ");
    let mut end = total.len();
    while end > 1 && total[end - 1] == 0 {
        end -= 1;
    }
    let numbers: Vec<String> = total[..end].iter().map(i128::to_string).collect();
    let instructions = crate::simulation::with_commas(total.first().copied().unwrap_or(0));
    format!("Events    : {names}\nCollected : {}\n\nI   refs:      {instructions}", numbers.join(" "))
}
