//! Object identifiers that show as names: `regclass` and its like.

/// The types of object identifiers that show as names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `regclass`
    Class,
    /// `regtype`
    Type,
    /// `regproc` and its like.
    Function,
    /// `regnamespace`
    Namespace,
    /// `regrole`
    Role,
}

impl Named {
    /// The type of that name.
    pub fn of_name(name: &str) -> Option<Named> {
        Some(match name {
            "regclass" => Named::Class,
            "regtype" => Named::Type,
            "regproc" | "regprocedure" | "regoper" | "regoperator" => Named::Function,
            "regnamespace" => Named::Namespace,
            "regrole" => Named::Role,
            _ => return None,
        })
    }

    /// The function from a name to the identifier.
    pub fn reader(self) -> &'static str {
        match self {
            Named::Class => "fabius_class_oid",
            Named::Type => "fabius_type_oid",
            Named::Function => "fabius_function_oid",
            Named::Namespace => "fabius_namespace_oid",
            Named::Role => "fabius_role_oid",
        }
    }

    /// The function back.
    pub fn writer(self) -> &'static str {
        match self {
            Named::Class => "fabius_class_name",
            Named::Type => "fabius_type_name",
            Named::Function => "fabius_function_name",
            Named::Namespace => "fabius_namespace_name",
            Named::Role => "fabius_role_name",
        }
    }
}
