//! From a tree to text, laid out as the reference lays it out.
//!
//! C++ types are written around the thing they qualify (`int (*name(char))[3]`), so what qualifies a type is handed
//! down as a chain of pending *modifiers*, which the innermost type writes at the right place and marks as written.
//! Template parameters are resolved while writing, against the chain of the templates whose text is being written.
//!
//! Invariants: text length, nesting and the number of steps are limited, so that shared nodes cannot cost exponential
//! time. The stack of modifiers is cut back to its old height by whoever pushed; that of templates only grows, as parts
//! of it may be needed again.

mod expressions;

use std::collections::HashMap;

use super::{Id, Node, Qualifier, Tree};

const MAX_LENGTH: usize = 256 << 10;
const MAX_DEPTH: usize = 800;
const MAX_STEPS: u32 = 500_000;
/// The name of a function and its qualifiers; the reference has room for no more.
const MAX_QUALIFIERS: usize = 4;
/// Templates whose parameters were asked for; the text of so many would be too long anyway.
const MAX_TEMPLATES: usize = 8192;

/// The text of `tree`.
pub(super) fn print(tree: &Tree) -> Option<Vec<u8>> {
    let mut printer = Printer {
        tree,
        out: Vec::new(),
        last: 0,
        modifiers: None,
        modifier_stack: Vec::new(),
        templates: None,
        template_stack: Vec::new(),
        current_template: None,
        pack_index: Some(0),
        lambda_depth: 0,
        saved_scopes: HashMap::new(),
        path: Vec::new(),
        steps: 0,
    };
    printer.node(tree.root)?;
    Some(printer.out)
}

/// Position in a stack of the printer; the chain ends with none.
type Link = Option<usize>;

#[derive(Clone, Copy)]
struct Modifier {
    next: Link,
    node: Id,
    written: bool,
    templates: Link,
}

struct Printer<'a> {
    tree: &'a Tree,
    out: Vec<u8>,
    /// The character written last, even if it was taken back; some blanks depend on it.
    last: u8,
    modifiers: Link,
    modifier_stack: Vec<Modifier>,
    templates: Link,
    template_stack: Vec<(Link, Id)>,
    /// The template whose name is being written, for the parameters of a conversion operator.
    current_template: Option<Id>,
    /// The element of packs that is written; none: all of them.
    pack_index: Option<u64>,
    /// Above 0 while the parameters of a lambda are written: parameters are called `auto` there.
    lambda_depth: u32,
    /// The templates that were current when a parameter below a reference was written first: the reference goes back
    /// to them when the same part of the name is used again as a substitution, right or wrong.
    saved_scopes: HashMap<Id, Link>,
    /// The nodes being written, outermost first.
    path: Vec<Id>,
    steps: u32,
}

