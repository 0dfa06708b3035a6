//! Names of the Itanium C++ ABI as the reference shows them.
//!
//! Profiles are compared by name, so a readable name is not enough: it must be the very text the reference's demangler
//! writes, down to blanks (`> >`, `std::function<int (int)>`), suffixes of literals (`4u`), abbreviations
//! (`std::ostream`) and return types (of function templates only). No general library writes that text.
//!
//! [`parse`](parse::parse) turns a mangled name into a tree, [`print`](print::print) writes the tree. What it must never
//! do: panic, recurse without bound or write without bound. A name can stand for exponentially long text, so nesting,
//! steps and length are limited, and a name beyond the limits stays as it is.

mod parse;
mod print;

use print::print;

/// The readable form of `name`, or nothing if it is not a mangled C++ name or exceeds the limits.
#[must_use]
pub fn demangle(name: &[u8]) -> Option<Vec<u8>> {
    let tree = parse::parse(name)?;
    print(&tree)
}

/// Index of a node in its [`Tree`].
type Id = u32;

/// A parsed name: nodes refer to each other by index; a substitution makes several nodes share one.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    root: Id,
}

impl Tree {
    fn get(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }
}

/// Qualifiers of a type, or of the object a member function is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Qualifier {
    Const,
    Volatile,
    Restrict,
    Reference,
    RvalueReference,
    TransactionSafe,
    Noexcept(Option<Id>),
    Throw(Option<Id>),
}

/// How a literal of a built-in type is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Literal {
    /// `(type)value`
    Cast,
    /// The value, with this suffix.
    Suffix(&'static str),
    Bool,
    /// `(type)[hexadecimal digits]`
    Float,
}

/// An entry of the table of operators.
#[derive(Debug)]
struct Operator {
    code: &'static str,
    name: &'static str,
    operands: u8,
}

/// One node of a name. Where a node has two parts, they are named in the order in which they are mangled.
#[derive(Clone, Debug)]
enum Node {
    /// Literal text.
    Text(Vec<u8>),
    /// An abbreviation of something in `std`; unlike [`Node::Text`] it is no candidate for substitution.
    Abbreviation(&'static str),
    /// `scope::name`
    Qualified(Id, Id),
    /// An entity local to a function: `function::name`.
    Local(Id, Id),
    /// A name within the default argument number N (from 0) of a function.
    DefaultArgument(u64, Id),
    /// A name and the type of the function it names.
    Typed(Id, Id),
    /// `name<arguments>`
    Template(Id, Id),
    /// A template parameter, from 0.
    Parameter(u64),
    /// A parameter of the function in whose signature an expression stands; 0 is `this`.
    FunctionParameter(u64),
    Constructor(Id),
    Destructor(Id),
    /// Text such as `vtable for `, and what it is about.
    Special(&'static str, Id),
    /// `construction vtable for base-in-derived`
    ConstructionTable(Id, Id),
    /// `reference temporary #N for name`
    ReferenceTemporary(Id, u64),
    Builtin(&'static str, Literal),
    Vendor(Id),
    /// A qualified type.
    QualifiedType(Qualifier, Id),
    /// A qualified member function or function type.
    This(Qualifier, Id),
    /// `type qualifier`
    VendorQualified(Id, Id),
    Pointer(Id),
    Reference(Id),
    RvalueReference(Id),
    Complex(Id),
    Imaginary(Id),
    /// Return type, if it is known, and the list of parameters, if there are any.
    Function(Option<Id>, Option<Id>),
    /// Dimension and element type.
    Array(Option<Id>, Id),
    /// Class and member type.
    MemberPointer(Id, Id),
    /// Number of elements and element type.
    Vector(Id, Id),
    /// A list: first element and the rest. Both missing: an empty list.
    List(Option<Id>, Option<Id>),
    /// The same, of template arguments: such a list may be the value of a parameter pack.
    Arguments(Option<Id>, Option<Id>),
    /// `{type{list}}`
    Initializer(Option<Id>, Option<Id>),
    OperatorName(&'static Operator),
    /// `operator"" name`
    LiteralOperator(Id),
    VendorOperator(Id),
    /// `operator type`
    Conversion(Id),
    /// A cast in an expression.
    Cast(Id),
    Nullary(Id),
    Unary(Id, Id),
    /// `operand++` and its like.
    Postfix(Id, Id),
    Binary(Id, Id, Id),
    Trinary(Id, Id, Id, Id),
    Fold(u8, Id, Id, Option<Id>),
    /// Type, value, whether it is negative.
    Value(Id, Id, bool),
    Decltype(Id),
    PackExpansion(Id),
    /// Parameter types and number, from 0.
    Lambda(Option<Id>, u64),
    Unnamed(u64),
    /// `name[abi:tag]`
    Tagged(Id, Id),
    /// `name [clone suffix]`
    Clone(Id, Id),
    /// `[a, b]`
    Binding(Id),
}
