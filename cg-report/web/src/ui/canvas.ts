// What pictures on a canvas share: size, text that fits, hatching.

import { useEffect, useRef, useState } from "preact/hooks";

/** The size of an element, kept up to date. */
export function useSize<T extends HTMLElement>() {
    const ref = useRef<T>(null);
    const [size, setSize] = useState({ width: 0, height: 0 });
    useEffect(() => {
        const element = ref.current;
        if (!element) { return undefined; }
        const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
        measure();
        const observer = new ResizeObserver(measure);
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    return { ref, ...size };
}

/** Makes a canvas as sharp as the screen; gives what to paint with, in CSS pixels. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
    const scale = window.devicePixelRatio || 1;
    const [across, down] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
    if (canvas.width !== across || canvas.height !== down) {
        canvas.width = across;
        canvas.height = down;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
    }
    const paint = canvas.getContext("2d");
    paint?.setTransform(scale, 0, 0, scale, 0, 0);
    paint?.clearRect(0, 0, width, height);
    return paint;
}

export const FONT = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif";

/** Widths of texts, of each font by itself. */
const widths = new Map<string, Map<string, number>>();

function widthOf(paint: CanvasRenderingContext2D, text: string): number {
    const { font } = paint;
    let known = widths.get(font);
    if (!known) { widths.set(font, (known = new Map())); }
    let width = known.get(text);
    if (width === undefined) {
        if (known.size > 50_000) { known.clear(); }
        known.set(text, (width = paint.measureText(text).width));
    }
    return width;
}

/** Less room than for this many pixels says nothing. */
export const LEAST = 16;
/** No letter is narrower on the average. */
const NARROW = 2;

/** Whether there is room for all of a text. Most cells of a large picture are too narrow for any, and measuring takes longest. */
export function fits(paint: CanvasRenderingContext2D, text: string, room: number): boolean {
    return room >= LEAST && text.length * NARROW <= room && widthOf(paint, text) <= room;
}

/** As much of a text as there is room for; nothing if that would say nothing. */
export function fitted(paint: CanvasRenderingContext2D, text: string, room: number): string {
    const whole = text.length > 400 ? text.slice(0, 400) : text;
    if (room < LEAST) { return ""; }
    if (widthOf(paint, whole) <= room) { return whole; }
    const letters = Math.floor((whole.length * (room - 10)) / widthOf(paint, whole));
    return letters < 2 ? "" : `${whole.slice(0, letters)}\u2026`;
}

/** Fills with slanting lines. */
export function hatch(paint: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, colour: string) {
    paint.strokeStyle = colour;
    paint.lineWidth = 1;
    paint.beginPath();
    // Lines end at the sides by themselves: clipping them takes longer than all else of a picture.
    for (let at = x - height - ((x - height) % 6); at < x + width; at += 6) {
        const [left, right] = [Math.max(at, x), Math.min(at + height, x + width)];
        if (left >= right) { continue; }
        paint.moveTo(left, y + height - (left - at));
        paint.lineTo(right, y + height - (right - at));
    }
    paint.stroke();
}
