//! Mangled C++ names, made by their grammar: most of them are right, so that a reader gets far.

use crate::mutate::Random;

/// A name; `budget` is about how many parts it has.
#[must_use]
pub fn name(random: &mut Random, budget: usize) -> Vec<u8> {
    let mut maker = Maker { random, left: budget, depth: 0, out: b"_Z".to_vec(), templates: 0, lambdas: 0 };
    maker.encoding(true);
    if maker.random.below(12) == 0 {
        let suffixes = [".constprop.0", ".isra.0", ".part.1.cold", ".cold", ".123", ".lto_priv.0", ".clone.3"];
        maker.put(&suffixes);
    }
    maker.out
}

/// A part of a name: a type, an expression or arguments.
#[must_use]
pub fn piece(random: &mut Random, budget: usize) -> Vec<u8> {
    let mut maker = Maker { random, left: budget, depth: 0, out: Vec::new(), templates: 2, lambdas: 0 };
    match maker.random.below(5) {
        0 => maker.expression(),
        1 => maker.arguments(),
        2 => maker.unqualified(true),
        3 => maker.name(),
        _ => maker.type_(),
    }
    maker.out
}

struct Maker<'a> {
    random: &'a mut Random,
    /// Parts that may still be made.
    left: usize,
    depth: usize,
    out: Vec<u8>,
    /// Lists of template arguments around: parameters mean something then.
    templates: usize,
    /// Lambdas around.
    lambdas: usize,
}

