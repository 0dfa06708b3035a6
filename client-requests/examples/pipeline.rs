//! An annotated pipeline: three stages that share two kernels, and one of them a part for each of its rounds.
//!
//! ```text
//! cargo build --release --example pipeline -p grind-client-requests
//! grind target/release/examples/pipeline
//! cg_annotate --by-context cachegrind.out.PID
//! ```

use grind_client_requests::contexts::{Context, NamedContext};

static LOAD: NamedContext = NamedContext::new(c"load");
static SMOOTH: NamedContext = NamedContext::new(c"smooth");
static SUM_UP: NamedContext = NamedContext::new(c"sum up");

/// Kernels are functions of their own, so that they are seen in the profile.
#[inline(never)]
fn scale(values: &mut [f64], by: f64) {
    values.iter_mut().for_each(|v| *v *= by);
}

#[inline(never)]
fn difference(values: &[f64]) -> f64 {
    values.windows(2).map(|w| (w[1] - w[0]).abs()).sum()
}

#[inline(never)]
fn average_neighbours(values: &mut [f64]) {
    for i in 1..values.len() {
        values[i] = (values[i - 1] + values[i]) / 2.0;
    }
}

fn main() {
    let mut values: Vec<f64> = {
        let _context = LOAD.enter();
        let mut values: Vec<f64> = (0..4096u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 16)).collect();
        scale(&mut values, 1.0 / 65536.0);
        values
    };
    {
        let _context = SMOOTH.enter();
        for round in 1.. {
            // Nested: what follows is counted as round 1, 2 and so on, the rest of the loop as "smooth".
            let _context = Context::enter(round);
            average_neighbours(&mut values);
            if difference(&values) < 10.0 {
                break;
            }
        }
    }
    let _context = SUM_UP.enter();
    scale(&mut values, 100.0);
    println!("{:.3}", difference(&values));
}
