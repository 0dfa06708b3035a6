// Colours of functions in pictures: the same function has the same one everywhere. Names and borders say what colours say,
// too, since not everybody sees them.

import { computed, signal } from "@preact/signals";
import { model, theme } from "../state/store.ts";

const dark = matchMedia("(prefers-color-scheme: dark)");
const system = signal(dark.matches);
dark.addEventListener("change", () => { system.value = dark.matches; });
export const isDark = computed(() => (theme.value === "auto" ? system.value : theme.value === "dark"));

/** Hues that stay apart for most kinds of colour blindness, in an order in which neighbours differ. */
const HUES = [211, 36, 160, 280, 12, 190, 52, 330, 95, 245, 22, 175];

export type Colouring = "space" | "object" | "file" | "delta" | "ratio";

/** What colours tell. */
export const colouring = signal<Colouring>("space");

function hash(text: string): number {
    let value = 2166136261;
    for (let i = 0; i < text.length; i++) { value = Math.imul(value ^ text.charCodeAt(i), 16777619); }
    return value >>> 0;
}

const known = new Map<string, string>();
/** Colours of functions: names are long, and pictures ask for thousands at once. */
const palettes = new Map<string, (string | undefined)[]>();
let painted: readonly string[] | undefined;

export function colourOf(f: number, by: Colouring): string {
    return coloursBy(by)(f);
}

/** What gives the colour of a function, as long as neither report nor theme change: for those who paint thousands. */
export function coloursBy(by: Colouring): (f: number) => string {
    const { names } = model();
    const none = isDark.value ? "#30353c" : "#e3e5e8";
    // Another report has other functions.
    if (names !== painted) {
        painted = names;
        palettes.clear();
    }
    const kind = `${isDark.value ? "d" : "l"}${by}`;
    const palette = palettes.get(kind) ?? new Array<string | undefined>(names.length);
    palettes.set(kind, palette);
    return (f) => (f < 0 ? none : (palette[f] ??= mixed(f, by)));
}

function mixed(f: number, by: Colouring): string {
    const report = model();
    const text = by === "object" ? report.object(f) : by === "file" ? report.file(f) : `${report.object(f)}\0${report.namespace(f) || report.file(f)}`;
    // Functions of one class have one hue, and differ a little.
    const shade = by === "space" ? hash(report.names[f]) % 5 : 0;
    const key = `${isDark.value ? "d" : "l"}${shade}${text}`;
    const found = known.get(key);
    if (found) { return found; }
    const value = hash(text);
    const hue = HUES[value % HUES.length];
    const colour = isDark.value ? `hsl(${hue} ${28 + shade * 2}% ${25 + shade * 2.4}%)` : `hsl(${hue} ${58 - shade * 2}% ${88 - shade * 1.9}%)`;
    known.set(key, colour);
    return colour;
}

/** From blue (less) over grey to orange (more); `share` from -1 to 1. */
export function deltaColour(share: number): string {
    const size = Math.min(1, Math.abs(share)) ** 0.5;
    const hue = share > 0 ? 28 : 212;
    if (share === 0) { return isDark.value ? "#363b42" : "#eceef0"; }
    return isDark.value ? `hsl(${hue} ${4 + 68 * size}% ${26 + 12 * size}%)` : `hsl(${hue} ${6 + 84 * size}% ${93 - 21 * size}%)`;
}

/** From pale to strong. */
export function heatColour(share: number): string {
    const size = Math.max(0, Math.min(1, share));
    return isDark.value ? `hsl(12 ${15 + 50 * size}% ${24 + 14 * size}%)` : `hsl(12 ${40 + 45 * size}% ${94 - 22 * size}%)`;
}

/** A colour of the style sheet. */
export function styleColour(name: string): string {
    // Read anew when the theme changes.
    void isDark.value;
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
