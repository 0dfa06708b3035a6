//! From the command line to a [`Model`]: reads, subtracts, renames.

use std::collections::{BTreeSet, HashMap};

use anyhow::anyhow;
use cg_cli::load::{self, Loaded};
use cg_cli::paths;
use cg_cli::progress::Progress;
use cg_cli::rename::Renamer;
use cg_format::cachegrind::{Detail, ReadOptions};

use crate::model::{Model, Pair};
use crate::options::Options;

/// Reads the inputs that `options` names.
pub(crate) fn model(options: &Options) -> anyhow::Result<Model> {
    load::check_stdin(&options.files)?;
    let detail = if options.annotates() { Detail::Lines } else { Detail::Functions };
    let read = ReadOptions { detail, ..ReadOptions::default() };
    let progress = Progress::start("cg_annotate");
    let counter = &progress.counter;
    let names = options.files.iter().map(|file| cg_cli::input::name(file));
    let mut renamer = Renamer::new(options.mod_filename.as_ref(), options.mod_funcname.as_ref());
    if !options.diff {
        let Loaded { mut profile, headers, .. } = load::sum(&options.files, &read, counter)?;
        drop(progress);
        renamer.rename(&mut profile)?;
        let mut model = Model::new(profile, names.zip(headers).collect(), None, renamer.originals);
        model.source_map.clone_from(&options.map_source);
        return Ok(model);
    }
    let [first, second] = &options.files[..] else { return Err(anyhow!("--diff needs two files")) };
    let pair = [first, second];
    let mut loaded = load::pair(pair, &read, counter)?;
    drop(progress);
    let matching = match options.mod_filename {
        Some(_) => None,
        None => paths::matching("cg_annotate", options.match_paths, [&loaded[0].profile, &loaded[1].profile])?,
    };
    let file = options.mod_filename.as_ref().or(matching.as_ref());
    let sides = [&loaded[0], &loaded[1]].map(|side| side.profile.total().to_vec());
    // Renamed first: what is joined by it must meet.
    let mut originals = Vec::new();
    for side in &mut loaded {
        let mut renamer = Renamer::new(file, options.mod_funcname.as_ref());
        renamer.rename(&mut side.profile)?;
        originals.push(renamer.originals);
    }
    let kept = options.needs_sides().then(|| [0, 1].map(|side| loaded[side].profile.clone()));
    load::subtract(&mut loaded, pair)?;
    let [before, after] = loaded;
    let headers = [before.headers, after.headers].concat();
    let mut all: HashMap<Vec<u8>, BTreeSet<Vec<u8>>> = HashMap::new();
    for (name, names) in originals.iter().flatten() {
        all.entry(name.clone()).or_default().extend(names.iter().cloned());
    }
    let mut model = Model::new(before.profile, names.zip(headers).collect(), Some(sides), all);
    model.source_map.clone_from(&options.map_source);
    let originals = <[_; 2]>::try_from(originals).map_err(|_| anyhow!("--diff needs two files"))?;
    model.pair = kept.map(|profiles| Pair { profiles, originals, sources: options.shows_growth() });
    Ok(model)
}
