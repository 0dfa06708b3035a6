// How values differ from column to column.

/** How values grow from column to column: the slope of the line that fits them best, as a share of their mean. */
export function trend(values: readonly number[]): number {
    const count = values.length;
    const mean = values.reduce((sum, value) => sum + value, 0) / count;
    if (count < 2 || mean === 0) { return 0; }
    const middle = (count - 1) / 2;
    let above = 0;
    let below = 0;
    values.forEach((value, at) => {
        above += (at - middle) * (value - mean);
        below += (at - middle) ** 2;
    });
    return above / below / mean;
}

/** The highest value as a multiple of the lowest one; infinite if that is 0, and 1 if all are. */
export function spread(values: readonly number[]): number {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    return most === least ? 1 : least > 0 ? most / least : Infinity;
}
