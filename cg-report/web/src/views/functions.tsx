// V1: all functions, with their costs.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { compact, digits, exactly, paceOf, pacing, percent } from "../data/format.ts";
import { INCOMPLETE } from "../data/model.ts";
import { csv, save } from "../ui/exports.ts";
import { openMenu } from "../ui/menu.tsx";
import { ordered, ranks } from "../layout/order.ts";
import { cost, Delta, Loading, Name } from "../ui/parts.tsx";
import { Table, type TableColumn } from "../ui/table.tsx";
import { costs, quotients, said, totalOf } from "../state/events.ts";
import { noise } from "../state/runs.ts";
import { about, active, activate, baseTotal, comparison, event, events, found, inclusive, isDiff, model, numbering, parsed, query, ratios,
    sampled, second, select, selected, self, total } from "../state/store.ts";
import { searchFault } from "../state/search.ts";
import type { Numbers } from "../data/columns.ts";

const sorting = signal<{ id: string; down: boolean }>({ id: "incl", down: true });
const onlyChanged = signal<"all" | "changed" | "new" | "gone">("all");

function difference(now: Numbers | undefined, before: Numbers | undefined): Float64Array | undefined {
    return now && before ? Float64Array.from(now, (value, f) => value - before[f]) : undefined;
}

/** The rows that a mask leaves. */
function kept(rows: Uint32Array, mask: Uint8Array): Uint32Array {
    const out = new Uint32Array(rows.length);
    let count = 0;
    for (let at = 0; at < rows.length; at++) {
        out[count] = rows[at];
        count += mask[rows[at]];
    }
    return out.slice(0, count);
}

function sumOf(rows: Uint32Array, values: Numbers): number {
    let sum = 0;
    for (let at = 0; at < rows.length; at++) { sum += values[rows[at]]; }
    return sum;
}

