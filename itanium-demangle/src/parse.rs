//! From a mangled name to a tree, after the grammar of the Itanium C++ ABI. This file has the names; types and
//! expressions have their own.
//!
//! Invariants: the position only moves forward, except where an attempt is undone together with its nodes and
//! substitutions; the nesting and the number of steps are limited.

mod expressions;
mod types;

use super::{Id, Node, Operator, Qualifier, Tree};
use expressions::OPERATORS;
use types::qualified_type;

/// Deeper names are not demangled. Real ones stay below a hundred; the limit is for the stack of a small thread.
const MAX_DEPTH: u32 = 600;
/// Attempts that are undone may be nested, and then there are twice as many at each level. Names of the greatest length need a
/// few thousand steps.
const MAX_STEPS: u32 = 1 << 16;
/// Longer names are not demangled, nor does the reference: it reckons two parts a byte and gives up beyond 2048.
const MAX_NAME: usize = 1024;

/// Parses a whole name, with the suffixes that compilers add to copies of a function.
pub(super) fn parse(name: &[u8]) -> Option<Tree> {
    if name.len() > MAX_NAME {
        return None;
    }
    let rest = name.strip_prefix(b"_Z")?;
    let mut parser = Parser {
        input: rest,
        at: 0,
        tree: Tree::default(),
        substitutions: Vec::new(),
        last_name: None,
        depth: 0,
        steps: 0,
        expression: false,
        conversion: false,
    };
    let mut root = parser.encoding(true)?;
    while parser.peek() == b'.'
        && (parser.peek_next().is_ascii_lowercase() || matches!(parser.peek_next(), b'_' | b'0'..=b'9'))
    {
        root = parser.clone_suffix(root)?;
    }
    if parser.at != parser.input.len() {
        return None;
    }
    parser.tree.root = root;
    Some(parser.tree)
}

struct Parser<'a> {
    input: &'a [u8],
    at: usize,
    tree: Tree,
    substitutions: Vec<Id>,
    /// The name that a constructor or destructor takes.
    last_name: Option<Id>,
    depth: u32,
    steps: u32,
    expression: bool,
    conversion: bool,
}

