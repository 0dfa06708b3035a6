// Functions that were inlined into the active one, with what each of them costs there: exact, since an instruction belongs to one.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, percent } from "../data/format.ts";
import { machineOf } from "../data/machine.ts";
import { inlinedOf } from "../layout/inlined.ts";
import { shortened } from "../data/names.ts";
import { active, event, plainModel, second, shareOf, short, shownTotal, WHOLE } from "../state/store.ts";
import { cost, Empty, Loading } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { syntax } from "./machine.tsx";

const closed = signal<ReadonlySet<string>>(new Set());
const chosen = signal(0);

export function InlinedView() {
    const report = plainModel();
    const f = active.value;
    const usable = f !== WHOLE && report.pack.head.sides[0].addresses;
    const lines = usable ? machineOf(report, report.side, f, event.value, second.value, syntax.value) : undefined;
    const tree = useMemo(() => (lines ? inlinedOf(lines, report.names[f]) : []), [lines?.length, f, event.value, report.side]);
    if (!report.pack.head.sides[0].addresses) { return <Empty title="This profile has no addresses"><p>What was inlined is found by instructions: record with <code>--dump-instr=yes</code>, and build with <code>-g</code>.</p></Empty>; }
    if (f === WHOLE) { return <Empty title="Choose a function"><p>Double-click a function to see what was inlined into it.</p></Empty>; }
    if (!lines) { return <Loading />; }
    if (tree.length < 2) { return <Empty title="Nothing inlined is known"><p>Either nothing was inlined here, or the object file or its debug information was not there when the report was made.</p></Empty>; }
    const key = (at: number): string => (at < 0 ? "" : `${key(tree[at].parent)}\u0000${tree[at].name} ${tree[at].site}`);
    const rows: number[] = [];
    const waiting = [0];
    while (waiting.length > 0) {
        const at = waiting.pop() as number;
        rows.push(at);
        if (!closed.value.has(key(at))) { waiting.push(...tree[at].children.slice().sort((a, b) => tree[a].all - tree[b].all)); }
    }
    const of = Math.max(tree[0].all, 1);
    return (
        <Table label="Inlined" rows={rows} selected={chosen.value < tree.length ? chosen.value : undefined} onSelect={(at) => { chosen.value = at; }}
            tree={(at) => ({ level: tree[at].level, open: tree[at].children.length > 0 ? !closed.value.has(key(at)) : undefined })}
            onToggle={(at) => {
                const next = new Set(closed.value);
                if (!next.delete(key(at))) { next.add(key(at)); }
                closed.value = next;
            }}
            columns={[
                { id: "name", title: "Inlined function", text: true, least: 220, cell: (at) => (short.value ? shortened(tree[at].name) : tree[at].name), full: (at) => tree[at].name },
                { id: "all", title: "With inner", width: 104, hint: "Self cost of it and of what was inlined into it", bar: (at) => tree[at].all / of,
                    cell: (at) => cost(tree[at].all, tree[at].parent < 0 ? shownTotal.value : shareOf(shownTotal.value, tree[tree[at].parent].all)), full: (at) => `${digits(tree[at].all)}, ${percent(tree[at].all, of)} % of the function` },
                { id: "own", title: "Self", width: 104, bar: (at) => tree[at].own / of, cell: (at) => cost(tree[at].own, shareOf(shownTotal.value, tree[at].all)), full: (at) => digits(tree[at].own) },
                { id: "site", title: "Called at", width: 220, text: true, cell: (at) => tree[at].site.slice(tree[at].site.lastIndexOf("/") + 1), full: (at) => tree[at].site },
            ]}
            footer={<span>{digits(tree.length - 1)} inlined calls; their self costs and the function's own add up to {percent(tree[0].all, shownTotal.value)} %</span>} />
    );
}
