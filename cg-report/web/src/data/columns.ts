// Columns of the report: the other end of `pack.rs`. Each is unpacked when it is first asked for.

/** Start, length, count, bytes a value, flags (1: folded, 2: differences): see `pack.rs`. */
export type ColumnInfo = [number, number, number, number, number];

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Numbers; `exact` has them too where some do not fit in 53 bits. */
export interface Column {
    readonly values: Numbers;
    readonly exact: BigInt64Array | BigUint64Array | null;
}

/** Bytes of base64. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
    const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
    if (native) { return native.call(Uint8Array, text); }
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) { bytes[i] = binary.charCodeAt(i); }
    return bytes;
}

export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
    const { readable, writable } = new DecompressionStream("deflate-raw");
    // As one piece: a blob of it would be copied to where the browser keeps those, and come back in many.
    const writer = writable.getWriter();
    const written = Promise.all([writer.write(packed), writer.close()]);
    const [bytes] = await Promise.all([new Response(readable).arrayBuffer(), written]);
    return new Uint8Array(bytes);
}

/** Numbers from the bytes of a column. */
export function decode(bytes: Uint8Array, [, , count, width, flags]: ColumnInfo): Column {
    const signed = (flags & 1) !== 0;
    const delta = (flags & 2) !== 0;
    if (bytes.length !== count * width) { throw new Error("a column is damaged"); }
    if (width === 8) { return decodeWide(bytes, count, signed, delta); }
    if (!signed) {
        if (width <= 1) { return { values: width === 0 ? new Uint8Array(count) : bytes, exact: null }; }
        return { values: joined(bytes, count, width), exact: null };
    }
    const values = new Float64Array(count);
    let last = 0;
    let largest = 0;
    let least = 0;
    const all = joined(bytes, count, width);
    for (let i = 0; i < count; i++) {
        const folded = all[i];
        const value = folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
        last = delta ? last + value : value;
        values[i] = last;
        if (last > largest) { largest = last; }
        if (last < least) { least = last; }
    }
    // Most columns of places fit in half the memory.
    return { values: least >= 0 && largest < 2 ** 32 ? Uint32Array.from(values) : values, exact: null };
}

/** Values of up to four bytes, of which all first ones come first, and so on. */
function joined(bytes: Uint8Array, count: number, width: number): Numbers {
    const [second, third, fourth] = [count, 2 * count, 3 * count];
    if (width === 0) { return new Uint8Array(count); }
    if (width === 1) { return bytes; }
    const values = width === 2 ? new Uint16Array(count) : new Uint32Array(count);
    // One pass for each width: a loop over the bytes of each value takes several times as long.
    if (width === 2) {
        for (let i = 0; i < count; i++) { values[i] = bytes[i] | bytes[second + i] << 8; }
    } else if (width === 3) {
        for (let i = 0; i < count; i++) { values[i] = bytes[i] | bytes[second + i] << 8 | bytes[third + i] << 16; }
    } else {
        for (let i = 0; i < count; i++) { values[i] = bytes[i] | bytes[second + i] << 8 | bytes[third + i] << 16 | bytes[fourth + i] << 24; }
    }
    return values;
}

function decodeWide(bytes: Uint8Array, count: number, signed: boolean, delta: boolean): Column {
    const exact = signed && !delta ? new BigInt64Array(count) : new BigUint64Array(count);
    const values = new Float64Array(count);
    let last = 0n;
    let large = false;
    for (let i = 0; i < count; i++) {
        let low = 0;
        let high = 0;
        let factor = 1;
        for (let plane = 0; plane < 4; plane++, factor *= 256) {
            low += bytes[plane * count + i] * factor;
            high += bytes[(plane + 4) * count + i] * factor;
        }
        if (!signed) {
            values[i] = high * 2 ** 32 + low;
            if (high >= 2 ** 21) {
                large = true;
                exact[i] = (BigInt(high) << 32n) | BigInt(low);
            } else {
                exact[i] = BigInt(values[i]);
            }
            continue;
        }
        const folded = (BigInt(high) << 32n) | BigInt(low);
        const value = (folded & 1n) === 0n ? folded >> 1n : -(folded >> 1n) - 1n;
        last = delta ? BigInt.asUintN(64, last + value) : value;
        exact[i] = last;
        values[i] = Number(last);
        large ||= Math.abs(values[i]) > Number.MAX_SAFE_INTEGER;
    }
    return { values, exact: large ? exact : null };
}
