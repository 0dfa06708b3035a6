//! The objects of a process as a profile: objects are functions, at the file and the line of the call that has allocated them.
//!
//! The sum of its misses is that of the process's profile. Names are those that are known, and no guesses: `heap@file:line`, else
//! `heap@module+offset`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use cg_format::cachegrind::Profile;
use cg_format::count::TooLarge;
use grind_engine::ProcessReport;

use super::{Object, Site, Tally};
use crate::debuginfo::sanitised;
use crate::symbolizer::{Code, Place, Symbolizer, UNKNOWN};

/// The events of such a profile.
pub const EVENTS: [&str; 6] = ["D1mr", "DLmr", "D1mw", "DLmw", "Blocks", "Bytes"];

/// Where a site is in the source.
#[derive(Clone, Debug)]
struct Known {
    file: Vec<u8>,
    function: Vec<u8>,
    line: u32,
    /// `module+offset`.
    module: Vec<u8>,
}

/// The profile.
///
/// # Errors
/// When a count is larger than a profile can hold.
pub fn profile(
    report: &ProcessReport<'_>,
    found: &[(Object, Tally)],
    symbolizer: &mut dyn Symbolizer,
) -> Result<Profile, TooLarge> {
    let mut profile = Profile::new(EVENTS);
    let places = places(report, found, symbolizer);
    for (object, tally) in found {
        if *tally == Tally::default() {
            continue;
        }
        let [d1mr, dlmr, d1mw, dlmw] = tally.misses;
        let counts = [d1mr, dlmr, d1mw, dlmw, tally.blocks, tally.bytes].map(i128::from);
        match object {
            Object::Heap(site) => {
                let known = &places[&before(*site)];
                let mut name = b"heap@".to_vec();
                if known.line > 0 {
                    name.extend_from_slice(known.file.rsplit(|b| *b == b'/').next().unwrap_or_default());
                    name.extend_from_slice(format!(":{}", known.line).as_bytes());
                } else {
                    name.extend_from_slice(&known.module);
                }
                profile.add(&known.file, &name, known.line.into(), &counts)?;
            }
            Object::Variable(image, n) => {
                let name = image.data.name(*n).map_or(UNKNOWN, |name| name);
                profile.add(&sanitised(image.path.as_os_str().as_bytes()), name, 0, &counts)?;
            }
            Object::Stack(site) => {
                let known = &places[site];
                let name = [b"[stack] ", &known.function[..]].concat();
                profile.add(&known.file, &name, 0, &counts)?;
            }
            Object::Unknown => profile.add(UNKNOWN, UNKNOWN, 0, &counts)?,
        }
    }
    Ok(profile)
}

/// The call that returns there.
fn before(site: Site) -> Site {
    Site { addr: site.addr.wrapping_sub(1), ..site }
}

/// Where the sites of all objects are.
fn places(
    report: &ProcessReport<'_>,
    found: &[(Object, Tally)],
    symbolizer: &mut dyn Symbolizer,
) -> BTreeMap<Site, Known> {
    let sites = found.iter().filter_map(|(object, _)| match object {
        Object::Heap(site) => Some(before(*site)),
        Object::Stack(site) => Some(*site),
        _ => None,
    });
    let mut by_module: BTreeMap<u32, BTreeMap<u64, Site>> = BTreeMap::new();
    for site in sites {
        let module = report.modules.get(site.module as usize);
        let offset = module
            .filter(|m| !m.is_made())
            .map_or(site.addr, |m| site.addr.wrapping_sub(m.start.0).wrapping_add(m.offset));
        by_module.entry(site.module).or_default().insert(offset, site);
    }
    let mut places = BTreeMap::new();
    for (module, sites) in by_module {
        let module = report.modules.get(module as usize);
        let code = match module {
            Some(m) if m.is_made() => Code::Anonymous,
            Some(m) => match (&m.image, &m.path, &m.file) {
                (Some(image), ..) => Code::Image(image),
                (None, Some(path), Some(file)) => Code::File(path, file),
                _ => Code::Anonymous,
            },
            None => Code::Anonymous,
        };
        let name = module.and_then(|m| m.path.as_ref()).and_then(|path| path.file_name());
        let name = sanitised(name.map_or(UNKNOWN, |name| name.as_bytes()));
        let offsets: Vec<u64> = sites.keys().copied().collect();
        let all: Vec<Site> = sites.values().copied().collect();
        let mut tell = |range: Range<usize>, place: Place<'_>| {
            for n in range.start.min(all.len())..range.end.min(all.len()) {
                places.entry(all[n]).or_insert_with(|| Known {
                    file: place.file.to_vec(),
                    function: place.function.to_vec(),
                    line: place.line,
                    module: [&name[..], format!("+{:#x}", offsets[n]).as_bytes()].concat(),
                });
            }
        };
        symbolizer.places(code, &offsets, &mut tell);
        // An answer that never came must not lose counts.
        tell(0..all.len(), Place::UNKNOWN);
    }
    places
}
