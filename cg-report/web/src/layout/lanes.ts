// Lanes for jumps beside a listing: the shortest ones innermost, none that overlap in one lane.

export interface Jump {
    /** Places in the listing. */
    from: number;
    to: number;
}

/** The lane of each jump, from 0; -1 where there were too many. */
export function lanes(jumps: readonly Jump[], most: number): Int32Array {
    const out = new Int32Array(jumps.length).fill(-1);
    const order = jumps.map((_, at) => at).sort((a, b) => span(jumps[a]) - span(jumps[b]) || jumps[a].from - jumps[b].from || a - b);
    /** For each lane what is taken, by where it begins. */
    const taken: [number, number][][] = Array.from({ length: most }, () => []);
    for (const at of order) {
        const low = Math.min(jumps[at].from, jumps[at].to);
        const high = Math.max(jumps[at].from, jumps[at].to);
        const free = taken.findIndex((lane) => fits(lane, low, high));
        if (free < 0) { continue; }
        const lane = taken[free];
        lane.splice(before(lane, low), 0, [low, high]);
        out[at] = free;
    }
    return out;
}

function span({ from, to }: Jump): number {
    return Math.abs(to - from);
}

/** How many of a lane's stretches begin before a place. */
function before(lane: [number, number][], low: number): number {
    let [first, last] = [0, lane.length];
    while (first < last) {
        const middle = (first + last) >> 1;
        if (lane[middle][0] < low) { first = middle + 1; } else { last = middle; }
    }
    return first;
}

function fits(lane: [number, number][], low: number, high: number): boolean {
    const at = before(lane, low);
    const above = lane[at - 1];
    const below = lane[at];
    return (!above || above[1] < low) && (!below || below[0] > high);
}
