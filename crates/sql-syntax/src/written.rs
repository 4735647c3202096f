//! Parts of statements as text that reads back as the same part.
//!
//! sqlparser's own text of a literal or name does not: it takes two quotes within for one that is doubled already,
//! and one behind a backslash for one that needs no other. So all quotes are doubled here before it writes them.

use crate::object_name::ObjectName;
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::fmt::Display;
use std::ops::ControlFlow;

/// A part of a statement as text.
pub fn written<T: Clone + Display + VisitMut>(part: &T) -> String {
    let mut part = part.clone();
    let _ = part.visit(&mut Doubling);
    part.to_string()
}

/// A name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The name of a table or another object, with its schema.
pub fn quoted_object(name: &ObjectName) -> String {
    format!("{}.{}", quoted(&name.schema), quoted(&name.name))
}

/// A name as a statement has it.
pub fn written_name(name: &ast::ObjectName) -> String {
    let mut name = name.clone();
    double_name(&mut name);
    name.to_string()
}

/// A part of a name as a statement has it.
pub fn written_ident(ident: &ast::Ident) -> String {
    let mut ident = ident.clone();
    double(&mut ident);
    ident.to_string()
}

/// Doubles quotes within literals and names.
struct Doubling;

fn double(ident: &mut ast::Ident) {
    if let Some(quote @ ('"' | '`' | '\'')) = ident.quote_style {
        ident.value = doubled(&ident.value, quote);
    }
}

fn double_assigned(assignments: &mut [ast::Assignment]) {
    for assignment in assignments {
        match &mut assignment.target {
            ast::AssignmentTarget::ColumnName(name) => double_name(name),
            ast::AssignmentTarget::Tuple(names) => names.iter_mut().for_each(double_name),
        }
    }
}

fn double_name(name: &mut ast::ObjectName) {
    for part in &mut name.0 {
        if let ast::ObjectNamePart::Identifier(ident) = part {
            double(ident);
        }
    }
}

fn doubled(text: &str, quote: char) -> String {
    text.replace(quote, &format!("{quote}{quote}"))
}

fn double_alias(alias: &mut ast::TableAlias) {
    double(&mut alias.name);
    alias.columns.iter_mut().for_each(|column| double(&mut column.name));
}

impl VisitorMut for Doubling {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> ControlFlow<()> {
        match &mut value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::NationalStringLiteral(text) => {
                *text = doubled(text, '\'');
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ast::ObjectName) -> ControlFlow<()> {
        double_name(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<()> {
        use ast::TableFactor as F;
        if let F::Table { alias: Some(alias), .. }
        | F::Derived { alias: Some(alias), .. }
        | F::Function { alias: Some(alias), .. }
        | F::UNNEST { alias: Some(alias), .. }
        | F::NestedJoin { alias: Some(alias), .. } = factor
        {
            double_alias(alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let commons = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
        commons.for_each(|common| double_alias(&mut common.alias));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(double_item);
        select.named_window.iter_mut().for_each(|window| double(&mut window.0));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Identifier(ident) => double(ident),
            ast::Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(double),
            ast::Expr::Function(call) => {
                double_name(&mut call.name);
                if let Some(ast::WindowType::NamedWindow(name)) = &mut call.over {
                    double(name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> ControlFlow<()> {
        match statement {
            ast::Statement::Insert(insert) => {
                insert.columns.iter_mut().for_each(double_name);
                insert.returning.iter_mut().flatten().for_each(double_item);
                insert.table_alias.iter_mut().for_each(|alias| double(&mut alias.alias));
            }
            ast::Statement::Merge(merge) => {
                for clause in &mut merge.clauses {
                    match &mut clause.action {
                        ast::MergeAction::Insert(insert) => insert.columns.iter_mut().for_each(double_name),
                        ast::MergeAction::Update(update) => double_assigned(&mut update.assignments),
                        ast::MergeAction::Delete { .. } => {}
                    }
                }
            }
            ast::Statement::Update(update) => {
                double_assigned(&mut update.assignments);
                update.returning.iter_mut().flatten().for_each(double_item);
            }
            ast::Statement::Delete(delete) => {
                delete.returning.iter_mut().flatten().for_each(double_item);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn double_item(item: &mut ast::SelectItem) {
    match item {
        ast::SelectItem::ExprWithAlias { alias, .. } => double(alias),
        ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            double_name(name);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Tokens;

    /// Goal: what is written reads back as it was, however many quotes and backslashes it has.
    #[test]
    fn what_is_written_reads_back() {
        for text in [
            r#"SELECT 'a''''b', 'c\', 'd\''e', '''', '', E'f\'g'"#,
            r#"SELECT "a""""b"."c\", "t"."d\""e" AS "f""""g" FROM "x""""y"."z" AS "t" ("u""v", "w""""")"#,
            r#"WITH "a""""" ("b""""") AS (SELECT 'c''''') SELECT * FROM "a""""" WHERE "b""""" <> 'd\'"#,
            r#"UPDATE "a""""b" SET "c""""d" = 'e''''f' WHERE "g\" = 1 RETURNING "h" AS "i""""j""#,
            r#"INSERT INTO "a""""b" ("c""""d") VALUES ('e''''f') RETURNING *"#,
        ] {
            let statement = Tokens::of(text).unwrap().sql().unwrap();
            let again = written(&statement);
            assert_eq!(again, text);
            assert_eq!(Tokens::of(&again).unwrap().sql().unwrap(), statement);
        }
    }
}
