// Small things that several views share.

import type { ComponentChildren } from "preact";
import { active, activate, event, isDiff, model, numbering, select, short, total } from "../state/store.ts";
import { compact, digits, percent, ratio, signed } from "../data/format.ts";
import { openMenu } from "./menu.tsx";

/** A function's name, which selects it, and makes it active when double-clicked. */
export function Name({ f, plain }: { f: number; plain?: boolean }) {
    const cycle = model().side.now("fn.cycle")[f];
    const text = model().name(f, short.value);
    return (
        <span class="name" title={plain ? undefined : `${model().names[f]}\n${model().file(f)}\n${model().object(f)}`}>
            {cycle > 0 && <span class="mark" title={`member of cycle ${cycle}: inclusive cost is what it spends itself and outside the cycle`}>{"\u21bb"}</span>}
            {text}
        </span>
    );
}

/** A link to a function. */
export function Link({ f, children }: { f: number; children?: ComponentChildren }) {
    return (
        <button type="button" class="link" onClick={() => activate(f)} onContextMenu={(click) => {
            click.preventDefault();
            select(f);
            openMenu(f, click.clientX, click.clientY);
        }}>{children ?? <Name f={f} />}</button>
    );
}

/** A cost as the reader wants it: share of the total, all digits, or per call. */
export function cost(value: number, of: number, calls?: number): string {
    if (numbering.value === "percent" || numbering.value === "parent") { return percent(value, of); }
    if (numbering.value === "percall" && calls !== undefined) { return ratio(value, calls); }
    return Number.isInteger(value) ? digits(value) : digits(Math.round(value));
}

/** All about a cost, for a tooltip. */
export function told(value: number, of: number): string {
    return `${digits(Number.isInteger(value) ? value : Math.round(value))} ${event.value.name}, ${percent(value, of)} %`;
}

/** The change from the base, with its sign; grey if runs differ as much among themselves. */
export function Delta({ now, before, text, noise }: { now: number; before: number; text?: string; noise?: boolean }) {
    const delta = now - before;
    const hint = noise && delta !== 0 ? "\nwithin what the runs differ by" : "";
    const kind = delta > 0 ? "more" : delta < 0 ? "less" : "same";
    return (
        <span class={`delta ${noise ? "noise" : kind}`} title={`${digits(before)} \u2192 ${digits(now)}${hint}`}>
            {delta !== 0 && <span aria-hidden="true">{delta > 0 ? "\u25b2" : "\u25bc"}</span>}
            {text ?? (delta === 0 ? "0" : signed(delta))}
        </span>
    );
}

export function Estimated({ exact }: { exact: boolean }) {
    return exact ? null : (
        <span class="badge" title="Costs with \u2248 are estimated: the profile does not tell what a call cost by the way on which it was reached, so a callee's cost is shared among its callers in proportion to what each call cost.">
            {"\u2248 estimated"}
        </span>
    );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
    return <div class="empty"><h3>{title}</h3>{children}</div>;
}

export function Loading() {
    return <div class="empty" aria-busy="true"><p class="muted">Unpacking {"\u2026"}</p></div>;
}

export function Segments<T extends string>({ label, value, options, onChange }:
    { label: string; value: T; options: [T, string, string?][]; onChange: (value: T) => void }) {
    return (
        <div class="segments" role="group" aria-label={label}>
            {options.map(([id, text, hint]) => (
                <button key={id} type="button" aria-pressed={id === value} title={hint} onClick={() => onChange(id)}>{text}</button>
            ))}
        </div>
    );
}

export function Slider({ label, value, min, max, step, show, onChange }: { label: string; value: number; min: number;
    max: number; step: number; show: (value: number) => string; onChange: (value: number) => void }) {
    return (
        <label class="slider">{label}
            <input type="range" min={min} max={max} step={step} value={value}
                onInput={(input) => onChange(Number(input.currentTarget.value))} />
            <output>{show(value)}</output>
        </label>
    );
}

/** A number that counts up in a sentence. */
export function Count({ value }: { value: number }) {
    return <span class="number" title={digits(value)}>{compact(value)}</span>;
}

export { active, isDiff, total };
