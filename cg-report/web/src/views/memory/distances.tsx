// How far apart accesses of a line are: what caches of each size would miss, of the program, its functions and its lines. Of bounds each
// figure is two: at least, and at most.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, percent } from "../../data/format.ts";
import { accesses, missesOf, together, type Distances as Row, type Memory } from "../../data/memory.ts";
import { baseName } from "../../data/names.ts";
import { numbering } from "../../state/store.ts";
import { by } from "../../state/memory.ts";
import { Segments } from "../../ui/parts.tsx";
import { Table, type TableColumn } from "../../ui/table.tsx";
import { goTo } from "./common.ts";

/** Sizes of caches that rows are told for, in bytes. */
const SIZES = [32768, 262144, 1048576, 8388608];
const named = (bytes: number) => (bytes >= 1048576 ? `${bytes / 1048576} MiB` : bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`);

const sorted = signal({ id: "32768", down: true });
const chosen = signal(-1);
const NOTHING: Row = { file: "", line: 0, function: "", first: 0, bins: [], most: [] };

/** A count, or its bounds. */
const between = (least: string, most: string) => (least === most ? least : `${least}..${most}`);

/** Which share of accesses caches of each size would miss; of bounds the room between both. */
function Curve({ all, line, row, name, bounds }: { all: Row; line: number; row: Row | undefined; name: string; bounds: boolean }) {
    const last = Math.max(12, all.bins.length, all.most.length);
    const [width, height, left, below] = [640, 150, 44, 22];
    const x = (bits: number) => left + (bits / last) * (width - left - 12);
    const whole = Math.max(accesses(all), 1);
    const shares = (one: Row, bits: number) => missesOf(one, bits).map((misses) => misses / Math.max(accesses(one), 1));
    const top = Math.max(...[all, ...(row ? [row] : [])].map((one) => shares(one, 0)[1]), 1e-6);
    const y = (share: number) => 8 + (1 - share / top) * (height - below - 12);
    const steps = Array.from({ length: last + 1 }, (_, bits) => bits);
    const along = (one: Row, bound: number) => steps.map((bits) => `${x(bits).toFixed(1)} ${y(shares(one, bits)[bound]).toFixed(1)}`);
    const path = (one: Row, bound: number) => `M${along(one, bound).join("L")}`;
    const room = (one: Row) => `M${[...along(one, 0), ...along(one, 1).reverse()].join("L")}Z`;
    const told = steps.map((bits) => { const [least, most] = missesOf(all, bits); return `${named(line * 2 ** bits)} ${between(percent(least, whole), percent(most, whole))} %`; });
    const lines = (one: Row, kind: string, title: string) => (
        <g class={kind}>
            {bounds && <path d={room(one)} class="room" />}
            {(bounds ? [0, 1] : [0]).map((bound) => <path key={bound} d={path(one, bound)}><title>{title}</title></path>)}
        </g>
    );
    return (
        <svg class="curve" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${bounds ? "Misses of the first level" : "Accesses"} that caches of each size miss: ${told.join(", ")}`}>
            {[0, 0.5, 1].map((part) => (
                <g key={part}><line x1={left} x2={width - 12} y1={y(top * part)} y2={y(top * part)} class="rule" /><text x={left - 5} y={y(top * part) + 4} text-anchor="end">{percent(top * part, 1)} %</text></g>
            ))}
            {steps.filter((bits) => bits % 4 === 0).map((bits) => <text key={bits} x={x(bits)} y={height - 6} text-anchor="middle">{named(line * 2 ** bits)}</text>)}
            {lines(all, "whole", `the whole program: ${told.join(", ")}`)}
            {row && lines(row, "one", name)}
        </svg>
    );
}

