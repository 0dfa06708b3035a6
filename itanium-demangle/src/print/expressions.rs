//! Expressions, literals and parameter packs.

use super::{
    super::{Id, Literal, Node, Operator},
    MAX_DEPTH, MAX_STEPS, Printer,
};

impl Printer<'_> {
    pub(super) fn operator(&mut self, id: Id) -> Option<()> {
        match self.get(id) {
            Node::OperatorName(operator) => self.text(operator.name.as_bytes()),
            _ => self.node(id),
        }
    }

    /// An operand, in parentheses unless it is a simple name.
    pub(super) fn operand(&mut self, id: Id) -> Option<()> {
        let simple = matches!(
            self.get(id),
            Node::Text(_) | Node::Qualified(..) | Node::Initializer(..) | Node::FunctionParameter(_)
        );
        if simple {
            return self.node(id);
        }
        self.text(b"(")?;
        self.node(id)?;
        self.text(b")")
    }

    pub(super) fn code(&self, operator: Id) -> &'static str {
        match self.get(operator) {
            Node::OperatorName(Operator { code, .. }) => code,
            _ => "",
        }
    }

    pub(super) fn unary(&mut self, operator: Id, operand: Id) -> Option<()> {
        let mut operand = operand;
        match self.code(operator) {
            "ad" => {
                // The address of a function is written without its parameters.
                if let Node::Typed(name, function) = self.get(operand)
                    && matches!(self.get(*name), Node::Qualified(..))
                    && matches!(self.get(*function), Node::Function(..))
                {
                    operand = *name;
                }
            }
            "sZ" => {
                let pack = self.find_pack(operand, 0)?;
                let length = pack.map_or(0, |p| self.pack_length(p));
                return self.number(length);
            }
            "sP" => {
                let length = self.pack_length(operand);
                return self.number(length);
            }
            _ => {}
        }
        if let Node::Cast(type_) = self.get(operator) {
            self.text(b"(")?;
            self.node(*type_)?;
            self.text(b")")?;
        } else {
            self.operator(operator)?;
        }
        match self.code(operator) {
            "gs" => self.node(operand),
            "st" | "nx" => {
                self.text(b"(")?;
                self.node(operand)?;
                self.text(b")")
            }
            _ => self.operand(operand),
        }
    }

    pub(super) fn binary(&mut self, operator: Id, first: Id, second: Id) -> Option<()> {
        let code = self.code(operator);
        if matches!(code, "cc" | "dc" | "rc" | "sc") {
            self.operator(operator)?;
            self.text(b"<")?;
            self.node(first)?;
            self.text(b">(")?;
            self.node(second)?;
            return self.text(b")");
        }
        // A bare `>` would look like the end of template arguments.
        if code == "gt" {
            self.text(b"(")?;
        }
        match self.get(first) {
            // The function of a call is written without the types of its parameters.
            Node::Typed(name, _) if code == "cl" => self.operand(*name)?,
            _ => self.operand(first)?,
        }
        if code == "ix" {
            self.text(b"[")?;
            self.node(second)?;
            self.text(b"]")?;
        } else {
            if code != "cl" {
                self.operator(operator)?;
            }
            self.operand(second)?;
        }
        if code == "gt" {
            self.text(b")")?;
        }
        Some(())
    }

    pub(super) fn trinary(&mut self, operator: Id, first: Id, second: Id, third: Id) -> Option<()> {
        if self.code(operator) == "qu" {
            self.operand(first)?;
            self.operator(operator)?;
            self.operand(second)?;
            self.text(b" : ")?;
            return self.operand(third);
        }
        self.text(b"new ")?;
        if !matches!(self.get(first), Node::List(None, None)) {
            self.operand(first)?;
            self.text(b" ")?;
        }
        self.node(second)?;
        if matches!(self.get(third), Node::Text(text) if text.is_empty()) {
            return Some(());
        }
        self.operand(third)
    }

    pub(super) fn fold(&mut self, kind: u8, operator: Id, first: Id, second: Option<Id>) -> Option<()> {
        // A pack is written whole.
        let hold = self.pack_index.take();
        self.text(b"(")?;
        match kind {
            b'l' => {
                self.text(b"...")?;
                self.operator(operator)?;
                self.operand(first)?;
            }
            b'r' => {
                self.operand(first)?;
                self.operator(operator)?;
                self.text(b"...")?;
            }
            _ => {
                self.operand(first)?;
                self.operator(operator)?;
                self.text(b"...")?;
                self.operator(operator)?;
                self.operand(second?)?;
            }
        }
        self.pack_index = hold;
        self.text(b")")
    }

    pub(super) fn value(&mut self, type_: Id, value: Id, negative: bool) -> Option<()> {
        let literal = match self.get(type_) {
            Node::Builtin(_, literal) => *literal,
            _ => Literal::Cast,
        };
        let digits = match self.get(value) {
            Node::Text(digits) => digits.as_slice(),
            _ => return None,
        };
        let sign: &[u8] = if negative { b"-" } else { b"" };
        match (literal, digits) {
            (Literal::Suffix(suffix), _) => {
                self.text(sign)?;
                self.text(digits)?;
                return self.text(suffix.as_bytes());
            }
            (Literal::Bool, b"0") if !negative => return self.text(b"false"),
            (Literal::Bool, b"1") if !negative => return self.text(b"true"),
            _ => {}
        }
        self.text(b"(")?;
        self.node(type_)?;
        self.text(b")")?;
        self.text(sign)?;
        if literal == Literal::Float {
            self.text(b"[")?;
        }
        self.text(digits)?;
        if literal == Literal::Float {
            self.text(b"]")?;
        }
        Some(())
    }

    pub(super) fn pack(&mut self, pattern: Id) -> Option<()> {
        let Some(pack) = self.find_pack(pattern, 0)? else {
            // Packs of function parameters have no values here.
            self.operand(pattern)?;
            return self.text(b"...");
        };
        let hold = self.pack_index;
        for i in 0..self.pack_length(pack) {
            if i > 0 {
                self.text(b", ")?;
            }
            self.pack_index = Some(i);
            self.node(pattern)?;
        }
        self.pack_index = hold;
        Some(())
    }

    pub(super) fn pack_length(&self, list: Id) -> u64 {
        let mut length = 0;
        let mut link = Some(list);
        while let Some(Node::Arguments(Some(_), rest)) = link.map(|id| self.get(id)) {
            length += 1;
            link = *rest;
        }
        length
    }

    /// The value of the first template parameter pack in a pattern, if there is one. `None` if that cannot be known: there
    /// is no template whose parameters they could be, or it takes too long.
    pub(super) fn find_pack(&mut self, id: Id, depth: usize) -> Option<Option<Id>> {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        let node = self.get(id);
        let mut among = |children: &[Option<Id>]| {
            for child in children.iter().flatten() {
                if let Some(pack) = self.find_pack(*child, depth + 1)? {
                    return Some(Some(pack));
                }
            }
            Some(None)
        };
        match *node {
            Node::Parameter(number) => {
                self.templates?;
                Some(self.lookup(number).filter(|found| matches!(self.get(*found), Node::Arguments(..))))
            }
            // An inner expansion has packs of its own; the rest has no parameters.
            Node::PackExpansion(_)
            | Node::Lambda(..)
            | Node::Text(_)
            | Node::Abbreviation(_)
            | Node::Tagged(..)
            | Node::OperatorName(_)
            | Node::Builtin(..)
            | Node::FunctionParameter(_)
            | Node::Unnamed(_)
            | Node::DefaultArgument(..) => Some(None),
            Node::Constructor(a)
            | Node::Destructor(a)
            | Node::Special(_, a)
            | Node::ReferenceTemporary(a, _)
            | Node::Vendor(a)
            | Node::QualifiedType(_, a)
            | Node::This(_, a)
            | Node::Pointer(a)
            | Node::Reference(a)
            | Node::RvalueReference(a)
            | Node::Complex(a)
            | Node::Imaginary(a)
            | Node::LiteralOperator(a)
            | Node::VendorOperator(a)
            | Node::Conversion(a)
            | Node::Cast(a)
            | Node::Nullary(a)
            | Node::Decltype(a)
            | Node::Binding(a) => among(&[Some(a)]),
            Node::Qualified(a, b)
            | Node::Local(a, b)
            | Node::Typed(a, b)
            | Node::Template(a, b)
            | Node::ConstructionTable(a, b)
            | Node::VendorQualified(a, b)
            | Node::MemberPointer(a, b)
            | Node::Vector(a, b)
            | Node::Unary(a, b)
            | Node::Postfix(a, b)
            | Node::Value(a, b, _)
            | Node::Clone(a, b) => among(&[Some(a), Some(b)]),
            Node::Function(a, b) | Node::List(a, b) | Node::Arguments(a, b) | Node::Initializer(a, b) => among(&[a, b]),
            Node::Array(a, b) => among(&[a, Some(b)]),
            Node::Binary(a, b, c) => among(&[Some(a), Some(b), Some(c)]),
            Node::Trinary(a, b, c, d) => among(&[Some(a), Some(b), Some(c), Some(d)]),
            Node::Fold(_, a, b, c) => among(&[Some(a), Some(b), c]),
        }
    }
}
