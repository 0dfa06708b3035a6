//! Expressions, as they occur in template arguments and in types such as `decltype (…)`, and the table of operators.

use super::{
    super::{Id, Node, Operator},
    Parser,
};

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Option<Id> {
        let was = std::mem::replace(&mut self.expression, true);
        let result = self.nested(Self::expression_inner);
        self.expression = was;
        result
    }

    pub(super) fn expression_inner(&mut self) -> Option<Id> {
        match self.peek() {
            b'L' => return self.primary_expression(),
            b'T' => return self.template_parameter(),
            _ => {}
        }
        if self.eat_two(b"sr") {
            let scope = self.unresolved_scope()?;
            let name = self.unqualified_name()?;
            let name = self.add(Node::Qualified(scope, name));
            return self.with_arguments(name);
        }
        if self.eat_two(b"sp") {
            let pattern = self.expression()?;
            return Some(self.add(Node::PackExpansion(pattern)));
        }
        if self.peek() == b'f' && self.peek_next() == b'p' {
            self.at += 2;
            let index = if self.eat(b'T') { 0 } else { self.compact_number()?.checked_add(1)? };
            return Some(self.add(Node::FunctionParameter(index)));
        }
        if self.peek().is_ascii_digit() || self.peek() == b'o' && self.peek_next() == b'n' {
            self.eat_two(b"on");
            let name = self.unqualified_name()?;
            return self.with_arguments(name);
        }
        if self.eat_two(b"tl") {
            let type_ = self.type_()?;
            let list = self.expression_list(b'E')?;
            return Some(self.add(Node::Initializer(Some(type_), list)));
        }
        if self.eat_two(b"il") {
            let list = self.expression_list(b'E')?;
            return Some(self.add(Node::Initializer(None, list)));
        }
        let operator = self.operator_name()?;
        match *self.tree.get(operator) {
            Node::Cast(_) => {
                let operand = if self.eat(b'_') {
                    let list = self.expression_list(b'E')?;
                    list.unwrap_or_else(|| self.add(Node::List(None, None)))
                } else {
                    self.expression()?
                };
                Some(self.add(Node::Unary(operator, operand)))
            }
            Node::OperatorName(&Operator { code, operands, .. }) => self.operation(operator, code, operands),
            _ => None,
        }
    }

    /// What stands before the `::` of an unresolved name: a name and an `E`, or, in old style, a type.
    pub(super) fn unresolved_scope(&mut self) -> Option<Id> {
        let (at, nodes, substitutions) = (self.at, self.tree.nodes.len(), self.substitutions.len());
        if self.peek().is_ascii_digit() {
            if let Some(scope) = self.ended_name() {
                return Some(scope);
            }
            self.at = at;
            self.tree.nodes.truncate(nodes);
            self.substitutions.truncate(substitutions);
        }
        self.type_()
    }

    fn ended_name(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        let name = self.with_arguments(name)?;
        self.expect(b'E')?;
        Some(name)
    }

    pub(super) fn with_arguments(&mut self, name: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_args()?;
        Some(self.add(Node::Template(name, arguments)))
    }

    pub(super) fn operation(&mut self, operator: Id, code: &'static str, operands: u8) -> Option<Id> {
        match (code, operands) {
            (_, 0) => Some(self.add(Node::Nullary(operator))),
            ("st", _) => {
                let type_ = self.type_()?;
                Some(self.add(Node::Unary(operator, type_)))
            }
            ("sP", _) => {
                let arguments = self.template_args_until_end()?;
                Some(self.add(Node::Unary(operator, arguments)))
            }
            (_, 1) => {
                let postfix = matches!(code, "pp" | "mm") && !self.eat(b'_');
                let operand = self.expression()?;
                Some(self.add(if postfix { Node::Postfix(operator, operand) } else { Node::Unary(operator, operand) }))
            }
            ("cc" | "dc" | "rc" | "sc", _) => {
                let type_ = self.type_()?;
                let operand = self.expression()?;
                Some(self.add(Node::Binary(operator, type_, operand)))
            }
            ("cl", _) => {
                let function = self.expression()?;
                let list = self.expression_list(b'E')?;
                let list = list.unwrap_or_else(|| self.add(Node::List(None, None)));
                Some(self.add(Node::Binary(operator, function, list)))
            }
            ("dt" | "pt", _) => {
                let object = self.expression()?;
                let member = if self.peek() == b'g' || self.peek() == b's' && self.peek_next() == b'r' {
                    self.expression()?
                } else {
                    let name = self.unqualified_name()?;
                    self.with_arguments(name)?
                };
                Some(self.add(Node::Binary(operator, object, member)))
            }
            ("fl" | "fr" | "fL" | "fR", _) => {
                let inner = self.operator_name()?;
                let first = self.expression()?;
                let second = if matches!(code, "fL" | "fR") { Some(self.expression()?) } else { None };
                Some(self.add(Node::Fold(code.as_bytes()[1], inner, first, second)))
            }
            (_, 2) => {
                let first = self.expression()?;
                let second = self.expression()?;
                Some(self.add(Node::Binary(operator, first, second)))
            }
            ("nw" | "na", _) => {
                let placement = self.expression_list(b'_')?;
                let placement = placement.unwrap_or_else(|| self.add(Node::List(None, None)));
                let type_ = self.type_()?;
                let initializer = if self.eat(b'E') {
                    self.text(b"")
                } else if self.eat_two(b"pi") {
                    let list = self.expression_list(b'E')?;
                    list.unwrap_or_else(|| self.add(Node::List(None, None)))
                } else if self.peek() == b'i' && self.peek_next() == b'l' {
                    self.expression()?
                } else {
                    return None;
                };
                Some(self.add(Node::Trinary(operator, placement, type_, initializer)))
            }
            (_, 3) => {
                let first = self.expression()?;
                let second = self.expression()?;
                let third = self.expression()?;
                Some(self.add(Node::Trinary(operator, first, second, third)))
            }
            _ => None,
        }
    }

    pub(super) fn template_args_until_end(&mut self) -> Option<Id> {
        let mut arguments = Vec::new();
        while self.peek() != b'E' {
            arguments.push(self.template_arg()?);
        }
        self.next();
        self.list(arguments, Node::Arguments)
    }

    pub(super) fn expression_list(&mut self, end: u8) -> Option<Option<Id>> {
        let mut items = Vec::new();
        while !self.eat(end) {
            items.push(self.expression()?);
        }
        if items.is_empty() { Some(None) } else { self.list(items, Node::List).map(Some) }
    }

    pub(super) fn primary_expression(&mut self) -> Option<Id> {
        self.expect(b'L')?;
        let result = if self.peek() == b'_' || self.peek() == b'Z' {
            self.eat(b'_');
            self.expect(b'Z')?;
            self.encoding(false)?
        } else {
            let type_ = self.type_()?;
            // A null pointer may come without a value.
            if matches!(self.tree.get(type_), Node::Builtin("decltype(nullptr)", _)) && self.peek() == b'E' {
                self.next();
                return Some(type_);
            }
            let negative = self.eat(b'n');
            let start = self.at;
            while self.peek() != b'E' {
                if self.peek() == 0 {
                    return None;
                }
                self.next();
            }
            let input = self.input;
            let value = self.text(&input[start..self.at]);
            self.add(Node::Value(type_, value, negative))
        };
        self.expect(b'E')?;
        Some(result)
    }
}

