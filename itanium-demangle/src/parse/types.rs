//! Types.

use super::{
    super::{Id, Literal, Node, Qualifier},
    Parser,
};

impl Parser<'_> {
    pub(super) fn bare_function_type(&mut self, has_return_type: bool) -> Option<Id> {
        let has_return_type = self.eat(b'J') || has_return_type;
        let returned = if has_return_type { Some(self.type_()?) } else { None };
        let parameters = self.parameter_list()?;
        Some(self.add(Node::Function(returned, parameters)))
    }

    /// Parameter types; `None` within for `void`.
    pub(super) fn parameter_list(&mut self) -> Option<Option<Id>> {
        let mut types = Vec::new();
        loop {
            match self.peek() {
                0 | b'E' | b'.' => break,
                b'R' | b'O' if self.peek_next() == b'E' => break,
                _ => types.push(self.type_()?),
            }
        }
        if types.is_empty() {
            return None;
        }
        if types.len() == 1 && matches!(self.tree.get(types[0]), Node::Builtin("void", _)) {
            return Some(None);
        }
        self.list(types, Node::List).map(Some)
    }

    pub(super) fn function_type(&mut self) -> Option<Id> {
        self.nested(|p| {
            p.expect(b'F')?;
            p.eat(b'Y');
            let mut function = p.bare_function_type(true)?;
            if let Some(reference) = p.ref_qualifier() {
                function = p.add(Node::This(reference, function));
            }
            p.expect(b'E')?;
            Some(function)
        })
    }

    pub(super) fn type_(&mut self) -> Option<Id> {
        self.nested(Self::type_inner)
    }

    pub(super) fn type_inner(&mut self) -> Option<Id> {
        let is_qualifier = matches!(self.peek(), b'r' | b'V' | b'K')
            || self.peek() == b'D' && matches!(self.peek_next(), b'x' | b'o' | b'O' | b'w');
        if is_qualifier {
            let qualifiers = self.qualifiers(false)?;
            let of_function = self.peek() == b'F';
            let inner = if of_function { self.function_type()? } else { self.type_()? };
            // The qualifier for references is written last, so it goes outside.
            let type_ = if let Node::This(reference @ (Qualifier::Reference | Qualifier::RvalueReference), inner) =
                *self.tree.get(inner)
            {
                let qualified = self.apply(&qualifiers, inner, of_function);
                self.add(Node::This(reference, qualified))
            } else {
                self.apply(&qualifiers, inner, of_function)
            };
            self.substitutable(type_);
            return Some(type_);
        }
        let type_ = match self.peek() {
            c @ b'a'..=b'z' if c != b'u' => {
                let (name, literal) = builtin(c)?;
                self.next();
                return Some(self.add(Node::Builtin(name, literal)));
            }
            b'u' => {
                self.next();
                let name = self.source_name()?;
                let name = if self.peek() == b'I' {
                    let arguments = self.template_args()?;
                    self.add(Node::Template(name, arguments))
                } else {
                    name
                };
                self.add(Node::Vendor(name))
            }
            b'F' => self.function_type()?,
            b'0'..=b'9' | b'N' | b'Z' => self.name()?,
            b'A' => self.array_type()?,
            b'M' => {
                self.next();
                let class = self.type_()?;
                let member = self.type_()?;
                self.add(Node::MemberPointer(class, member))
            }
            b'T' => self.template_parameter_type()?,
            b'S' => {
                if matches!(self.peek_next(), b'_' | b'0'..=b'9' | b'A'..=b'Z') {
                    let name = self.substitution(false)?;
                    if self.peek() != b'I' {
                        return Some(name);
                    }
                    let arguments = self.template_args()?;
                    self.add(Node::Template(name, arguments))
                } else {
                    let name = self.name()?;
                    if matches!(self.tree.get(name), Node::Abbreviation(_)) {
                        return Some(name);
                    }
                    name
                }
            }
            b'O' => self.wrap(Node::RvalueReference)?,
            b'P' => self.wrap(Node::Pointer)?,
            b'R' => self.wrap(Node::Reference)?,
            b'C' => self.wrap(Node::Complex)?,
            b'G' => self.wrap(Node::Imaginary)?,
            b'U' => {
                self.next();
                let mut qualifier = self.source_name()?;
                if self.peek() == b'I' {
                    let arguments = self.template_args()?;
                    qualifier = self.add(Node::Template(qualifier, arguments));
                }
                let type_ = self.type_()?;
                self.add(Node::VendorQualified(type_, qualifier))
            }
            b'D' => {
                self.next();
                match self.next() {
                    b'T' | b't' => {
                        let expression = self.expression()?;
                        self.expect(b'E')?;
                        self.add(Node::Decltype(expression))
                    }
                    b'p' => {
                        let pattern = self.type_()?;
                        self.add(Node::PackExpansion(pattern))
                    }
                    b'v' => {
                        let size = if self.eat(b'_') {
                            self.expression()?
                        } else {
                            let digits = self.number()?;
                            self.text(digits.to_string().as_bytes())
                        };
                        self.expect(b'_')?;
                        let element = self.type_()?;
                        self.add(Node::Vector(size, element))
                    }
                    c => {
                        let name = match c {
                            b'a' => "auto",
                            b'c' => "decltype(auto)",
                            b'f' => "decimal32",
                            b'd' => "decimal64",
                            b'e' => "decimal128",
                            b'h' => "half",
                            b's' => "char16_t",
                            b'u' => "char8_t",
                            b'i' => "char32_t",
                            b'n' => "decltype(nullptr)",
                            _ => return None,
                        };
                        let node = if matches!(c, b'a' | b'c') {
                            Node::Text(name.into())
                        } else {
                            Node::Builtin(name, Literal::Cast)
                        };
                        return Some(self.add(node));
                    }
                }
            }
            _ => return None,
        };
        self.substitutable(type_);
        Some(type_)
    }

    pub(super) fn wrap(&mut self, node: fn(Id) -> Node) -> Option<Id> {
        self.next();
        let inner = self.type_()?;
        Some(self.add(node(inner)))
    }

    pub(super) fn template_parameter_type(&mut self) -> Option<Id> {
        let parameter = self.template_parameter()?;
        if self.peek() != b'I' {
            return Some(parameter);
        }
        if !self.conversion {
            self.substitutable(parameter);
            let arguments = self.template_args()?;
            return Some(self.add(Node::Template(parameter, arguments)));
        }
        // After `operator T`, arguments belong to the operator, unless a second list follows.
        let (at, nodes, substitutions) = (self.at, self.tree.nodes.len(), self.substitutions.len());
        let arguments = self.template_args()?;
        if self.peek() == b'I' {
            // The reference numbers the parameter behind what its arguments added.
            self.substitutable(parameter);
            return Some(self.add(Node::Template(parameter, arguments)));
        }
        self.at = at;
        self.tree.nodes.truncate(nodes);
        self.substitutions.truncate(substitutions);
        Some(parameter)
    }

    pub(super) fn array_type(&mut self) -> Option<Id> {
        self.expect(b'A')?;
        let dimension = if self.peek() == b'_' {
            None
        } else if self.peek().is_ascii_digit() {
            let start = self.at;
            self.number_suffix();
            let input = self.input;
            Some(self.text(&input[start..self.at]))
        } else {
            Some(self.expression()?)
        };
        self.expect(b'_')?;
        let element = self.type_()?;
        Some(self.add(Node::Array(dimension, element)))
    }
}

