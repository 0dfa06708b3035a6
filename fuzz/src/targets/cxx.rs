//! Mangled C++ names: right ones, made by the grammar, and anything else.

use itanium_demangle::demangle;

use crate::mutate::Random;
use crate::{Target, grammar};

pub(super) const TARGET: Target = Target {
    name: "cxx",
    run,
    laws,
    words: &[
        "_Z",
        "N",
        "E",
        "I",
        "J",
        "S_",
        "S0_",
        "S1_",
        "SZ_",
        "St",
        "Sa",
        "Ss",
        "Sb",
        "T_",
        "T0_",
        "Dp",
        "Dt",
        "DT",
        "X",
        "L",
        "1a",
        "3std",
        "C1",
        "D0",
        "CI1",
        "ul",
        "Ul",
        "UlT_E_",
        "Ut_",
        "K",
        "V",
        "r",
        "R",
        "O",
        "P",
        "F",
        "A_",
        "A3_",
        "M",
        "Z",
        "Es",
        "d_",
        "_",
        "0_",
        "cv",
        "pl",
        "qu",
        "sr",
        "sZ",
        "sP",
        "fp_",
        "fpT",
        "fL",
        "il",
        "tl",
        "nw",
        "pi",
        "cl",
        "dt",
        "gs",
        "on",
        "B3abi",
        "DC",
        "TV",
        "TI",
        "GV",
        "GR",
        "Thn8_",
        "Tc",
        "TC",
        "v",
        "i",
        "b",
        "Li1E",
        "Lb1E",
        ".part.0",
        ".constprop.1",
        "18446744073709551615",
        "n1",
        "DO",
        "Dw",
        "Dv4_",
        "u3vec",
        "U4attr",
        "li",
        "Lm",
    ],
    change: Some(change),
    largest: 1 << 11,
    // A name may be 256 KiB long when it is readable.
    overhead: 1 << 20,
    besides: |_| 0,
};

fn run(input: &[u8]) {
    let _ = demangle(input);
    let _ = demangle(&[b"_Z", input].concat());
}

/// A name does not depend on what was asked before, and has no ends of lines that were not there.
fn laws(input: &[u8]) {
    let (once, again) = (demangle(input), demangle(input));
    assert_eq!(once, again);
    if let Some(text) = once {
        assert!(!text.contains(&b'\n') || input.contains(&b'\n'));
        assert!(text.len() <= 256 << 10);
    }
}

/// Puts a piece of a name somewhere, or makes a new name.
fn change(random: &mut Random, input: &mut Vec<u8>) {
    let at = random.below(input.len() + 1);
    match random.below(8) {
        0 => *input = grammar::name(random, 40),
        1 => {
            // Much of the same.
            let copy = input[random.range(input.len())].to_vec();
            let times = 1 << random.below(9);
            if copy.len() * times <= 1024 {
                input.splice(at..at, copy.repeat(times));
            }
        }
        2 => {
            // Each of these doubles the text.
            let types: Vec<u8> = (0..random.below(60))
                .flat_map(|i| format!("St4pairIS{0}S{0}E", seq(i + random.below(3))).into_bytes())
                .collect();
            input.splice(at..at, types);
        }
        _ => {
            let piece = grammar::piece(random, 8);
            input.splice(at..at, piece);
        }
    }
}

/// A number of a substitution: `_`, `0_`, … in base 36.
fn seq(number: usize) -> String {
    match number.checked_sub(1) {
        None => "_".to_owned(),
        Some(number) => {
            let mut digits = Vec::new();
            let mut rest = number;
            loop {
                digits.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest % 36]);
                rest /= 36;
                if rest == 0 {
                    break;
                }
            }
            digits.reverse();
            format!("{}_", String::from_utf8_lossy(&digits))
        }
    }
}
