// Jumps as arrows beside a listing.

import { useMemo } from "preact/hooks";
import { compact, digits } from "../data/format.ts";
import { lanes } from "../layout/lanes.ts";
import { LINE } from "../ui/lines.tsx";

export const LANES = 12;
const STEP = 7;
export const GUTTER = LANES * STEP + 14;

export interface Arrow {
    /** Places in the listing. */
    from: number;
    to: number;
    taken: number;
    /** 0 if it is not conditional. */
    executed: number;
}

export function useLanes(arrows: Arrow[]): Int32Array {
    return useMemo(() => lanes(arrows, LANES), [arrows]);
}

function told({ taken, executed, from, to }: Arrow): string {
    const way = to < from ? "backward" : "forward";
    return executed > 0 ? `${way}, taken ${digits(taken)} of ${digits(executed)}` : `${way}, ${digits(taken)}\u00d7`;
}

/** The arrows that touch lines from `first` to `last`. */
export function Arrows({ arrows, lane, first, last, left }: { arrows: Arrow[]; lane: Int32Array; first: number; last: number; left: number }) {
    const most = Math.max(1, ...arrows.map((arrow) => arrow.taken));
    const missing = new Map<number, number>();
    const shown = arrows.flatMap((arrow, at) => {
        const [low, high] = [Math.min(arrow.from, arrow.to), Math.max(arrow.from, arrow.to)];
        if (high < first || low > last) { return []; }
        if (lane[at] < 0) {
            missing.set(arrow.from, (missing.get(arrow.from) ?? 0) + 1);
            return [];
        }
        return [{ arrow, x: GUTTER - 12 - (lane[at] + 1) * STEP, at }];
    });
    const end = GUTTER - 4;
    return (
        <svg class="arrows" width={GUTTER} height={(last - first + 1) * LINE} aria-hidden="true" style={{ left: `${left}px`, top: `${first * LINE}px` }}>
            {shown.map(({ arrow, x, at }) => {
                const y0 = (arrow.from - first) * LINE + LINE / 2 + 3;
                const y1 = (arrow.to - first) * LINE + LINE / 2 - 3;
                const kind = arrow.to < arrow.from ? "backward" : arrow.executed > 0 ? "conditional" : "always";
                return (
                    <g key={at} class={`jump ${kind}${arrow.taken === 0 ? " never" : ""}`}>
                        <title>{told(arrow)}</title>
                        <path d={`M${end},${y0} H${x + 3} Q${x},${y0} ${x},${y0 + Math.sign(y1 - y0) * 3} V${y1 - Math.sign(y1 - y0) * 3} Q${x},${y1} ${x + 3},${y1} H${end - 4}`} style={{ strokeWidth: `${1 + 1.6 * Math.sqrt(arrow.taken / most)}px` }} />
                        <path class="point" d={`M${end},${y1} l-5,-3 v6 z`} />
                    </g>
                );
            })}
            {[...missing].map(([from, count]) => (from >= first && from <= last
                ? <text key={from} x="2" y={(from - first) * LINE + 14}>+{compact(count)}</text> : null))}
        </svg>
    );
}