export function Distances({ data: { line, sample, hits, rows: all } }: { data: NonNullable<Memory["reuse"]> }) {
    const { id, down } = sorted.value;
    const bounds = hits !== undefined;
    const whole = useMemo(() => together(all, () => "")[0] ?? NOTHING, [all]);
    const bits = (bytes: number) => Math.max(0, Math.round(Math.log2(bytes / Math.max(line, 1))));
    const rows = useMemo(() => {
        const some = by.value === "line" ? [...all] : together(all, ({ file, function: name }) => `${file}\u0000${name}`);
        // Of bounds by the upper one: what is surely far has both.
        const key = (one: Row) => (id === "accesses" ? accesses(one) : id === "first" ? one.first : missesOf(one, bits(Number(id)))[1]);
        return some.sort((a, b) => (key(b) - key(a)) * (down ? 1 : -1) || accesses(b) - accesses(a));
    }, [all, by.value, id, down]);
    const counted = (value: number, of: number) => (numbering.value === "absolute" ? digits(value * sample) : percent(value, of));
    const missed = (one: Row, bytes: number) => missesOf(one, bits(bytes));
    const at = (place: number) => rows[place];
    const name = (one: Row) => `${baseName(one.file)}${by.value === "line" && one.line > 0 ? `:${one.line}` : ""} ${one.function}`;
    const what = bounds ? "misses of D1" : "accesses";
    const ofSize = (bytes: number): TableColumn => ({
        id: String(bytes), title: named(bytes), width: bounds ? 132 : 84,
        hint: `${bounds ? "Misses of D1" : "Accesses"} that a cache of ${named(bytes)} misses, all in one set, as a share of all that it misses${bounds ? " at most; at least, and at most, where these differ" : ""}`,
        bar: (place) => missed(at(place), bytes)[1] / Math.max(missed(whole, bytes)[1], 1),
        cell: (place) => { const [least, most] = missed(at(place), bytes); const of = missed(whole, bytes)[1]; return between(counted(least, of), counted(most, of)); },
        full: (place) => { const [least, most] = missed(at(place), bytes); return `${digits(least * sample)}${least === most ? "" : ` to ${digits(most * sample)}`} of ${digits(accesses(at(place)) * sample)} ${what}`; },
        beside: bounds ? { title: `${named(bytes)} at most`, full: (place) => digits(missed(at(place), bytes)[1] * sample) } : undefined,
    });
    const columns: TableColumn[] = [
        ...SIZES.map(ofSize),
        { id: "first", title: "First", width: 84, hint: "Accesses to lines that the thread had not accessed before, which every cache misses", cell: (place) => counted(at(place).first, whole.first), full: (place) => digits(at(place).first * sample) },
        { id: "accesses", title: bounds ? "D1 misses" : "Accesses", width: 92, cell: (place) => counted(accesses(at(place)), accesses(whole)), full: (place) => digits(accesses(at(place)) * sample) },
        { id: "name", title: by.value === "line" ? "Line" : "Function", text: true, least: 220, cell: (place) => name(at(place)), full: (place) => `${at(place).file}\n${at(place).function}` },
    ];
    const one = rows[chosen.value];
    return (
        <>
            <div class="bar-tools">
                <Segments label="Rows" value={by.value} onChange={(value) => { by.value = value; chosen.value = -1; }} options={[["function", "Functions"], ["line", "Lines"]]} />
                <span class="muted">{sample > 1 ? `\u2248 one of ${digits(sample)} lines was looked at; ` : ""}{bounds ? "bounds: at least, and at most; " : ""}lines of {line} bytes, a cache of one set that replaces what was used longest ago</span>
            </div>
            <Curve all={whole} line={line} row={one} name={one ? name(one) : ""} bounds={bounds} />
            <Table label="Distances" rows={rows.map((_, place) => place)} columns={columns} sort={sorted.value} selected={chosen.value < 0 ? undefined : chosen.value}
                onSelect={(place) => { chosen.value = place; }} onActivate={(place) => goTo(at(place))}
                onSort={(next) => { if (next !== "name") { sorted.value = { id: next, down: next === id ? !down : true }; } }}
                footer={<><span>{digits(rows.length)} rows, {digits(accesses(whole) * sample)} {what}{one ? `; the second line of the picture is ${name(one)}` : "; choose a row to see it in the picture"}</span>
                    {hits !== undefined && <span>{digits(hits)} accesses hit D1: what caches miss of these is not known</span>}</>} />
        </>
    );
}