const fn operator(code: &'static str, name: &'static str, operands: u8) -> Operator {
    Operator { code, name, operands }
}

/// All operators that have a code of two letters.
pub(super) static OPERATORS: &[Operator] = &[
    operator("aN", "&=", 2),
    operator("aS", "=", 2),
    operator("aa", "&&", 2),
    operator("ad", "&", 1),
    operator("an", "&", 2),
    operator("at", "alignof ", 1),
    operator("aw", "co_await ", 1),
    operator("az", "alignof ", 1),
    operator("cc", "const_cast", 2),
    operator("cl", "()", 2),
    operator("cm", ",", 2),
    operator("co", "~", 1),
    operator("dV", "/=", 2),
    operator("da", "delete[] ", 1),
    operator("dc", "dynamic_cast", 2),
    operator("de", "*", 1),
    operator("dl", "delete ", 1),
    operator("ds", ".*", 2),
    operator("dt", ".", 2),
    operator("dv", "/", 2),
    operator("eO", "^=", 2),
    operator("eo", "^", 2),
    operator("eq", "==", 2),
    operator("fL", "...", 3),
    operator("fR", "...", 3),
    operator("fl", "...", 2),
    operator("fr", "...", 2),
    operator("ge", ">=", 2),
    operator("gs", "::", 1),
    operator("gt", ">", 2),
    operator("ix", "[]", 2),
    operator("lS", "<<=", 2),
    operator("le", "<=", 2),
    operator("li", "operator\"\" ", 1),
    operator("ls", "<<", 2),
    operator("lt", "<", 2),
    operator("mI", "-=", 2),
    operator("mL", "*=", 2),
    operator("mi", "-", 2),
    operator("ml", "*", 2),
    operator("mm", "--", 1),
    operator("na", "new[]", 3),
    operator("ne", "!=", 2),
    operator("ng", "-", 1),
    operator("nt", "!", 1),
    operator("nw", "new", 3),
    operator("oR", "|=", 2),
    operator("oo", "||", 2),
    operator("or", "|", 2),
    operator("pL", "+=", 2),
    operator("pl", "+", 2),
    operator("pm", "->*", 2),
    operator("pp", "++", 1),
    operator("ps", "+", 1),
    operator("pt", "->", 2),
    operator("qu", "?", 3),
    operator("rM", "%=", 2),
    operator("rS", ">>=", 2),
    operator("rc", "reinterpret_cast", 2),
    operator("rm", "%", 2),
    operator("rs", ">>", 2),
    operator("sP", "sizeof...", 1),
    operator("sZ", "sizeof...", 1),
    operator("sc", "static_cast", 2),
    operator("ss", "<=>", 2),
    operator("st", "sizeof ", 1),
    operator("sz", "sizeof ", 1),
    operator("tr", "throw", 0),
    operator("tw", "throw ", 1),
];