impl Parser<'_> {
    fn peek(&self) -> u8 {
        self.input.get(self.at).copied().unwrap_or(0)
    }

    fn peek_next(&self) -> u8 {
        self.input.get(self.at + 1).copied().unwrap_or(0)
    }

    fn next(&mut self) -> u8 {
        let c = self.peek();
        self.at += usize::from(self.at < self.input.len());
        c
    }

    fn eat(&mut self, c: u8) -> bool {
        let there = self.peek() == c;
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, c: u8) -> Option<()> {
        self.eat(c).then_some(())
    }

    fn eat_two(&mut self, two: &[u8; 2]) -> bool {
        let there = self.peek() == two[0] && self.peek_next() == two[1];
        self.at += if there { 2 } else { 0 };
        there
    }

    fn add(&mut self, node: Node) -> Id {
        self.tree.nodes.push(node);
        (self.tree.nodes.len() - 1) as Id
    }

    fn text(&mut self, text: &[u8]) -> Id {
        self.add(Node::Text(text.to_vec()))
    }

    fn substitutable(&mut self, id: Id) {
        self.substitutions.push(id);
    }

    /// Goes one level deeper for the time of `f`.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn number(&mut self) -> Option<u64> {
        if !self.peek().is_ascii_digit() {
            return None;
        }
        let mut value = 0u64;
        while self.peek().is_ascii_digit() {
            value = value.checked_mul(10)?.checked_add(u64::from(self.next() - b'0'))?;
        }
        Some(value)
    }

    fn skip_signed_number(&mut self) -> Option<()> {
        self.eat(b'n');
        self.number().map(|_| ())
    }

    /// `_` is 0, `0_` is 1 and so on.
    fn compact_number(&mut self) -> Option<u64> {
        let value = if self.peek() == b'_' {
            0
        } else if self.peek() == b'n' {
            return None;
        } else {
            self.number()?.checked_add(1)?
        };
        self.expect(b'_')?;
        Some(value)
    }

    fn encoding(&mut self, top: bool) -> Option<Id> {
        self.nested(|p| {
            if matches!(p.peek(), b'G' | b'T') {
                return p.special_name();
            }
            let name = p.name()?;
            // What is not a function has no copies with suffixes.
            if matches!(p.peek(), 0 | b'E') {
                return Some(name);
            }
            let mut function = p.bare_function_type(p.has_return_type(name))?;
            // The return type of a local function would look like that of the function around it.
            if !top
                && matches!(p.tree.get(name), Node::Local(..))
                && let Node::Function(_, parameters) = *p.tree.get(function)
            {
                function = p.add(Node::Function(None, parameters));
            }
            Some(p.add(Node::Typed(name, function)))
        })
    }

    fn has_return_type(&self, id: Id) -> bool {
        match self.tree.get(id) {
            Node::This(_, inner) | Node::Local(_, inner) => self.has_return_type(*inner),
            Node::Template(name, _) => !self.is_structor_or_conversion(*name),
            _ => false,
        }
    }

    fn is_structor_or_conversion(&self, id: Id) -> bool {
        match self.tree.get(id) {
            Node::Qualified(_, name) | Node::Local(_, name) => self.is_structor_or_conversion(*name),
            Node::Constructor(_) | Node::Destructor(_) | Node::Conversion(_) => true,
            _ => false,
        }
    }

    fn clone_suffix(&mut self, of: Id) -> Option<Id> {
        let start = self.at;
        self.next();
        if self.peek().is_ascii_lowercase() || self.peek() == b'_' {
            while self.peek().is_ascii_lowercase() || self.peek() == b'_' {
                self.next();
            }
        } else {
            self.number_suffix();
        }
        while self.peek() == b'.' && self.peek_next().is_ascii_digit() {
            self.next();
            self.number_suffix();
        }
        let input = self.input;
        let suffix = self.text(&input[start..self.at]);
        Some(self.add(Node::Clone(of, suffix)))
    }

    fn number_suffix(&mut self) {
        while self.peek().is_ascii_digit() {
            self.next();
        }
    }

    fn name(&mut self) -> Option<Id> {
        self.nested(|p| match p.peek() {
            b'N' => p.nested_name(),
            b'Z' => p.local_name(),
            b'U' => p.unqualified_name(),
            b'S' => {
                let (mut name, is_new) = if p.peek_next() != b't' {
                    (p.substitution(false)?, false)
                } else {
                    p.at += 2;
                    let std = p.text(b"std");
                    let name = p.unqualified_name()?;
                    (p.add(Node::Qualified(std, name)), true)
                };
                if p.peek() == b'I' {
                    if is_new {
                        p.substitutable(name);
                    }
                    let arguments = p.template_args()?;
                    name = p.add(Node::Template(name, arguments));
                }
                Some(name)
            }
            _ => {
                let mut name = p.unqualified_name()?;
                if p.peek() == b'I' {
                    p.substitutable(name);
                    let arguments = p.template_args()?;
                    name = p.add(Node::Template(name, arguments));
                }
                Some(name)
            }
        })
    }

    fn nested_name(&mut self) -> Option<Id> {
        self.expect(b'N')?;
        let qualifiers = self.qualifiers(true)?;
        let reference = self.ref_qualifier();
        let prefix = self.prefix()?;
        self.expect(b'E')?;
        let mut name = self.apply(&qualifiers, prefix, true);
        if let Some(reference) = reference {
            name = self.add(Node::This(reference, name));
        }
        Some(name)
    }

    /// The qualifiers that follow, outermost first.
    fn qualifiers(&mut self, of_function: bool) -> Option<Vec<Qualifier>> {
        let mut found = Vec::new();
        loop {
            let qualifier = match (self.peek(), self.peek_next()) {
                (b'r', _) => Qualifier::Restrict,
                (b'V', _) => Qualifier::Volatile,
                (b'K', _) => Qualifier::Const,
                (b'D', b'x') if !of_function => {
                    self.next();
                    Qualifier::TransactionSafe
                }
                (b'D', b'o') if !of_function => {
                    self.next();
                    Qualifier::Noexcept(None)
                }
                (b'D', b'O') if !of_function => {
                    self.at += 2;
                    let condition = self.expression()?;
                    self.expect(b'E')?;
                    found.push(Qualifier::Noexcept(Some(condition)));
                    continue;
                }
                (b'D', b'w') if !of_function => {
                    self.at += 2;
                    let types = self.parameter_list()?;
                    self.expect(b'E')?;
                    found.push(Qualifier::Throw(types));
                    continue;
                }
                _ => return Some(found),
            };
            self.next();
            found.push(qualifier);
        }
    }

    fn apply(&mut self, qualifiers: &[Qualifier], to: Id, of_function: bool) -> Id {
        let wrap = |q| if of_function { Node::This as fn(_, _) -> _ } else { qualified_type(q) };
        qualifiers.iter().rev().fold(to, |inner, &q| self.add(wrap(q)(q, inner)))
    }

    fn ref_qualifier(&mut self) -> Option<Qualifier> {
        match self.peek() {
            b'R' => {
                self.next();
                Some(Qualifier::Reference)
            }
            b'O' => {
                self.next();
                Some(Qualifier::RvalueReference)
            }
            _ => None,
        }
    }

    fn prefix(&mut self) -> Option<Id> {
        let mut whole: Option<Id> = None;
        loop {
            let first = self.peek();
            let mut is_template = false;
            let part = match first {
                b'D' if matches!(self.peek_next(), b'T' | b't') => self.type_()?,
                b'S' => self.substitution(true)?,
                b'I' => {
                    whole?;
                    is_template = true;
                    self.template_args()?
                }
                b'T' => self.template_parameter()?,
                b'E' => return whole,
                b'M' => {
                    // The next part is a closure in the initializer of the part before.
                    whole?;
                    self.next();
                    continue;
                }
                0 => return None,
                _ => self.unqualified_name()?,
            };
            let combined = match whole {
                None => part,
                Some(scope) if is_template => self.add(Node::Template(scope, part)),
                Some(scope) => self.add(Node::Qualified(scope, part)),
            };
            if first != b'S' && self.peek() != b'E' {
                self.substitutable(combined);
            }
            whole = Some(combined);
        }
    }

    fn unqualified_name(&mut self) -> Option<Id> {
        let mut name = match self.peek() {
            b'0'..=b'9' => self.source_name()?,
            b'a'..=b'z' => {
                if self.peek() == b'o' && self.peek_next() == b'n' {
                    self.at += 2;
                }
                let was = std::mem::replace(&mut self.expression, false);
                let operator = self.operator_name();
                self.expression = was;
                let operator = operator?;
                if let Node::OperatorName(Operator { code: "li", .. }) = self.tree.get(operator) {
                    let name = self.source_name()?;
                    self.add(Node::LiteralOperator(name))
                } else {
                    operator
                }
            }
            b'D' if self.peek_next() == b'C' => {
                self.at += 2;
                let mut names = Vec::new();
                while self.peek() != b'E' {
                    names.push(self.source_name()?);
                }
                self.next();
                let list = self.list(names, Node::List)?;
                self.add(Node::Binding(list))
            }
            b'C' | b'D' => self.structor_name()?,
            b'L' => {
                self.next();
                let name = self.source_name()?;
                self.discriminator()?;
                name
            }
            b'U' => match self.peek_next() {
                b'l' => self.lambda()?,
                b't' => self.unnamed_type()?,
                _ => return None,
            },
            _ => return None,
        };
        // A tag does not change the name that a constructor takes.
        let hold = self.last_name;
        while self.eat(b'B') {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag));
        }
        self.last_name = hold;
        Some(name)
    }

    fn source_name(&mut self) -> Option<Id> {
        let length = usize::try_from(self.number()?).ok()?;
        if length == 0 {
            return None;
        }
        let text = self.input.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        const ANONYMOUS: &[u8] = b"_GLOBAL_";
        let anonymous = text.len() >= ANONYMOUS.len() + 2
            && text.starts_with(ANONYMOUS)
            && matches!(text[ANONYMOUS.len()], b'.' | b'_' | b'$')
            && text[ANONYMOUS.len() + 1] == b'N';
        let name = if anonymous { self.text(b"(anonymous namespace)") } else { self.text(text) };
        self.last_name = Some(name);
        Some(name)
    }

    fn structor_name(&mut self) -> Option<Id> {
        if self.eat(b'C') {
            let inheriting = self.eat(b'I');
            if !matches!(self.next(), b'1'..=b'5') {
                return None;
            }
            if inheriting {
                // Its name is that of the class it comes from, right or wrong; that there is such a class does not matter.
                let _ = self.type_();
            }
            let name = self.last_name?;
            Some(self.add(Node::Constructor(name)))
        } else {
            self.expect(b'D')?;
            if !matches!(self.next(), b'0' | b'1' | b'2' | b'4' | b'5') {
                return None;
            }
            let name = self.last_name?;
            Some(self.add(Node::Destructor(name)))
        }
    }

    fn discriminator(&mut self) -> Option<()> {
        if self.eat(b'_') {
            let long = self.eat(b'_');
            if self.peek() == b'n' {
                return None;
            }
            // Without digits it is 0.
            let value = if self.peek().is_ascii_digit() { self.number()? } else { 0 };
            if long && value >= 10 {
                self.expect(b'_')?;
            }
        }
        Some(())
    }

    fn lambda(&mut self) -> Option<Id> {
        self.at += 2;
        let parameters = self.parameter_list()?;
        self.expect(b'E')?;
        let number = self.compact_number()?;
        // Unlike an unnamed type, a lambda by itself is no candidate for substitution.
        Some(self.add(Node::Lambda(parameters, number)))
    }

    fn unnamed_type(&mut self) -> Option<Id> {
        self.at += 2;
        let number = self.compact_number()?;
        let unnamed = self.add(Node::Unnamed(number));
        self.substitutable(unnamed);
        Some(unnamed)
    }

    fn local_name(&mut self) -> Option<Id> {
        self.expect(b'Z')?;
        let function = self.encoding(false)?;
        self.expect(b'E')?;
        if self.eat(b's') {
            self.discriminator()?;
            let literal = self.text(b"string literal");
            let function = self.without_return_type(function);
            return Some(self.add(Node::Local(function, literal)));
        }
        let mut default = None;
        if self.eat(b'd') {
            default = Some(self.compact_number()?);
        }
        let mut name = self.name()?;
        if !matches!(self.tree.get(name), Node::Lambda(..) | Node::Unnamed(_)) {
            self.discriminator()?;
        }
        if let Some(number) = default {
            name = self.add(Node::DefaultArgument(number, name));
        }
        let function = self.without_return_type(function);
        Some(self.add(Node::Local(function, name)))
    }

    /// As in `encoding`: no return type of the function around a local name.
    fn without_return_type(&mut self, function: Id) -> Id {
        if let Node::Typed(outer, signature) = *self.tree.get(function)
            && let Node::Function(Some(_), parameters) = *self.tree.get(signature)
        {
            let signature = self.add(Node::Function(None, parameters));
            return self.add(Node::Typed(outer, signature));
        }
        function
    }

    fn operator_name(&mut self) -> Option<Id> {
        let (first, second) = (self.next(), self.next());
        if first == b'v' && second.is_ascii_digit() {
            let name = self.source_name()?;
            return Some(self.add(Node::VendorOperator(name)));
        }
        if first == b'c' && second == b'v' {
            let was = self.conversion;
            self.conversion = !self.expression;
            let is_conversion = self.conversion;
            let type_ = self.type_();
            self.conversion = was;
            let type_ = type_?;
            return Some(self.add(if is_conversion { Node::Conversion(type_) } else { Node::Cast(type_) }));
        }
        let found = OPERATORS.iter().find(|o| o.code.as_bytes() == [first, second])?;
        Some(self.add(Node::OperatorName(found)))
    }

    fn special_name(&mut self) -> Option<Id> {
        let about_type = |p: &mut Self, text| {
            let type_ = p.type_()?;
            Some(p.add(Node::Special(text, type_)))
        };
        let about_name = |p: &mut Self, text| {
            let name = p.name()?;
            Some(p.add(Node::Special(text, name)))
        };
        let about_encoding = |p: &mut Self, text| {
            let encoding = p.encoding(false)?;
            Some(p.add(Node::Special(text, encoding)))
        };
        if self.eat(b'T') {
            match self.next() {
                b'V' => about_type(self, "vtable for "),
                b'T' => about_type(self, "VTT for "),
                b'I' => about_type(self, "typeinfo for "),
                b'S' => about_type(self, "typeinfo name for "),
                b'F' => about_type(self, "typeinfo fn for "),
                b'J' => about_type(self, "java Class for "),
                b'h' => {
                    self.call_offset(b'h')?;
                    about_encoding(self, "non-virtual thunk to ")
                }
                b'v' => {
                    self.call_offset(b'v')?;
                    about_encoding(self, "virtual thunk to ")
                }
                b'c' => {
                    for _ in 0..2 {
                        let kind = self.next();
                        self.call_offset(kind)?;
                    }
                    about_encoding(self, "covariant return thunk to ")
                }
                b'C' => {
                    let derived = self.type_()?;
                    self.number()?;
                    self.expect(b'_')?;
                    let base = self.type_()?;
                    Some(self.add(Node::ConstructionTable(base, derived)))
                }
                b'H' => about_name(self, "TLS init function for "),
                b'W' => about_name(self, "TLS wrapper function for "),
                b'A' => {
                    let argument = self.template_arg()?;
                    Some(self.add(Node::Special("template parameter object for ", argument)))
                }
                _ => None,
            }
        } else {
            self.expect(b'G')?;
            match self.next() {
                b'V' => about_name(self, "guard variable for "),
                b'R' => {
                    let name = self.name()?;
                    // The reference wants a plain number, though compilers write `_` and `0_`.
                    let number = if self.peek().is_ascii_digit() { self.number()? } else { 0 };
                    Some(self.add(Node::ReferenceTemporary(name, number)))
                }
                b'A' => about_encoding(self, "hidden alias for "),
                b'T' => match self.next() {
                    b'n' => about_encoding(self, "non-transaction clone for "),
                    _ => about_encoding(self, "transaction clone for "),
                },
                _ => None,
            }
        }
    }

    fn call_offset(&mut self, kind: u8) -> Option<()> {
        self.skip_signed_number()?;
        self.expect(b'_')?;
        match kind {
            b'h' => Some(()),
            b'v' => {
                self.skip_signed_number()?;
                self.expect(b'_')
            }
            _ => None,
        }
    }

    /// A number in base 36, up to `_`; nothing is 0, `0` is 1.
    fn sequence_number(&mut self) -> Option<u64> {
        if self.peek() == b'_' || self.peek() == 0 {
            self.eat(b'_');
            return Some(0);
        }
        let mut value = 0u64;
        loop {
            let digit = match self.peek() {
                c @ b'0'..=b'9' => c - b'0',
                c @ b'A'..=b'Z' => c - b'A' + 10,
                b'_' => break,
                _ => return None,
            };
            self.next();
            value = value.checked_mul(36)?.checked_add(digit.into())?;
        }
        self.next();
        value.checked_add(1)
    }

    /// `in_prefix` says whether a constructor may follow, which shows the full name of an abbreviated class.
    fn substitution(&mut self, in_prefix: bool) -> Option<Id> {
        self.expect(b'S')?;
        if matches!(self.peek(), b'_' | b'0'..=b'9' | b'A'..=b'Z') {
            let number = self.sequence_number()?;
            return self.substitutions.get(usize::try_from(number).ok()?).copied();
        }
        let (short, full, last) = match self.next() {
            b't' => ("std", "std", None),
            b'a' => ("std::allocator", "std::allocator", Some("allocator")),
            b'b' => ("std::basic_string", "std::basic_string", Some("basic_string")),
            b's' => (
                "std::string",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                Some("basic_string"),
            ),
            b'i' => ("std::istream", "std::basic_istream<char, std::char_traits<char> >", Some("basic_istream")),
            b'o' => ("std::ostream", "std::basic_ostream<char, std::char_traits<char> >", Some("basic_ostream")),
            b'd' => ("std::iostream", "std::basic_iostream<char, std::char_traits<char> >", Some("basic_iostream")),
            _ => return None,
        };
        if let Some(last) = last {
            self.last_name = Some(self.text(last.as_bytes()));
        }
        let full_name = in_prefix && matches!(self.peek(), b'C' | b'D');
        let mut name = self.add(Node::Abbreviation(if full_name { full } else { short }));
        if self.peek() == b'B' {
            while self.eat(b'B') {
                let hold = self.last_name;
                let tag = self.source_name()?;
                self.last_name = hold;
                name = self.add(Node::Tagged(name, tag));
            }
            self.substitutable(name);
        }
        Some(name)
    }

    fn template_parameter(&mut self) -> Option<Id> {
        self.expect(b'T')?;
        let number = self.compact_number()?;
        Some(self.add(Node::Parameter(number)))
    }

    fn template_args(&mut self) -> Option<Id> {
        self.nested(|p| {
            if !matches!(p.next(), b'I' | b'J') {
                return None;
            }
            // A constructor that follows takes the name before the arguments.
            let hold = p.last_name;
            let mut arguments = Vec::new();
            while p.peek() != b'E' {
                arguments.push(p.template_arg()?);
            }
            p.next();
            p.last_name = hold;
            p.list(arguments, Node::Arguments)
        })
    }

    fn list(&mut self, items: Vec<Id>, node: fn(Option<Id>, Option<Id>) -> Node) -> Option<Id> {
        let mut rest = None;
        for item in items.into_iter().rev() {
            rest = Some(self.add(node(Some(item), rest)));
        }
        Some(rest.unwrap_or_else(|| self.add(node(None, None))))
    }

    fn template_arg(&mut self) -> Option<Id> {
        match self.peek() {
            b'X' => {
                self.next();
                let expression = self.expression()?;
                self.expect(b'E')?;
                Some(expression)
            }
            b'L' => self.primary_expression(),
            b'I' | b'J' => self.template_args(),
            _ => self.type_(),
        }
    }
}
