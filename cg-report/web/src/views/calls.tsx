// Callers and callees of the active function: exact counts and costs of arcs.

import { useMemo } from "preact/hooks";
import { compact, digits, percent, ratio } from "../data/format.ts";
import { openMenu } from "../ui/menu.tsx";
import { cost, Delta, Empty, Loading, Name } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { costs } from "../state/events.ts";
import { active, activate, event, inclusive, isDiff, comparison, model, select, selected, shareOf, total, WHOLE } from "../state/store.ts";
import type { Side } from "../data/model.ts";

interface Arc {
    f: number;
    count: number;
    cost: number;
    within: boolean;
}

export function arcsOf(side: Side, f: number, callers: boolean): Map<number, Arc> | undefined {
    const column = costs(side, "arc.cost", event.value)?.values;
    if (!column) { return undefined; }
    const count = side.now("arc.count");
    const within = side.now("arc.within");
    const arcs = new Map<number, Arc>();
    const take = (arc: number, other: number) => {
        arcs.set(other, { f: other, count: count[arc], cost: column[arc], within: within[arc] === 1 });
    };
    if (callers) {
        const { from, order } = side.incoming();
        const caller = side.callers();
        for (let k = from[f]; k < from[f + 1]; k++) { take(order[k], caller[order[k]]); }
    } else {
        const from = side.now("arc.from");
        const to = side.now("arc.to");
        for (let k = from[f]; k < from[f + 1]; k++) { take(k, to[k]); }
    }
    return arcs;
}

function List({ callers }: { callers: boolean }) {
    const report = model();
    const f = active.value;
    const arcs = arcsOf(report.side, f, callers);
    const diff = isDiff.value && comparison.value === "delta" && report.base !== undefined;
    const before = diff && report.base ? arcsOf(report.base, f, callers) : undefined;
    const rows = useMemo(() => {
        const ends = new Set([...(arcs?.keys() ?? []), ...(before?.keys() ?? [])]);
        const of = (end: number) => arcs?.get(end)?.cost ?? 0;
        return [...ends].sort((a, b) => of(b) - of(a) || (report.names[a] < report.names[b] ? -1 : 1));
    }, [arcs && f, event.value, before && f, callers, report.side]);
    const incl = inclusive();
    if (!arcs || !incl) { return <Loading />; }
    const whole = incl[f];
    const of = shareOf(total.value, whole);
    const none: Arc = { f: WHOLE, count: 0, cost: 0, within: false };
    const at = (end: number) => arcs.get(end) ?? none;
    const old = (end: number) => before?.get(end) ?? none;
    const sum = rows.reduce((all, end) => all + (at(end).within ? 0 : at(end).cost), 0);
    const calls = rows.reduce((all, end) => all + at(end).count, 0);
    return (
        <section class="half">
            <h3>{callers ? "Callers" : "Callees"}</h3>
            <Table label={callers ? "Callers" : "Callees"} rows={rows} onSelect={select} onActivate={activate} onMenu={openMenu}
                selected={selected.value === WHOLE ? undefined : selected.value}
                empty={callers ? "Nothing is known to call it." : "It calls nothing that the profile knows."}
                columns={[
                    { id: "cost", title: "Incl.", width: 88, hint: callers ? "What calls from there cost" : "What calls of it cost",
                        cell: (end) => (at(end).within ? "\u21bb" : cost(at(end).cost, of, at(end).count)),
                        bar: (end) => (at(end).within ? 0 : at(end).cost / whole),
                        full: (end) => (at(end).within
                            ? "a call within a cycle: its inclusive cost would be counted twice"
                            : `${digits(at(end).cost)} ${event.value.name}, ${percent(at(end).cost, whole)} % of the active function`) },
                    ...(diff ? [{ id: "delta", title: "\u0394", width: 84, cell: (end: number) => <Delta now={at(end).cost} before={old(end).cost} /> }] : []),
                    { id: "calls", title: "Calls", width: 66, cell: (end) => compact(at(end).count), full: (end) => digits(at(end).count) },
                    { id: "each", title: "Per call", width: 72, cell: (end) => (at(end).within ? "" : ratio(at(end).cost, at(end).count)) },
                    { id: "name", title: "Function", text: true, cell: (end) => <Name f={end} /> },
                ]}
                footer={<><span>{digits(rows.length)}</span><span>{digits(calls)} calls, {percent(sum, of)} %</span></>} />
        </section>
    );
}

export function Calls() {
    if (!model().hasCalls) {
        return <Empty title="This profile has no calls"><p>It was made with <code>--tool=cachegrind</code>. Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    if (active.value === WHOLE) {
        return <Empty title="Choose a function"><p>Double-click a function, or press Enter on it, to see who calls it and whom it calls.</p></Empty>;
    }
    return <div class="split"><List callers={true} /><List callers={false} /></div>;
}