export function Functions({ wide }: { wide: boolean }) {
    const report = model();
    const side = report.side;
    const base = report.base;
    const incl = inclusive();
    const own = self();
    const calls = side.now("fn.calls");
    const flags = side.now("fn.flags");
    const more = second.value;
    const extra = more ? quotients(side, "fn.self", more) : undefined;
    const baseIncl = base ? inclusive(base) : undefined;
    const baseSelf = base ? self(base) : undefined;
    const diff = isDiff.value && comparison.value === "delta";
    const smp = !isDiff.value && sampled.value !== event.value ? sampled.value : undefined;
    const others = wide ? events.value.filter((of) => of !== event.value && of !== smp) : [];
    const otherSelf = others.map((of) => costs(side, "fn.self", of)?.values);
    const rates = wide ? ratios.value.filter((of) => of !== more) : [];
    const rated = rates.map((of) => quotients(side, "fn.self", of));
    const samples = smp ? costs(side, "fn.self", smp)?.values : undefined;
    const allSamples = smp ? totalOf(report, side, smp) : 0;
    // By how much a function's share of samples is above its share of the event.
    const pace = useMemo(() => (samples && own ? Float64Array.from(samples, (count, f) => paceOf(count, allSamples, own[f], total.value)) : undefined), [samples, own, allSamples]);
    const sort = sorting.value;
    const deltaIncl = useMemo(() => (diff ? difference(incl, baseIncl) : undefined), [diff, incl, baseIncl]);
    const deltaSelf = useMemo(() => (diff ? difference(own, baseSelf) : undefined), [diff, own, baseSelf]);

    const listed = useMemo(() => {
        if (!incl) { return new Uint32Array(0); }
        const rows = new Uint32Array(report.functions);
        let count = 0;
        const wanted = diff ? onlyChanged.value : "all";
        const { byName, functions } = report;
        const old = base?.now("fn.flags");
        const oldCalls = base?.now("fn.calls");
        // Where a column has equal values, functions are in the order of their names.
        for (let at = 0; at < functions; at++) {
            const f = byName[at];
            const here = flags[f] !== 0 || calls[f] > 0 || incl[f] !== 0;
            const there = old !== undefined && (old[f] !== 0 || (oldCalls?.[f] ?? 0) > 0);
            const kept = wanted === "all" ? true : wanted === "new" ? here && !there : wanted === "gone"
                ? !here && there : (deltaIncl?.[f] ?? 0) !== 0 || (deltaSelf?.[f] ?? 0) !== 0;
            if ((here || there) && kept) { rows[count++] = f; }
        }
        return rows.slice(0, count);
    }, [incl, flags, onlyChanged.value, diff, deltaIncl, deltaSelf]);

    const placeOf = (values: Numbers, texts: readonly string[]) => {
        const rank = ranks(texts);
        return Uint32Array.from(values, (at) => rank[at]);
    };
    const objects = useMemo(() => (sort.id === "object" ? placeOf(report.objectOf, report.objects) : undefined), [report, sort.id]);
    const files = useMemo(() => (sort.id === "file" ? placeOf(report.fileOf, report.files) : undefined), [report, sort.id]);
    const key: Numbers | undefined = sort.id === "incl" ? (comparison.value === "base" ? baseIncl : incl)
        : sort.id === "self" ? (comparison.value === "base" ? baseSelf : own) : sort.id === "calls" ? calls
        : sort.id === "second" ? extra ?? incl : sort.id === "dincl" ? deltaIncl ?? incl : sort.id === "dself" ? deltaSelf ?? own
        : sort.id === "samples" ? samples ?? own : sort.id === "pace" ? pace ?? own
        : sort.id === "object" ? objects : sort.id === "file" ? files
        : sort.id.startsWith("ratio ") ? rated[rates.findIndex((of) => `ratio ${of.name}` === sort.id)] ?? incl
        : sort.id.startsWith("event ") ? otherSelf[others.findIndex((of) => `event ${of.name}` === sort.id)] ?? incl
        : undefined;
    const all = useMemo(() => (sort.id === "name" ? (sort.down ? listed.slice().reverse() : listed) : key ? ordered(listed, key, sort.down) : listed),
        [listed, sort.id, sort.down, key]);
    const mask = found.value;
    const rows = useMemo(() => (mask ? kept(all, mask) : all), [all, mask]);
    const shownSelf = comparison.value === "base" && baseSelf ? baseSelf : own;
    const sum = useMemo(() => (shownSelf ? sumOf(rows, shownSelf) : 0), [rows, shownSelf]);
    if (!incl || !own || !shownSelf) { return <Loading />; }

    const whole = total.value;
    const shownIncl = comparison.value === "base" && baseIncl ? baseIncl : incl;
    const of = comparison.value === "base" && base ? baseTotal.value : whole;
    const full = (kind: string, values: Numbers) => (f: number) => {
        const column = costs(side, kind, event.value);
        const text = column && values === column.values ? exactly(column, f) : digits(values[f]);
        return `${text} ${event.value.name}, ${percent(values[f], of)} % of the program`;
    };
    const columns: TableColumn[] = [
        { id: "incl", title: "Incl.", hint: `Inclusive cost in ${event.value.name}: with all that is called`, width: wide ? 104 : 76,
            cell: (f) => `${about.value}${cost(shownIncl[f], of, calls[f])}`, bar: (f) => shownIncl[f] / of, full: (f) => `${about.value}${full("fn.incl", shownIncl)(f)}` },
        { id: "self", title: "Self", hint: `Self cost in ${event.value.name}: without what is called`, width: wide ? 104 : 76,
            cell: (f) => cost(shownSelf[f], of, calls[f]), bar: (f) => shownSelf[f] / of, full: full("fn.self", shownSelf) },
    ];
    if (smp && samples) {
        columns.push({ id: "samples", title: smp.name, width: wide ? 84 : 62, hint: `Share of samples, self: ${smp.meaning}`,
            cell: (f) => `${percent(samples[f], allSamples)}${numbering.value === "absolute" ? "\u2009%" : ""}`, bar: (f) => samples[f] / allSamples,
            full: (f) => `${digits(samples[f])} ${smp.name}, ${percent(samples[f], allSamples)} % of those of functions here` });
        if (wide && pace) {
            columns.push({ id: "pace", title: `${smp.name}/${event.value.name}`, width: 84,
                hint: `Share of ${smp.name} by share of self ${event.value.name}: above 1 it takes longer than its ${event.value.name} say`,
                cell: (f) => pacing(pace[f]), full: (f) => `${percent(samples[f], allSamples)} % of ${smp.name}, ${percent(own[f], whole)} % of ${event.value.name}` });
        }
    }
    if (diff && deltaIncl && deltaSelf && baseIncl && baseSelf) {
        const [selfNoise, inclNoise] = [noise("self", event.value), noise("incl", event.value)];
        columns.push({ id: "dself", title: "\u0394 self", width: 88, hint: "New minus base",
            cell: (f) => <Delta now={own[f]} before={baseSelf[f]} noise={selfNoise?.(f)} /> });
        if (wide) {
            columns.push({ id: "dincl", title: "\u0394 incl.", width: 96, hint: "New minus base",
                cell: (f) => <Delta now={incl[f]} before={baseIncl[f]} noise={inclNoise?.(f)} /> });
        }
    }
    if (extra && more) {
        columns.push({ id: "second", title: more.name, hint: `Self cost in ${more.name}: ${more.meaning}`, width: 84,
            cell: (f) => said(more, extra[f]), full: (f) => (Number.isInteger(extra[f]) ? digits(extra[f]) : String(extra[f])) });
    }
    if (wide || (!diff && !extra && !samples)) {
        columns.push({ id: "calls", title: "Calls", width: wide ? 90 : 62, hint: "How often it was called", cell: (f) => compact(calls[f]),
            full: (f) => digits(calls[f]) });
    }
    columns.push({ id: "name", title: "Function", text: true, least: wide ? 260 : 120, cell: (f) => (
        <>
            {(flags[f] & INCOMPLETE) !== 0 && (
                <span class="mark" title={`incomplete: callers saw ${digits(costs(side, "fn.seen", event.value)?.values[f] ?? 0)}, the function with its callees spent another cost`}>{"\u25d0"}</span>
            )}
            <Name f={f} />
            {!wide && !report.hasCalls && <span class="muted">{" \u00b7 "}{last(report.file(f))}</span>}
        </>
    ), full: (f) => `${report.names[f]}\n${report.file(f)}\n${report.object(f)}` });
    if (wide) {
        others.forEach((other, at) => {
            const values = otherSelf[at];
            columns.push({ id: `event ${other.name}`, title: other.name, width: 84, hint: `Self cost in ${other.name}: ${other.meaning}`,
                cell: (f) => (values ? compact(values[f]) : ""), full: (f) => digits(values?.[f] ?? 0) });
        });
        rates.forEach((rate, at) => {
            const values = rated[at];
            columns.push({ id: `ratio ${rate.name}`, title: rate.name, width: 84, hint: `Of self costs: ${rate.meaning}`,
                cell: (f) => (values ? said(rate, values[f]) : ""), full: (f) => String(values?.[f] ?? "") });
        });
        columns.push({ id: "object", title: "Object", width: 150, text: true, cell: (f) => last(report.object(f)), full: (f) => report.object(f) });
        columns.push({ id: "file", title: "File", width: 180, text: true, cell: (f) => last(report.file(f)), full: (f) => report.file(f) });
    }
    const fault = parsed.value.fault || searchFault.value;
    return (
        <Table saves={true} label="Functions" rows={rows} columns={columns} sort={sort}
            onSort={(id) => { sorting.value = { id, down: sort.id === id ? !sort.down : id !== "name" && id !== "file" && id !== "object" }; }}
            selected={selected.value < 0 ? undefined : selected.value} onSelect={select} onActivate={activate} onMenu={openMenu}
            faint={(f) => f === active.value}
            empty={query.value ? `No function is found by \u201c${query.value}\u201d.` : "The profile has no functions."}
            footer={<>
                <span>{digits(rows.length)} of {digits(listed.length)}{fault ? ` \u00b7 ${fault}` : ""}</span>
                {diff && (
                    <label>Show <select value={onlyChanged.value} onChange={(change) => { onlyChanged.value = change.currentTarget.value as "all"; }}>
                        <option value="all">all</option><option value="changed">changed</option>
                        <option value="new">only new</option><option value="gone">only gone</option>
                    </select></label>
                )}
                <span>self {numbering.value === "percent" ? `${percent(sum, of)} %` : compact(sum)}</span>
                <button type="button" class="quiet" title="Save these rows as CSV" onClick={() => {
                    const head = ["function", "file", "object", "calls", `inclusive ${event.value.name}`, `self ${event.value.name}`];
                    const lines = Array.from(rows, (f) => [report.names[f], report.file(f), report.object(f), calls[f], shownIncl[f], shownSelf[f]]);
                    save("functions.csv", new Blob([csv(head, lines)], { type: "text/csv" }));
                }}>CSV</button>
                <button type="button" class="quiet" title="Save these rows as JSON" onClick={() => {
                    const lines = Array.from(rows, (f) => ({ function: report.names[f], file: report.file(f), object: report.object(f),
                        calls: calls[f], inclusive: shownIncl[f], self: shownSelf[f] }));
                    save("functions.json", new Blob([JSON.stringify({ event: event.value.name, functions: lines }, null, 1)], { type: "application/json" }));
                }}>JSON</button>
            </>} />
    );
}

function last(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}