/// How a qualifier wraps a type; those about functions are the same for function types and member functions.
pub(super) fn qualified_type(qualifier: Qualifier) -> fn(Qualifier, Id) -> Node {
    match qualifier {
        Qualifier::Const | Qualifier::Volatile | Qualifier::Restrict => Node::QualifiedType,
        _ => Node::This,
    }
}

fn builtin(code: u8) -> Option<(&'static str, Literal)> {
    use Literal::{Bool, Cast, Float, Suffix};
    Some(match code {
        b'a' => ("signed char", Cast),
        b'b' => ("bool", Bool),
        b'c' => ("char", Cast),
        b'd' => ("double", Float),
        b'e' => ("long double", Float),
        b'f' => ("float", Float),
        b'g' => ("__float128", Float),
        b'h' => ("unsigned char", Cast),
        b'i' => ("int", Suffix("")),
        b'j' => ("unsigned int", Suffix("u")),
        b'l' => ("long", Suffix("l")),
        b'm' => ("unsigned long", Suffix("ul")),
        b'n' => ("__int128", Cast),
        b'o' => ("unsigned __int128", Cast),
        b's' => ("short", Cast),
        b't' => ("unsigned short", Cast),
        b'v' => ("void", Cast),
        b'w' => ("wchar_t", Cast),
        b'x' => ("long long", Suffix("ll")),
        b'y' => ("unsigned long long", Suffix("ull")),
        b'z' => ("...", Cast),
        _ => return None,
    })
}
