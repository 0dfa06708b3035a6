// V8: what functions do to the caches. Each rate is a sum of misses over a sum of accesses, both exact, divided last.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, percent, ratio } from "../data/format.ts";
import type { Numbers } from "../data/columns.ts";
import { costs, totalOf, type Event } from "../state/events.ts";
import { activate, events, found, model, select, selected } from "../state/store.ts";
import { openMenu } from "../ui/menu.tsx";
import { Empty, Loading, Name, Segments } from "../ui/parts.tsx";
import { Table, type TableColumn } from "../ui/table.tsx";
import { Scatter } from "./scatter.tsx";

const which = signal<"self" | "incl">("self");
const level = signal("LLm");
const picture = signal<"table" | "picture">("table");
const sort = signal({ id: "L1m", down: true });

interface Rate {
    id: string;
    title: string;
    hint: string;
    misses: string;
    of: string;
    /** Misses for each 1,000, not for each 100. */
    thousand?: boolean;
}

const RATES: Rate[] = [
    { id: "l1", title: "L1m/k", hint: "First-level misses per 1,000 instructions", misses: "L1m", of: "Ir", thousand: true },
    { id: "ll", title: "LLm/k", hint: "Last-level misses per 1,000 instructions", misses: "LLm", of: "Ir", thousand: true },
    { id: "i1", title: "I1 %", hint: "Instruction fetches that miss the first level", misses: "I1mr", of: "Ir" },
    { id: "il", title: "IL %", hint: "Instruction fetches that miss the last level", misses: "ILmr", of: "Ir" },
    { id: "d1r", title: "D1 rd %", hint: "Loads that miss the first level", misses: "D1mr", of: "Dr" },
    { id: "dlr", title: "DL rd %", hint: "Loads that miss the last level", misses: "DLmr", of: "Dr" },
    { id: "d1w", title: "D1 wr %", hint: "Stores that miss the first level", misses: "D1mw", of: "Dw" },
    { id: "dlw", title: "DL wr %", hint: "Stores that miss the last level", misses: "DLmw", of: "Dw" },
];
/** What is shown as it is: misses, and what lines in the caches were used for. */
const SUMS = ["L1m", "LLm", "AcCost1", "SpLoss1", "AcCost2", "SpLoss2"];

const named = (name: string): Event | undefined => events.value.find((event) => event.name === name);

/** Whether the profile has something of caches. */
export function hasCaches(): boolean {
    return SUMS.some(named) || RATES.some(({ misses, of }) => named(misses) && named(of));
}

export function Cache() {
    const report = model();
    const kind = `fn.${which.value}`;
    const sums = SUMS.map(named).filter((event) => event !== undefined);
    const rates = RATES.filter(({ misses, of }) => named(misses) && named(of));
    const values = new Map<string, Numbers>();
    let missing = false;
    const want = (event: Event | undefined) => {
        const column = event && costs(report.side, kind, event)?.values;
        if (event && column) { values.set(event.name, column); } else { missing = true; }
    };
    sums.forEach(want);
    rates.forEach(({ misses, of }) => { want(named(misses)); want(named(of)); });
    const { id, down } = sort.value;
    const mask = found.value;
    const chosen = rates.find((rate) => rate.id === id);
    const first = values.get(chosen ? chosen.misses : id) ?? values.values().next().value;
    const by = chosen && values.get(chosen.of);
    const rows = useMemo(() => {
        if (!first || missing) { return []; }
        const key = (f: number) => (by ? (by[f] > 0 ? first[f] / by[f] : -1) : first[f]);
        const order: number[] = [];
        for (let f = 0; f < report.functions; f++) {
            if ((!mask || mask[f]) && [...values.values()].some((column) => column[f] !== 0)) { order.push(f); }
        }
        return order.sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)) || (report.names[a] < report.names[b] ? -1 : 1));
    }, [first, by, mask, down, id, kind, missing]);
    if (!hasCaches()) {
        return <Empty title="No caches were simulated"><p>Record with <code>--cache-sim=yes</code>, and with <code>--cacheuse=yes</code> for how much of each line was used.</p></Empty>;
    }
    if (missing) { return <Loading />; }
    const ir = named("Ir");
    const missed = ["L1m", "LLm"].map(named).filter((event) => event !== undefined);
    const drawn = picture.value === "picture" && ir ? missed.find(({ name }) => name === level.value) ?? missed[0] : undefined;
    const at = (name: string, f: number) => values.get(name)?.[f] ?? 0;
    const columns: TableColumn[] = [
        { id: "name", title: "Function", text: true, least: 200, cell: (f) => <Name f={f} /> },
        ...sums.map(({ name, meaning }): TableColumn => ({ id: name, title: name, width: 92, hint: meaning, cell: (f) => digits(at(name, f)) })),
        ...rates.map(({ id: key, title, hint, misses, of, thousand }): TableColumn => ({ id: key, title, width: 78, hint,
            cell: (f) => (thousand ? ratio(at(misses, f) * 1000, at(of, f)) : percent(at(misses, f), at(of, f))),
            full: (f) => `${digits(at(misses, f))} ${misses} of ${digits(at(of, f))} ${of}` })),
    ];
    return (
        <div class="view">
            <div class="bar-tools">
                <Segments label="Costs" value={which.value} onChange={(value) => { which.value = value; }}
                    options={[["self", "Self", "Without what functions call"], ["incl", "Inclusive", "With all that they call"]]} />
                {ir && missed.length > 0 && <Segments label="Shown as" value={picture.value} onChange={(value) => { picture.value = value; }}
                    options={[["table", "Table"], ["picture", "Picture", "Misses per 1,000 instructions beside instructions"]]} />}
                {drawn && missed.length > 1 && <Segments label="Misses of" value={drawn.name} onChange={(value) => { level.value = value; }} options={missed.map(({ name, meaning }): [string, string, string] => [name, name, meaning])} />}
            </div>
            {drawn && ir && values.get(drawn.name) && values.get("Ir") ? <Scatter count={values.get("Ir") as Numbers} misses={values.get(drawn.name) as Numbers} total={totalOf(report, report.side, ir)} mask={mask} of={drawn.name} by="Ir" />
            : <Table label="Caches" rows={rows} columns={columns} sort={sort.value} selected={selected.value} onSelect={select} onActivate={activate}
                onMenu={openMenu} onSort={(next) => { if (next !== "name") { sort.value = { id: next, down: next === id ? !down : true }; } }}
                footer={<span>{digits(rows.length)} functions</span>} />}
        </div>
    );
}