impl Maker<'_> {
    fn put(&mut self, among: &[&str]) {
        let word = self.random.pick(among);
        self.out.extend_from_slice(word.as_bytes());
    }

    fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn has_parameters(&self) -> bool {
        self.templates > 0 && self.lambdas == 0
    }

    /// One in `n`, while there is something left to spend.
    fn one_in(&mut self, n: usize) -> bool {
        self.left > 0 && self.random.below(n) == 0
    }

    /// Spends a part; whether only simple things may follow.
    fn simple(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 || self.depth > 20
    }

    fn nested(&mut self, f: impl FnOnce(&mut Self)) {
        self.depth += 1;
        f(self);
        self.depth -= 1;
    }

    fn encoding(&mut self, top: bool) {
        if top && self.one_in(8) {
            return self.special();
        }
        self.nested(Self::name);
        if !self.one_in(if top { 10 } else { 4 }) {
            self.parameters();
        }
    }

    fn parameters(&mut self) {
        if self.random.below(5) == 0 {
            return self.say("v");
        }
        for _ in 0..=self.random.below(3) {
            self.nested(Self::type_);
        }
        if self.random.below(12) == 0 {
            self.say("z");
        }
    }

    fn special(&mut self) {
        match self.random.below(10) {
            0..=3 => {
                self.put(&["TV", "TT", "TI", "TS"]);
                self.type_();
            }
            4 => {
                self.put(&["Thn8_", "Th16_", "Tv0_n24_", "Tvn8_n32_", "Tcv0_n12_h4_", "TchN8_v0_8_"]);
                self.encoding(false);
            }
            5 => {
                self.say("TC");
                self.class();
                self.put(&["0_", "8_", "16_"]);
                self.class();
            }
            6 => {
                self.put(&["TH", "TW", "GV"]);
                self.name();
            }
            7 => {
                self.say("GR");
                self.name();
                self.put(&["_", "0_", "A_"]);
            }
            8 => {
                self.put(&["GA", "GTt", "GTn"]);
                self.encoding(false);
            }
            _ => {
                self.say("TA");
                self.argument();
            }
        }
    }

    fn name(&mut self) {
        self.name_of(false);
    }

    /// A name; that of a type is no operator and not local to a file, newer compilers than the reference knows excepted.
    fn name_of(&mut self, a_type: bool) {
        if self.simple() {
            return self.source();
        }
        match self.random.below(8) {
            0..=1 => {
                if a_type {
                    self.source();
                } else {
                    self.unqualified(false);
                }
                if self.one_in(3) {
                    self.arguments();
                }
            }
            2..=4 => self.nested_name(),
            5 => {
                self.say("St");
                self.source();
                if self.one_in(2) {
                    self.arguments();
                }
            }
            6 => {
                self.say("Z");
                self.encoding(false);
                self.say("E");
                if self.one_in(4) {
                    self.put(&["s", "s_0", "s__12_"]);
                } else {
                    if self.one_in(5) {
                        self.put(&["d_", "d0_", "d1_"]);
                    }
                    self.nested(Self::name);
                    if self.one_in(4) {
                        self.put(&["_0", "_3", "__12_"]);
                    }
                }
            }
            _ => {
                self.source();
                self.arguments();
            }
        }
    }

    fn nested_name(&mut self) {
        self.say("N");
        if self.one_in(5) {
            self.put(&["K", "V", "r", "VK", "rVK"]);
        }
        if self.one_in(8) {
            self.put(&["R", "O"]);
        }
        match self.random.below(8) {
            0 => self.substitution(),
            1 => self.say("St"),
            2 if self.has_parameters() => self.parameter(),
            3 if self.one_in(4) => self.decltype(),
            4 => self.put(&["Ss", "Sa", "Sb", "Si", "So", "Sd"]),
            _ => self.source(),
        }
        for _ in 0..=self.random.below(3) {
            if self.one_in(3) {
                self.arguments();
            }
            self.unqualified(true);
            if self.one_in(12) {
                self.say("M");
                self.lambda();
            }
        }
        if self.one_in(3) {
            self.arguments();
        }
        self.say("E");
    }

    fn unqualified(&mut self, member: bool) {
        match self.random.below(14) {
            0 if member => self.put(&["C1", "C2", "C3", "D0", "D1", "D2", "C4", "D4", "D5"]),
            1 if member => {
                self.say("CI1");
                self.class();
            }
            2 => self.operator(),
            3 => self.lambda(),
            4 => self.put(&["Ut_", "Ut0_", "Ut12_"]),
            5 => {
                self.say("L");
                self.source();
                if self.one_in(4) {
                    self.put(&["_0", "_1"]);
                }
            }
            6 if self.one_in(3) => {
                self.say("DC");
                for _ in 0..=self.random.below(3) {
                    self.source();
                }
                self.say("E");
            }
            _ => self.source(),
        }
        if self.one_in(15) {
            self.put(&["B5cxx11", "B3abi", "B1xB1y"]);
        }
    }

    fn source(&mut self) {
        self.put(&[
            "1a",
            "1b",
            "1f",
            "3foo",
            "3Bar",
            "4main",
            "6vector",
            "12_GLOBAL__N_1",
            "5outer",
            "8iterator",
            "11some_thing_",
            "2_x",
            "4pair",
        ]);
    }

    fn lambda(&mut self) {
        self.say("Ul");
        // Parameters of templates within are shown by newer oracles only.
        self.lambdas += 1;
        self.parameters();
        self.lambdas -= 1;
        self.put(&["E_", "E0_", "E1_", "E10_"]);
    }

    fn operator(&mut self) {
        match self.random.below(12) {
            0 => {
                self.say("cv");
                self.nested(Self::type_);
            }
            1 => {
                self.say("li");
                self.source();
            }
            2 => {
                self.say("v2");
                self.source();
            }
            _ => self.put(&[
                "nw", "na", "dl", "da", "ps", "ng", "ad", "de", "co", "pl", "mi", "ml", "dv", "rm", "an", "or", "eo",
                "aS", "pL", "mI", "mL", "dV", "rM", "aN", "oR", "eO", "ls", "rs", "lS", "rS", "eq", "ne", "lt", "gt",
                "le", "ge", "ss", "nt", "aa", "oo", "pp", "mm", "cm", "pm", "pt", "cl", "ix", "qu", "aw",
            ]),
        }
    }

    fn substitution(&mut self) {
        match self.random.below(12) {
            0 => self.put(&["Sa", "Sb", "Ss", "Si", "So", "Sd"]),
            1..=5 => self.put(&["S_", "S0_"]),
            6..=9 => self.put(&["S1_", "S2_", "S3_", "S4_"]),
            _ => self.put(&["S5_", "S6_", "S7_", "SA_", "S10_"]),
        }
    }

    fn parameter(&mut self) {
        self.put(&["T_", "T_", "T_", "T0_", "T0_", "T1_", "T2_"]);
    }

    fn arguments(&mut self) {
        self.say("I");
        self.templates += 1;
        for _ in 0..self.random.below(4) {
            self.nested(Self::argument);
        }
        self.say("E");
    }

    fn argument(&mut self) {
        match self.random.below(10) {
            0..=1 => self.literal(),
            2 => {
                self.say("X");
                self.expression();
                self.say("E");
            }
            3 => {
                self.say("J");
                for _ in 0..self.random.below(4) {
                    self.nested(Self::argument);
                }
                self.say("E");
            }
            _ => self.type_(),
        }
    }

    fn literal(&mut self) {
        match self.random.below(8) {
            0 => {
                self.say("L_Z");
                self.encoding(false);
                self.say("E");
            }
            1 => self.put(&[
                "LDnE",
                "LDn0E",
                "LPKc0E",
                "L1a0E",
                "LN1a1bE1E",
                "LS_2E",
                "Ld4000000000000000E",
                "Lf3f800000E",
            ]),
            _ => self.put(&[
                "Li0E", "Li1E", "Lin3E", "Lj4E", "Lb0E", "Lb1E", "Lc65E", "Ll9E", "Lm10E", "Lx1E", "Ly2E", "Ls1E",
                "Lh3E", "Lw4E", "La1E", "Lt2E", "Ln5E",
            ]),
        }
    }

    fn class(&mut self) {
        match self.random.below(5) {
            0 => self.substitution(),
            1 => self.nested(|m| m.name_of(true)),
            _ => self.source(),
        }
    }

    fn decltype(&mut self) {
        self.put(&["DT", "Dt"]);
        self.expression();
        self.say("E");
    }

    fn type_(&mut self) {
        if self.simple() {
            return self.builtin();
        }
        match self.random.below(24) {
            0..=4 => self.builtin(),
            5..=7 => {
                self.put(&["P", "R", "O", "P", "R", "C", "G"]);
                self.nested(Self::type_);
            }
            8..=9 => {
                self.put(&["K", "K", "V", "VK", "r"]);
                self.nested(Self::type_);
            }
            10 => self.function(),
            11 => {
                self.put(&["A3_", "A_", "A10_"]);
                self.nested(Self::type_);
            }
            12 => {
                self.say("M");
                self.class();
                let member = if self.random.below(2) == 0 { Self::type_ } else { Self::function };
                self.nested(member);
            }
            13..=14 => self.substitution(),
            15 => {
                self.substitution();
                self.arguments();
            }
            16..=17 if self.has_parameters() => {
                self.parameter();
                if self.one_in(8) {
                    self.arguments();
                }
            }
            18 if self.has_parameters() => {
                self.say("Dp");
                self.nested(Self::type_);
            }
            19 if self.one_in(3) => self.decltype(),
            20 if self.one_in(4) => {
                self.put(&["u3vec", "U4attr", "Dv4_", "Dv_Li4E_", "A"]);
                if self.out.ends_with(b"A") {
                    self.expression();
                    self.say("_");
                }
                self.nested(Self::type_);
            }
            _ => self.nested(|m| m.name_of(true)),
        }
    }

    fn function(&mut self) {
        if self.one_in(6) {
            self.put(&["K", "V", "Do", "Dx"]);
        }
        self.say("F");
        if self.one_in(12) {
            self.say("Y");
        }
        self.nested(Self::type_);
        self.parameters();
        if self.one_in(10) {
            self.put(&["R", "O"]);
        }
        self.say("E");
    }

    fn builtin(&mut self) {
        self.put(&[
            "v", "w", "b", "c", "a", "h", "s", "t", "i", "j", "l", "m", "x", "y", "n", "o", "f", "d", "e", "g", "z",
            "Dn", "Di", "Ds", "Du", "Da", "Dc", "Df", "Dd", "De", "Dh", "i", "i", "c",
        ]);
    }

    fn expression(&mut self) {
        if self.simple() {
            return self.literal();
        }
        self.nested(|m| match m.random.below(24) {
            0..=3 => m.literal(),
            4..=5 if m.has_parameters() => m.parameter(),
            6..=7 => m.put(&["fp_", "fp0_", "fpT", "fpK_"]),
            8..=11 => {
                m.put(&[
                    "pl", "mi", "ml", "dv", "rm", "an", "or", "eo", "aS", "ls", "rs", "eq", "ne", "lt", "gt", "le",
                    "ge", "aa", "oo", "cm", "ix", "pm", "ds", "ss",
                ]);
                m.expression();
                m.expression();
            }
            12..=13 => {
                m.put(&[
                    "ng", "ad", "de", "co", "nt", "ps", "pp_", "mm_", "pp", "mm", "sz", "az", "nx", "tw", "dl", "da",
                ]);
                m.expression();
            }
            14 => {
                m.put(&["st", "at"]);
                m.type_();
            }
            15 => {
                m.put(&["sc", "dc", "rc", "cc", "cv"]);
                m.type_();
                m.expression();
            }
            16 => {
                m.say("cl");
                m.expression();
                for _ in 0..m.random.below(3) {
                    m.expression();
                }
                m.say("E");
            }
            17 => {
                m.put(&["dt", "pt"]);
                m.expression();
                m.source();
                if m.one_in(4) {
                    m.arguments();
                }
            }
            18 => {
                // Scopes of other kinds mean something to newer oracles only.
                m.say("sr");
                m.source();
                if m.one_in(3) {
                    m.arguments();
                }
                m.source();
                if m.one_in(3) {
                    m.arguments();
                }
            }
            19 => {
                m.say("qu");
                for _ in 0..3 {
                    m.expression();
                }
            }
            20 if m.has_parameters() => {
                m.put(&["sZ", "sp"]);
                m.parameter();
            }
            21 => {
                m.put(&["il", "tli", "cvi_", "nw_iE", "nw_ipi"]);
                if !m.out.ends_with(b"nw_iE") {
                    m.expression();
                    m.say("E");
                }
            }
            22 => {
                m.put(&["flpl", "frpl", "flaa"]);
                m.expression();
            }
            _ => {
                m.source();
                if m.one_in(3) {
                    m.arguments();
                }
            }
        });
    }
}
