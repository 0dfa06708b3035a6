//! What the sink must know before it reads records: the blocks and sites that they name, and what is mapped where. Invariant:
//! whoever hands records over has announced the code cache before.

use grind_session::trace_channel::TraceChannel;

use grind_code_cache::CodeCache;

/// Tells the sink of everything in `code_cache` that records may name.
pub(super) fn announce(trace_channel: &TraceChannel, code_cache: &mut CodeCache) {
    let known = code_cache.trace;
    if known.map_changed && (known.recorded.calls.is_some() || known.recorded.objects) {
        trace_channel.mapped(known.id, code_cache.mapped_modules());
        code_cache.trace.map_changed = false;
    }
    let trans = &code_cache.trans;
    trace_channel.blocks(known.id, &trans.trace_blocks[known.announced_blocks..]);
    trace_channel.sites(known.id, &trans.trace_sites[known.announced..], &trans.specials[known.announced_specials..]);
    let (sites, specials, blocks) = (trans.trace_sites.len(), trans.specials.len(), trans.trace_blocks.len());
    code_cache.trace.announced = sites;
    code_cache.trace.announced_specials = specials;
    code_cache.trace.announced_blocks = blocks;
}