impl<'a> Printer<'a> {
    fn get(&self, id: Id) -> &'a Node {
        self.tree.get(id)
    }

    fn text(&mut self, text: &[u8]) -> Option<()> {
        if self.out.len() + text.len() > MAX_LENGTH {
            return None;
        }
        self.out.extend_from_slice(text);
        if let Some(&last) = text.last() {
            self.last = last;
        }
        Some(())
    }

    fn number(&mut self, number: u64) -> Option<()> {
        self.text(number.to_string().as_bytes())
    }

    fn push_modifier(&mut self, node: Id) -> usize {
        let modifier = Modifier { next: self.modifiers, node, written: false, templates: self.templates };
        self.modifier_stack.push(modifier);
        let at = self.modifier_stack.len() - 1;
        self.modifiers = Some(at);
        at
    }

    fn push_template(&mut self, node: Id) -> Option<()> {
        if self.template_stack.len() == MAX_TEMPLATES {
            return None;
        }
        self.template_stack.push((self.templates, node));
        self.templates = Some(self.template_stack.len() - 1);
        Some(())
    }

    fn node(&mut self, id: Id) -> Option<()> {
        self.steps += 1;
        if self.path.len() >= MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        self.path.push(id);
        let result = self.node_inner(id);
        self.path.pop();
        result
    }

    fn node_inner(&mut self, id: Id) -> Option<()> {
        match self.get(id) {
            Node::Text(text) => self.text(text),
            Node::Abbreviation(text) => self.text(text.as_bytes()),
            Node::Qualified(scope, name) => {
                self.node(*scope)?;
                self.text(b"::")?;
                self.node(*name)
            }
            Node::Local(function, name) => self.local(*function, *name, false),
            Node::DefaultArgument(_, name) => self.node(*name),
            Node::Typed(name, function) => self.typed(*name, *function),
            Node::Template(name, arguments) => {
                // What is pending must not be written into the arguments.
                let modifiers = self.modifiers.take();
                let current = self.current_template.replace(id);
                self.node(*name)?;
                self.arguments(*arguments)?;
                self.current_template = current;
                self.modifiers = modifiers;
                Some(())
            }
            Node::Parameter(number) => self.parameter(*number),
            Node::FunctionParameter(0) => self.text(b"this"),
            Node::FunctionParameter(number) => {
                self.text(b"{parm#")?;
                self.number(*number)?;
                self.text(b"}")
            }
            Node::Constructor(name) => self.node(*name),
            Node::Destructor(name) => {
                self.text(b"~")?;
                self.node(*name)
            }
            Node::Special(text, about) => {
                self.text(text.as_bytes())?;
                self.node(*about)
            }
            Node::ConstructionTable(base, derived) => {
                self.text(b"construction vtable for ")?;
                self.node(*base)?;
                self.text(b"-in-")?;
                self.node(*derived)
            }
            Node::ReferenceTemporary(name, number) => {
                self.text(b"reference temporary #")?;
                self.number(*number)?;
                self.text(b" for ")?;
                self.node(*name)
            }
            Node::Builtin(name, _) => self.text(name.as_bytes()),
            Node::Vendor(name) => self.node(*name),
            Node::QualifiedType(qualifier, inner) => {
                // A qualifier that is pending already is written once.
                let mut link = self.modifiers;
                while let Some(at) = link {
                    let modifier = self.modifier_stack[at];
                    if !modifier.written {
                        match self.get(modifier.node) {
                            Node::QualifiedType(other, _) if other == qualifier => return self.node(*inner),
                            Node::QualifiedType(..) => {}
                            _ => break,
                        }
                    }
                    link = modifier.next;
                }
                self.modified(id, *inner)
            }
            Node::Reference(inner) | Node::RvalueReference(inner) => self.reference(id, *inner),
            Node::This(_, inner)
            | Node::VendorQualified(inner, _)
            | Node::Pointer(inner)
            | Node::Complex(inner)
            | Node::Imaginary(inner)
            | Node::MemberPointer(_, inner)
            | Node::Vector(_, inner) => self.modified(id, *inner),
            Node::Function(returned, _) => {
                if let Some(returned) = returned {
                    let at = self.push_modifier(id);
                    self.node(*returned)?;
                    let modifier = self.modifier_stack[at];
                    self.modifier_stack.truncate(at);
                    self.modifiers = modifier.next;
                    if modifier.written {
                        return Some(());
                    }
                    self.text(b" ")?;
                }
                self.function(id, self.modifiers)
            }
            Node::Array(_, element) => self.array(id, *element),
            Node::List(first, rest) | Node::Arguments(first, rest) => {
                if let Some(first) = first {
                    self.node(*first)?;
                }
                if let Some(rest) = rest {
                    let length = self.out.len();
                    self.text(b", ")?;
                    self.node(*rest)?;
                    // An empty pack leaves no comma.
                    if self.out.len() == length + 2 {
                        self.out.truncate(length);
                    }
                }
                Some(())
            }
            Node::Initializer(type_, list) => {
                if let Some(type_) = type_ {
                    self.node(*type_)?;
                }
                self.text(b"{")?;
                if let Some(list) = list {
                    self.node(*list)?;
                }
                self.text(b"}")
            }
            Node::OperatorName(operator) => {
                self.text(b"operator")?;
                if operator.name.starts_with(|c: char| c.is_ascii_lowercase()) {
                    self.text(b" ")?;
                }
                self.text(operator.name.trim_end().as_bytes())
            }
            Node::LiteralOperator(name) => {
                self.text(b"operator\"\" ")?;
                self.node(*name)
            }
            Node::VendorOperator(name) => {
                self.text(b"operator ")?;
                self.node(*name)
            }
            Node::Conversion(type_) => {
                self.text(b"operator ")?;
                self.conversion(*type_)
            }
            Node::Cast(type_) => {
                self.text(b"operator ")?;
                self.node(*type_)
            }
            Node::Nullary(operator) => self.operator(*operator),
            Node::Unary(operator, operand) => self.unary(*operator, *operand),
            Node::Postfix(operator, operand) => {
                self.operand(*operand)?;
                self.operator(*operator)
            }
            Node::Binary(operator, first, second) => self.binary(*operator, *first, *second),
            Node::Trinary(operator, first, second, third) => self.trinary(*operator, *first, *second, *third),
            Node::Fold(kind, operator, first, second) => self.fold(*kind, *operator, *first, *second),
            Node::Value(type_, value, negative) => self.value(*type_, *value, *negative),
            Node::Decltype(expression) => {
                self.text(b"decltype (")?;
                self.node(*expression)?;
                self.text(b")")
            }
            Node::PackExpansion(pattern) => self.pack(*pattern),
            Node::Lambda(parameters, number) => {
                self.text(b"{lambda(")?;
                self.lambda_depth += 1;
                if let Some(parameters) = parameters {
                    self.node(*parameters)?;
                }
                self.lambda_depth -= 1;
                self.text(b")#")?;
                self.number(number.checked_add(1)?)?;
                self.text(b"}")
            }
            Node::Unnamed(number) => {
                self.text(b"{unnamed type#")?;
                self.number(number.checked_add(1)?)?;
                self.text(b"}")
            }
            Node::Tagged(name, tag) => {
                self.node(*name)?;
                self.text(b"[abi:")?;
                self.node(*tag)?;
                self.text(b"]")
            }
            Node::Clone(of, suffix) => {
                self.node(*of)?;
                self.text(b" [clone ")?;
                self.node(*suffix)?;
                self.text(b"]")
            }
            Node::Binding(names) => {
                self.text(b"[")?;
                self.node(*names)?;
                self.text(b"]")
            }
        }
    }

    fn arguments(&mut self, arguments: Id) -> Option<()> {
        if self.last == b'<' {
            self.text(b" ")?;
        }
        self.text(b"<")?;
        self.node(arguments)?;
        if self.last == b'>' {
            self.text(b" ")?;
        }
        self.text(b">")
    }

    /// The name behind qualifiers of a member function.
    fn without_qualifiers(&self, mut id: Id) -> Id {
        while let Node::This(_, inner) = self.get(id) {
            id = *inner;
        }
        id
    }

    /// `function::name`; without the qualifiers of a member function where those are pending by themselves.
    fn local(&mut self, function: Id, name: Id, bare: bool) -> Option<()> {
        self.node(function)?;
        self.text(b"::")?;
        let mut name = name;
        if let Node::DefaultArgument(number, inner) = self.get(name) {
            self.text(b"{default arg#")?;
            self.number(number.checked_add(1)?)?;
            self.text(b"}::")?;
            name = *inner;
        }
        self.node(if bare { self.without_qualifiers(name) } else { name })
    }

    fn typed(&mut self, name: Id, function: Id) -> Option<()> {
        // The name and the qualifiers of the member function are handed down, to be written where the type wants them.
        let hold = self.modifiers.take();
        let height = self.modifier_stack.len();
        let mut innermost = name;
        loop {
            if self.modifier_stack.len() - height == MAX_QUALIFIERS {
                return None;
            }
            self.push_modifier(innermost);
            match self.get(innermost) {
                Node::This(_, inner) => innermost = *inner,
                _ => break,
            }
        }
        if let Node::Local(_, inner) = self.get(innermost) {
            innermost = *inner;
            if let Node::DefaultArgument(_, inner) = self.get(innermost) {
                innermost = *inner;
            }
            while let Node::This(_, inner) = self.get(innermost) {
                // The qualifiers of a local name belong to the function too; they go below the name.
                let at = self.modifier_stack.len();
                if at - height == MAX_QUALIFIERS {
                    return None;
                }
                let name = self.modifier_stack[at - 1];
                self.modifier_stack.push(name);
                self.modifier_stack[at - 1].node = innermost;
                self.modifier_stack[at].next = Some(at - 1);
                self.modifiers = Some(at);
                innermost = *inner;
            }
        }
        let templates = self.templates;
        if matches!(self.get(innermost), Node::Template(..)) {
            self.push_template(innermost)?;
        }
        self.node(function)?;
        self.templates = templates;
        for at in (height..self.modifier_stack.len()).rev() {
            if !self.modifier_stack[at].written {
                self.text(b" ")?;
                self.modifier(self.modifier_stack[at].node)?;
            }
        }
        self.modifier_stack.truncate(height);
        self.modifiers = hold;
        Some(())
    }

    /// The value of a template parameter.
    fn lookup(&self, number: u64) -> Option<Id> {
        let (_, template) = self.template_stack[self.templates?];
        let Node::Template(_, arguments) = self.get(template) else { return None };
        self.nth(*arguments, number)
    }

    fn nth(&self, list: Id, number: u64) -> Option<Id> {
        let mut list = list;
        for _ in 0..number {
            let Node::Arguments(_, rest) = self.get(list) else { return None };
            list = (*rest)?;
        }
        let Node::Arguments(first, _) = self.get(list) else { return None };
        *first
    }

    /// The value of a parameter, or the current element if it is a pack.
    fn argument(&self, number: u64) -> Option<Id> {
        let found = self.lookup(number)?;
        match self.get(found) {
            Node::Arguments(..) => match self.pack_index {
                Some(index) => self.nth(found, index),
                None => Some(found),
            },
            _ => Some(found),
        }
    }

    fn parameter(&mut self, number: u64) -> Option<()> {
        if self.lambda_depth > 0 {
            self.text(b"auto:")?;
            return self.number(number.checked_add(1)?);
        }
        let argument = self.argument(number)?;
        // The argument was written outside of this template.
        let hold = self.templates;
        self.templates = self.template_stack[hold?].0;
        self.node(argument)?;
        self.templates = hold;
        Some(())
    }

    fn modified(&mut self, id: Id, inner: Id) -> Option<()> {
        let at = self.push_modifier(id);
        self.node(inner)?;
        let modifier = self.modifier_stack[at];
        if !modifier.written {
            self.modifier(id)?;
        }
        self.modifier_stack.truncate(at);
        self.modifiers = modifier.next;
        Some(())
    }

    /// A reference to a reference is one reference: `&` wins over `&&`.
    fn reference(&mut self, id: Id, inner: Id) -> Option<()> {
        let is_lvalue = matches!(self.get(id), Node::Reference(_));
        let hold = self.templates;
        let mut target = inner;
        if self.lambda_depth == 0
            && let Node::Parameter(number) = self.get(inner)
        {
            match self.saved_scopes.get(&inner) {
                None => {
                    self.saved_scopes.insert(inner, self.templates);
                }
                Some(&saved) => {
                    let (_, above) = self.path.split_last()?;
                    if !self.path.contains(&inner) && !above.contains(&id) {
                        self.templates = saved;
                    }
                }
            }
            target = self.argument(*number)?;
        }
        let result = match self.get(target) {
            Node::Reference(below) => self.modified(target, *below),
            Node::RvalueReference(below) if !is_lvalue => self.modified(target, *below),
            Node::RvalueReference(below) => self.modified(id, *below),
            _ => self.modified(id, inner),
        };
        self.templates = hold;
        result
    }

    /// Writes the pending modifiers from `link` on; those of member functions only if `suffix`.
    fn modifier_list(&mut self, link: Link, suffix: bool) -> Option<()> {
        let mut link = link;
        while let Some(at) = link {
            let modifier = self.modifier_stack[at];
            link = modifier.next;
            let node = self.get(modifier.node);
            if modifier.written || (!suffix && matches!(node, Node::This(..))) {
                continue;
            }
            self.modifier_stack[at].written = true;
            let hold = std::mem::replace(&mut self.templates, modifier.templates);
            match node {
                Node::Function(..) => {
                    self.function(modifier.node, modifier.next)?;
                    self.templates = hold;
                    return Some(());
                }
                Node::Array(..) => {
                    self.array_tail(modifier.node, modifier.next)?;
                    self.templates = hold;
                    return Some(());
                }
                Node::Local(function, name) => {
                    let modifiers = self.modifiers.take();
                    self.local(*function, *name, true)?;
                    self.modifiers = modifiers;
                    self.templates = hold;
                    return Some(());
                }
                _ => self.modifier(modifier.node)?,
            }
            self.templates = hold;
        }
        Some(())
    }

    fn modifier(&mut self, id: Id) -> Option<()> {
        match self.get(id) {
            Node::QualifiedType(qualifier, _) | Node::This(qualifier, _) => match qualifier {
                Qualifier::Const => self.text(b" const"),
                Qualifier::Volatile => self.text(b" volatile"),
                Qualifier::Restrict => self.text(b" restrict"),
                Qualifier::Reference => self.text(b" &"),
                Qualifier::RvalueReference => self.text(b" &&"),
                Qualifier::TransactionSafe => self.text(b" transaction_safe"),
                Qualifier::Noexcept(condition) => self.exception(b" noexcept", *condition),
                Qualifier::Throw(types) => self.exception(b" throw", *types),
            },
            Node::VendorQualified(_, qualifier) => {
                self.text(b" ")?;
                self.node(*qualifier)
            }
            Node::Pointer(_) => self.text(b"*"),
            Node::Reference(_) => self.text(b"&"),
            Node::RvalueReference(_) => self.text(b"&&"),
            Node::Complex(_) => self.text(b" _Complex"),
            Node::Imaginary(_) => self.text(b" _Imaginary"),
            Node::MemberPointer(class, _) => {
                if self.last != b'(' {
                    self.text(b" ")?;
                }
                self.node(*class)?;
                self.text(b"::*")
            }
            Node::Typed(name, _) => self.node(*name),
            Node::Vector(size, _) => {
                self.text(b" __vector(")?;
                self.node(*size)?;
                self.text(b")")
            }
            _ => self.node(id),
        }
    }

    fn exception(&mut self, word: &[u8], what: Option<Id>) -> Option<()> {
        self.text(word)?;
        if let Some(what) = what {
            self.text(b"(")?;
            self.node(what)?;
            self.text(b")")?;
        }
        Some(())
    }

    /// The parameters of a function type, with what is pending from `modifiers` on before and behind them.
    fn function(&mut self, id: Id, modifiers: Link) -> Option<()> {
        let Node::Function(_, parameters) = self.get(id) else { return None };
        let (mut parentheses, mut space) = (false, false);
        let mut link = modifiers;
        while let Some(at) = link {
            let modifier = self.modifier_stack[at];
            if modifier.written {
                break;
            }
            match self.get(modifier.node) {
                Node::Pointer(_) | Node::Reference(_) | Node::RvalueReference(_) => parentheses = true,
                Node::QualifiedType(..)
                | Node::VendorQualified(..)
                | Node::Complex(_)
                | Node::Imaginary(_)
                | Node::MemberPointer(..) => (parentheses, space) = (true, true),
                _ => {}
            }
            if parentheses {
                break;
            }
            link = modifier.next;
        }
        if parentheses {
            space = space || !matches!(self.last, b'(' | b'*');
            if space && self.last != b' ' {
                self.text(b" ")?;
            }
            self.text(b"(")?;
        }
        let hold = self.modifiers.take();
        self.modifier_list(modifiers, false)?;
        if parentheses {
            self.text(b")")?;
        }
        self.text(b"(")?;
        if let Some(parameters) = parameters {
            self.node(*parameters)?;
        }
        self.text(b")")?;
        self.modifier_list(modifiers, true)?;
        self.modifiers = hold;
        Some(())
    }

    fn array(&mut self, id: Id, element: Id) -> Option<()> {
        // Qualifiers of an array are those of its elements: they are handed down before the array itself.
        let hold = self.modifiers;
        let height = self.modifier_stack.len();
        self.push_modifier(id);
        let mut link = hold;
        while let Some(at) = link {
            let modifier = self.modifier_stack[at];
            if !matches!(self.get(modifier.node), Node::QualifiedType(..)) {
                break;
            }
            if !modifier.written {
                self.modifier_stack[at].written = true;
                self.push_modifier(modifier.node);
                let top = self.modifier_stack.len() - 1;
                self.modifier_stack[top].templates = modifier.templates;
            }
            link = modifier.next;
        }
        self.node(element)?;
        self.modifiers = hold;
        let written = self.modifier_stack[height].written;
        for at in (height + 1..self.modifier_stack.len()).rev() {
            if !written && !self.modifier_stack[at].written {
                self.modifier(self.modifier_stack[at].node)?;
            }
        }
        self.modifier_stack.truncate(height);
        if written {
            return Some(());
        }
        self.array_tail(id, self.modifiers)
    }

    fn array_tail(&mut self, id: Id, modifiers: Link) -> Option<()> {
        let Node::Array(dimension, _) = self.get(id) else { return None };
        let mut space = true;
        if modifiers.is_some() {
            let mut parentheses = false;
            let mut link = modifiers;
            while let Some(at) = link {
                let modifier = self.modifier_stack[at];
                if !modifier.written {
                    if matches!(self.get(modifier.node), Node::Array(..)) {
                        space = false;
                    } else {
                        parentheses = true;
                    }
                    break;
                }
                link = modifier.next;
            }
            if parentheses {
                self.text(b" (")?;
            }
            self.modifier_list(modifiers, false)?;
            if parentheses {
                self.text(b")")?;
            }
        }
        if space {
            self.text(b" ")?;
        }
        self.text(b"[")?;
        if let Some(dimension) = dimension {
            self.node(*dimension)?;
        }
        self.text(b"]")
    }

    fn conversion(&mut self, type_: Id) -> Option<()> {
        // The parameters in the type are those of the operator's own template.
        let hold = self.templates;
        if let Some(template) = self.current_template {
            self.push_template(template)?;
        }
        if let Node::Template(name, arguments) = self.get(type_) {
            self.node(*name)?;
            self.templates = hold;
            return self.arguments(*arguments);
        }
        self.node(type_)?;
        self.templates = hold;
        Some(())
    }
}
