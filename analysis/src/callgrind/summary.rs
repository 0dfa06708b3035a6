//! The lines at the end of a log: what was collected. Texts, widths and roundings are the reference's, since scripts read
//! them; they are almost, but not quite, those of cachegrind.

use cg_format::callgrind::EventSet;
use cg_format::events::Caches;
use cg_format::show::commas;

/// The lines; `total` has one count for each of `events`.
#[must_use]
pub fn summary(events: EventSet, total: &[i128]) -> String {
    let names = events.names();
    let of = |name: &str| names.iter().position(|n| n == name).and_then(|at| total.get(at)).copied().unwrap_or(0);
    let [ir, dr, dw] = ["Ir", "Dr", "Dw"].map(of);
    let [i1mr, d1mr, d1mw] = ["I1mr", "D1mr", "D1mw"].map(of);
    let [i2mr, d2mr, d2mw] = ["I2mr", "D2mr", "D2mw"].map(of);
    let [ilmr, dlmr, dlmw] = ["ILmr", "DLmr", "DLmw"].map(of);
    let [bc, bcm, bi, bim] = ["Bc", "Bcm", "Bi", "Bim"].map(of);

    let last = total.iter().rposition(|n| *n != 0).unwrap_or(0);
    let collected: Vec<String> = total.iter().take(last + 1).map(ToString::to_string).collect();
    let width = |n: i128| commas(n).len();
    let (l1, l2, l3) = (width(ir), width(dr.max(bc)), width(dw.max(bi)));
    let plain = |n: i128| format!("{:>l1$}", commas(n));
    // A total and its two parts, called `first` and `second`.
    let parts = |a: i128, b: i128, first: &str, second: &str| {
        let (sum, a, b) = (commas(a + b), commas(a), commas(b));
        format!("{sum:>l1$}  ({a:>l2$} {first} + {b:>l3$} {second})")
    };
    // The same in percent; nothing of nothing is 0%. `blanks` stand where the names of the parts do.
    let percent = |part: i128, whole: i128| part as f64 * 100.0 / whole.max(1) as f64;
    let rates = |of: [(i128, i128); 3], blanks: [&str; 2]| {
        let [all, first, second] = of.map(|(part, whole)| percent(part, whole));
        format!("{all:>l1$.1}% ({first:>l2$.1}%{} + {second:>l3$.1}%{})", blanks[0], blanks[1])
    };

    let mut lines = vec![
        format!("Events    : {}", names.join(" ")),
        format!("Collected : {}", collected.join(" ")),
        String::new(),
        format!("I   refs:      {}", plain(ir)),
    ];
    if events.caches.any() {
        let second = |lines: &[String]| if events.caches == Caches::Three { lines.to_vec() } else { Vec::new() };
        let read_write = |r, w| parts(r, w, "rd", "wr");
        let data = |r, w| rates([(r + w, dr + dw), (r, dr), (w, dw)], ["  ", "  "]);
        let ratio = |misses: i128| format!("{:>l1$.2}%", percent(misses, ir));
        lines.push(format!("I1  misses:    {}", plain(i1mr)));
        lines.extend(second(&[format!("L2i misses:    {}", plain(i2mr))]));
        lines.push(format!("LLi misses:    {}", plain(ilmr)));
        lines.push(format!("I1  miss rate: {}", ratio(i1mr)));
        lines.extend(second(&[format!("L2i miss rate: {}", ratio(i2mr))]));
        lines.extend([
            format!("LLi miss rate: {}", ratio(ilmr)),
            String::new(),
            format!("D   refs:      {}", read_write(dr, dw)),
            format!("D1  misses:    {}", read_write(d1mr, d1mw)),
        ]);
        lines.extend(second(&[format!("L2d misses:    {}", read_write(d2mr, d2mw))]));
        lines.push(format!("LLd misses:    {}", read_write(dlmr, dlmw)));
        lines.push(format!("D1  miss rate: {}", data(d1mr, d1mw)));
        lines.extend(second(&[format!("L2d miss rate: {}", data(d2mr, d2mw))]));
        lines.extend([format!("LLd miss rate: {}", data(dlmr, dlmw)), String::new()]);
        lines.extend(second(&[
            format!("L2 refs:       {}", read_write(i1mr + d1mr, d1mw)),
            format!("L2 misses:     {}", read_write(i2mr + d2mr, d2mw)),
            String::new(),
        ]));
        let [refs_read, refs_write] = match events.caches {
            Caches::Three => [i2mr + d2mr, d2mw],
            _ => [i1mr + d1mr, d1mw],
        };
        lines.push(format!("LL refs:       {}", read_write(refs_read, refs_write)));
        lines.push(format!("LL misses:     {}", read_write(ilmr + dlmr, dlmw)));
        let all = [(ilmr + dlmr + dlmw, ir + dr + dw), (ilmr + dlmr, ir + dr), (dlmw, dw)];
        lines.push(format!("LL miss rate:  {}", rates(all, ["  ", "  "])));
    }
    if events.branch_sim {
        let wrong = [(bcm + bim, bc + bi), (bcm, bc), (bim, bi)];
        lines.extend([
            String::new(),
            format!("Branches:      {}", parts(bc, bi, "cond", "ind")),
            format!("Mispredicts:   {}", parts(bcm, bim, "cond", "ind")),
            format!("Mispred rate:  {}", rates(wrong, ["    ", "   "])),
        ]);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::SystemTime;

    /// Printed by Valgrind for /bin/true.
    #[test]
    fn the_summary_is_the_references() {
        let events = EventSet {
            caches: Caches::Two,
            write_back: true,
            branch_sim: true,
            cache_use: false,
            bus: true,
            allocations: false,
            system_calls: Some(SystemTime::Nanoseconds),
            cycles: false,
        };
        let total =
            [126_559, 27_888, 11_769, 1082, 994, 580, 1064, 784, 548, 0, 0, 0, 25_647, 3137, 280, 151, 20, 57, 0, 0];
        let expected = "\
Events    : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw ILdmr DLdmr DLdmw Bc Bcm Bi Bim Ge sysCount sysTime sysCpuTime
Collected : 126559 27888 11769 1082 994 580 1064 784 548 0 0 0 25647 3137 280 151 20 57

I   refs:      126,559
I1  misses:      1,082
LLi misses:      1,064
I1  miss rate:    0.85%
LLi miss rate:    0.84%

D   refs:       39,657  (27,888 rd + 11,769 wr)
D1  misses:      1,574  (   994 rd +    580 wr)
LLd misses:      1,332  (   784 rd +    548 wr)
D1  miss rate:     4.0% (   3.6%   +    4.9%  )
LLd miss rate:     3.4% (   2.8%   +    4.7%  )

LL refs:         2,656  ( 2,076 rd +    580 wr)
LL misses:       2,396  ( 1,848 rd +    548 wr)
LL miss rate:      1.4% (   1.2%   +    4.7%  )

Branches:       25,927  (25,647 cond +    280 ind)
Mispredicts:     3,288  ( 3,137 cond +    151 ind)
Mispred rate:     12.7% (  12.2%     +   53.9%   )";
        assert_eq!(summary(events, &total), expected);
        assert_eq!(
            summary(EventSet::default(), &[301_982]),
            "Events    : Ir\nCollected : 301982\n\nI   refs:      301,982"
        );
        assert_eq!(summary(EventSet::default(), &[0]), "Events    : Ir\nCollected : 0\n\nI   refs:      0");
    }
}
