//! Clauses of other systems that sqlparser reads, whatever the dialect: PostgreSQL has none of them.
//!
//! What runs a statement reads the fields that it knows. A field that nobody knows would be a clause that passes
//! without a word (`DELETE ... LIMIT 1` would delete every row), so each structure is taken apart here field by
//! field, without `..`: a field that a later sqlparser adds does not compile until somebody has said what becomes of
//! it.

mod definition;

use definition::{judge_alteration, judge_index, judge_table, judge_truncation, judge_view};
use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, Expr, TableFactor, Visit, Visitor};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// A clause that PostgreSQL does not have.
#[derive(Debug)]
pub struct Foreign {
    /// The clause's words, or what it is: the statement is wrong at the last of them if that is a keyword.
    pub words: &'static str,
    /// What does not have it.
    pub of: &'static str,
    /// PostgreSQL has it, Fabius has not.
    pub is_known: bool,
}

/// PostgreSQL has it, Fabius has not.
pub(super) fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

impl Foreign {
    /// `42601` as PostgreSQL says it, or `0A000` for what it has.
    pub fn error(&self) -> Error {
        let Foreign { words, of, is_known } = self;
        if *is_known {
            return not_supported(words);
        }
        let message = match self.near() {
            Some(word) => format!("syntax error at or near \"{word}\""),
            None => "syntax error".to_string(),
        };
        Error::new(SqlState::SYNTAX_ERROR, message).with_detail(format!("{of} has no {words} in PostgreSQL"))
    }

    /// The word where the statement is wrong, unless what stands there has no fixed word.
    pub fn near(&self) -> Option<&'static str> {
        let last = self.words.rsplit(' ').next()?;
        (!last.contains(|letter: char| letter.is_lowercase())).then_some(last)
    }
}

type Judged = ControlFlow<Foreign>;

/// Finds the first clause that is not PostgreSQL's.
pub fn find(tree: &impl Visit) -> Option<Foreign> {
    tree.visit(&mut Judge::default()).break_value()
}

/// Refuses the clauses that are there.
fn none(of: &'static str, clauses: &[(bool, &'static str)]) -> Judged {
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, words)) => ControlFlow::Break(Foreign { words, of, is_known: false }),
        None => ControlFlow::Continue(()),
    }
}

#[derive(Default)]
struct Judge {
    /// `[1, 2]` within `ARRAY[...]`, which need not say `ARRAY` again.
    rows: HashSet<*const Expr>,
}

impl Visitor for Judge {
    type Break = Foreign;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> Judged {
        match statement {
            ast::Statement::Insert(insert) => judge_insert(insert),
            ast::Statement::Update(update) => judge_update(update),
            ast::Statement::Delete(delete) => judge_delete(delete),
            ast::Statement::Merge(merge) => judge_merge(merge),
            ast::Statement::CreateTable(create) => judge_table(create),
            ast::Statement::CreateIndex(create) => judge_index(create),
            ast::Statement::CreateView(create) => judge_view(create),
            ast::Statement::AlterTable(alter) => judge_alteration(alter),
            ast::Statement::Truncate(truncate) => judge_truncation(truncate),
            ast::Statement::Drop {
                object_type: _,
                if_exists: _,
                names: _,
                cascade: _,
                restrict: _,
                purge,
                temporary,
                table,
            } => none("DROP", &[(*purge, "PURGE"), (*temporary, "TEMPORARY"), (table.is_some(), "ON")]),
            ast::Statement::CreateSchema {
                schema_name: _,
                if_not_exists: _,
                with,
                options,
                default_collate_spec,
                clone,
            } => none(
                "CREATE SCHEMA",
                &[
                    (with.is_some(), "WITH"),
                    (options.is_some(), "OPTIONS"),
                    (default_collate_spec.is_some(), "COLLATE"),
                    (clone.is_some(), "CLONE"),
                ],
            ),
            ast::Statement::Explain {
                describe_alias,
                analyze: _,
                verbose: _,
                query_plan,
                estimate,
                statement: _,
                format,
                options: _,
            } => none(
                "EXPLAIN",
                &[
                    (*query_plan, "QUERY"),
                    (*estimate, "ESTIMATE"),
                    (format.is_some(), "FORMAT"),
                    (!matches!(describe_alias, ast::DescribeAlias::Explain), "DESCRIBE"),
                ],
            ),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &ast::Query) -> Judged {
        let ast::Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        for common in with.iter().flat_map(|ast::With { cte_tables, .. }| cte_tables) {
            let ast::Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } = common;
            judge_alias(alias)?;
            none("WITH", &[(from.is_some(), "FROM")])?;
        }
        judge_set(body)?;
        if let Some(ast::OrderBy { kind, interpolate }) = order_by {
            none("ORDER BY", &[(interpolate.is_some(), "INTERPOLATE")])?;
            match kind {
                ast::OrderByKind::All(_) => none("ORDER BY", &[(true, "ALL")])?,
                ast::OrderByKind::Expressions(keys) => judge_keys(keys)?,
            }
        }
        if let Some(ast::LimitClause::LimitOffset { limit: _, offset: _, limit_by }) = limit_clause {
            none("LIMIT", &[(!limit_by.is_empty(), "BY")])?;
        }
        if let Some(ast::Fetch { with_ties: _, percent, quantity: _ }) = fetch {
            none("FETCH", &[(*percent, "PERCENT")])?;
        }
        for ast::LockClause { lock_type: _, of: _, nonblock: _ } in locks {}
        none(
            "SELECT",
            &[
                (for_clause.is_some(), "FOR"),
                (settings.is_some(), "SETTINGS"),
                (format_clause.is_some(), "FORMAT"),
                (!pipe_operators.is_empty(), "|>"),
            ],
        )
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> Judged {
        let ast::Select {
            select_token: _,
            optimizer_hints: _,
            distinct: _,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into: _,
            from,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window: _,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        none(
            "SELECT",
            &[
                (select_modifiers.as_ref().is_some_and(|words| *words != Default::default()), "modifiers"),
                (top.is_some(), "TOP"),
                (exclude.is_some(), "EXCLUDE"),
                (!lateral_views.is_empty(), "LATERAL VIEW"),
                (prewhere.is_some(), "PREWHERE"),
                (!connect_by.is_empty(), "CONNECT BY"),
                (!cluster_by.is_empty(), "CLUSTER BY"),
                (!distribute_by.is_empty(), "DISTRIBUTE BY"),
                (!sort_by.is_empty(), "SORT BY"),
                (qualify.is_some(), "QUALIFY"),
                (value_table_mode.is_some(), "AS STRUCT or AS VALUE"),
                (!matches!(flavor, ast::SelectFlavor::Standard), "FROM"),
            ],
        )?;
        match group_by {
            ast::GroupByExpr::All(_) => none("GROUP BY", &[(true, "ALL")])?,
            ast::GroupByExpr::Expressions(_, modifiers) => {
                none("GROUP BY", &[(!modifiers.is_empty(), "WITH")])?;
            }
        }
        judge_items(projection)?;
        from.iter().try_for_each(judge_joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Judged {
        judge_factor(factor)
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> Judged {
        match expression {
            Expr::Array(ast::Array { elem, named }) => {
                let is_row = self.rows.contains(&std::ptr::from_ref(expression));
                none("an expression", &[(!named && !is_row, "[")])?;
                let rows = elem.iter().filter(|row| matches!(row, Expr::Array(_)));
                self.rows.extend(rows.map(std::ptr::from_ref));
                ControlFlow::Continue(())
            }
            Expr::Function(function) => judge_call(function),
            Expr::Cast { kind, expr: _, data_type: _, array, format } => none(
                "CAST",
                &[
                    (matches!(kind, ast::CastKind::TryCast), "TRY_CAST"),
                    (matches!(kind, ast::CastKind::SafeCast), "SAFE_CAST"),
                    (*array, "ARRAY"),
                    (format.is_some(), "FORMAT"),
                ],
            ),
            Expr::Extract { field: _, syntax, expr: _ } => {
                none("EXTRACT", &[(matches!(syntax, ast::ExtractSyntax::Comma), ",")])
            }
            Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => {
                let plain = ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime);
                none(
                    "ceil and floor",
                    &[(*field != plain && !matches!(field, ast::CeilFloorKind::Scale(_)), "TO")],
                )
            }
            Expr::TypedString(ast::TypedString { data_type: _, value: _, uses_odbc_syntax }) => {
                none("an expression", &[(*uses_odbc_syntax, "{")])
            }
            Expr::BinaryOp { left: _, op, right: _ } => none(
                "an expression",
                &[
                    (matches!(op, ast::BinaryOperator::Xor), "XOR"),
                    (matches!(op, ast::BinaryOperator::DuckIntegerDivide), "//"),
                    (matches!(op, ast::BinaryOperator::MyIntegerDivide), "DIV"),
                    (matches!(op, ast::BinaryOperator::Match), "MATCH"),
                    (matches!(op, ast::BinaryOperator::Regexp), "REGEXP"),
                    (matches!(op, ast::BinaryOperator::Assignment), ":="),
                ],
            ),
            Expr::RLike { negated: _, expr: _, pattern: _, regexp } => {
                none("an expression", &[(true, if *regexp { "REGEXP" } else { "RLIKE" })])
            }
            _ => none(
                "an expression",
                &[
                    (matches!(expression, Expr::Convert { .. }), "CONVERT"),
                    (matches!(expression, Expr::JsonAccess { .. }), ":"),
                    (matches!(expression, Expr::InUnnest { .. }), "UNNEST"),
                    (matches!(expression, Expr::Struct { .. }), "STRUCT"),
                    (matches!(expression, Expr::Dictionary(_)), "{"),
                    (matches!(expression, Expr::Map(_)), "MAP"),
                    (matches!(expression, Expr::MatchAgainst { .. }), "AGAINST"),
                    (matches!(expression, Expr::OuterJoin(_)), "(+)"),
                    (matches!(expression, Expr::Prior(_)), "PRIOR"),
                    (matches!(expression, Expr::MemberOf(_)), "MEMBER OF"),
                ],
            ),
        }
    }
}

// ---- Statements that write ----

fn judge_insert(insert: &ast::Insert) -> Judged {
    let ast::Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into,
        table: _,
        table_alias: _,
        columns: _,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on,
        returning,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    // `OVERRIDING SYSTEM VALUE` is read as `INSERT OVERWRITE INTO TABLE`.
    let overrides = *overwrite && *into && *has_table_keyword;
    none(
        "INSERT",
        &[
            (or.is_some(), "OR"),
            (*ignore, "IGNORE"),
            (*overwrite && !overrides, "OVERWRITE"),
            (*has_table_keyword && !overrides, "TABLE"),
            (!*into, "table without INTO before it"),
            (!assignments.is_empty(), "SET"),
            (partitioned.is_some(), "PARTITION"),
            (!after_columns.is_empty(), "PARTITION"),
            (matches!(on, Some(ast::OnInsert::DuplicateKeyUpdate(_))), "ON DUPLICATE"),
            (output.is_some(), "OUTPUT"),
            (*replace_into, "REPLACE"),
            (priority.is_some(), "a priority"),
            (insert_alias.is_some(), "AS"),
            (settings.is_some(), "SETTINGS"),
            (format_clause.is_some(), "FORMAT"),
            (multi_table_insert_type.is_some(), "ALL or FIRST"),
            (!multi_table_into_clauses.is_empty(), "INTO"),
            (!multi_table_when_clauses.is_empty(), "WHEN"),
            (multi_table_else_clause.is_some(), "ELSE"),
        ],
    )?;
    judge_items(returning.as_deref().unwrap_or_default())
}

fn judge_update(update: &ast::Update) -> Judged {
    let ast::Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments: _,
        from,
        selection: _,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    none(
        "UPDATE",
        &[
            (or.is_some(), "OR"),
            (!table.joins.is_empty(), "JOIN"),
            (output.is_some(), "OUTPUT"),
            (!order_by.is_empty(), "ORDER BY"),
            (limit.is_some(), "LIMIT"),
        ],
    )?;
    judge_joins(table)?;
    match from {
        None => {}
        Some(ast::UpdateTableFromKind::BeforeSet(_)) => none("UPDATE", &[(true, "FROM")])?,
        Some(ast::UpdateTableFromKind::AfterSet(from)) => from.iter().try_for_each(judge_joins)?,
    }
    judge_items(returning.as_deref().unwrap_or_default())
}

fn judge_merge(merge: &ast::Merge) -> Judged {
    let ast::Merge { merge_token: _, optimizer_hints: _, into, table: _, source: _, on: _, clauses, output } =
        merge;
    none(
        "MERGE",
        &[
            (!*into, "table without INTO before it"),
            (clauses.is_empty(), "ON without WHEN behind it"),
            (output.is_some(), "RETURNING"),
        ],
    )?;
    for clause in clauses {
        let ast::MergeClause { when_token: _, clause_kind, predicate: _, action } = clause;
        let (of_source, of_target) = (
            *clause_kind == ast::MergeClauseKind::NotMatchedBySource,
            *clause_kind == ast::MergeClauseKind::NotMatchedByTarget,
        );
        none("MERGE", &[(of_source, "BY SOURCE"), (of_target, "BY TARGET")])?;
        match action {
            ast::MergeAction::Insert(insert) => {
                let is_row = matches!(insert.kind, ast::MergeInsertKind::Row);
                none("MERGE", &[(insert.insert_predicate.is_some(), "WHERE"), (is_row, "ROW")])?;
            }
            ast::MergeAction::Update(update) => {
                let has_where = update.update_predicate.is_some() || update.delete_predicate.is_some();
                none("MERGE", &[(has_where, "WHERE")])?;
            }
            ast::MergeAction::Delete { delete_token: _ } => {}
        }
    }
    ControlFlow::Continue(())
}

fn judge_delete(delete: &ast::Delete) -> Judged {
    let ast::Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection: _,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    let (from, has_from) = match from {
        ast::FromTable::WithFromKeyword(from) => (from, true),
        ast::FromTable::WithoutKeyword(from) => (from, false),
    };
    none(
        "DELETE",
        &[
            (!tables.is_empty(), "table before FROM"),
            (!has_from, "table without FROM before it"),
            (from.len() > 1, ","),
            (from.iter().any(|table| !table.joins.is_empty()), "JOIN"),
            (output.is_some(), "OUTPUT"),
            (!order_by.is_empty(), "ORDER BY"),
            (limit.is_some(), "LIMIT"),
        ],
    )?;
    from.iter().chain(using.iter().flatten()).try_for_each(judge_joins)?;
    judge_items(returning.as_deref().unwrap_or_default())
}

// ---- Parts of queries ----

fn judge_set(body: &ast::SetExpr) -> Judged {
    match body {
        ast::SetExpr::Values(ast::Values { explicit_row, value_keyword, rows: _ }) => {
            none("VALUES", &[(*explicit_row, "ROW"), (*value_keyword, "VALUE")])
        }
        ast::SetExpr::SetOperation { left, op, set_quantifier, right } => {
            let by_name = matches!(
                set_quantifier,
                ast::SetQuantifier::ByName
                    | ast::SetQuantifier::AllByName
                    | ast::SetQuantifier::DistinctByName
            );
            none("a set operation", &[(by_name, "BY NAME"), (*op == ast::SetOperator::Minus, "MINUS")])?;
            judge_set(left)?;
            judge_set(right)
        }
        ast::SetExpr::Select(_)
        | ast::SetExpr::Query(_)
        | ast::SetExpr::Insert(_)
        | ast::SetExpr::Update(_)
        | ast::SetExpr::Delete(_)
        | ast::SetExpr::Merge(_)
        | ast::SetExpr::Table(_) => ControlFlow::Continue(()),
    }
}

fn judge_items(items: &[ast::SelectItem]) -> Judged {
    for item in items {
        match item {
            ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { expr: _, alias: _ } => {}
            ast::SelectItem::ExprWithAliases { expr: _, aliases: _ } => none("SELECT", &[(true, "AS (")])?,
            ast::SelectItem::QualifiedWildcard(_, options) => judge_wildcard(options, true)?,
            ast::SelectItem::Wildcard(options) => judge_wildcard(options, false)?,
        }
    }
    ControlFlow::Continue(())
}

fn judge_wildcard(options: &ast::WildcardAdditionalOptions, may_have_alias: bool) -> Judged {
    let ast::WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    none(
        "*",
        &[
            (opt_ilike.is_some(), "ILIKE"),
            (opt_exclude.is_some(), "EXCLUDE"),
            (opt_except.is_some(), "EXCEPT"),
            (opt_replace.is_some(), "REPLACE"),
            (opt_rename.is_some(), "RENAME"),
            (opt_alias.is_some() && !may_have_alias, "AS"),
        ],
    )
}

fn judge_keys(keys: &[ast::OrderByExpr]) -> Judged {
    keys.iter().try_for_each(|ast::OrderByExpr { expr: _, options: _, with_fill }| {
        none("ORDER BY", &[(with_fill.is_some(), "WITH FILL")])
    })
}

fn judge_alias(alias: &ast::TableAlias) -> Judged {
    let ast::TableAlias { explicit: _, name: _, columns: _, at } = alias;
    none("an alias", &[(at.is_some(), "AT")])
}

fn judge_joins(table: &ast::TableWithJoins) -> Judged {
    use ast::JoinOperator as Op;
    let ast::TableWithJoins { relation: _, joins } = table;
    for ast::Join { relation: _, global, join_operator } in joins {
        none("JOIN", &[(*global, "GLOBAL")])?;
        match join_operator {
            Op::Join(on)
            | Op::Inner(on)
            | Op::Left(on)
            | Op::LeftOuter(on)
            | Op::Right(on)
            | Op::RightOuter(on)
            | Op::FullOuter(on) => {
                let is_without = matches!(on, ast::JoinConstraint::None);
                none("FROM", &[(is_without, "unconditional JOIN")])?;
            }
            Op::CrossJoin(on) => {
                none("CROSS JOIN", &[(!matches!(on, ast::JoinConstraint::None), "ON")])?;
            }
            Op::Semi(_) | Op::LeftSemi(_) | Op::RightSemi(_) => none("JOIN", &[(true, "SEMI")])?,
            Op::Anti(_) | Op::LeftAnti(_) | Op::RightAnti(_) => none("JOIN", &[(true, "ANTI")])?,
            Op::CrossApply | Op::OuterApply => none("JOIN", &[(true, "APPLY")])?,
            Op::AsOf { match_condition: _, constraint: _ } => none("JOIN", &[(true, "ASOF")])?,
            Op::StraightJoin(_) => none("JOIN", &[(true, "STRAIGHT_JOIN")])?,
            Op::ArrayJoin | Op::LeftArrayJoin | Op::InnerArrayJoin => none("JOIN", &[(true, "ARRAY")])?,
        }
    }
    ControlFlow::Continue(())
}

fn judge_factor(factor: &TableFactor) -> Judged {
    let sampled = |sample: &Option<ast::TableSampleKind>| match sample {
        None => ControlFlow::Continue(()),
        Some(_) => ControlFlow::Break(Foreign { words: "TABLESAMPLE", of: "FROM", is_known: true }),
    };
    let alias = match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality: _,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            none(
                "FROM",
                &[
                    (!with_hints.is_empty(), "WITH"),
                    (version.is_some(), "FOR or AT"),
                    (!partitions.is_empty(), "PARTITION"),
                    (json_path.is_some(), "["),
                    (!index_hints.is_empty(), "INDEX"),
                ],
            )?;
            if let Some(ast::TableFunctionArgs { args: _, settings }) = args {
                none("FROM", &[(settings.is_some(), "SETTINGS")])?;
            }
            sampled(sample)?;
            alias
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            sampled(sample)?;
            alias
        }
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality: _, alias } => alias,
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias, with_ordinality: _ } => {
            none("unnest", &[(*with_offset || with_offset_alias.is_some(), "WITH OFFSET")])?;
            alias
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            judge_joins(table_with_joins)?;
            alias
        }
        TableFactor::TableFunction { expr: _, alias: _ } => return none("FROM", &[(true, "TABLE")]),
        TableFactor::OpenJsonTable { .. } => return none("FROM", &[(true, "OPENJSON")]),
        TableFactor::Pivot { .. } => return none("FROM", &[(true, "PIVOT")]),
        TableFactor::Unpivot { .. } => return none("FROM", &[(true, "UNPIVOT")]),
        TableFactor::MatchRecognize { .. } => return none("FROM", &[(true, "MATCH_RECOGNIZE")]),
        TableFactor::SemanticView { .. } => return none("FROM", &[(true, "SEMANTIC_VIEW")]),
        // They come in PostgreSQL 17, and in 10, and are refused by name.
        TableFactor::JsonTable { .. } | TableFactor::XmlTable { .. } => return ControlFlow::Continue(()),
    };
    alias.iter().try_for_each(judge_alias)
}

fn judge_call(function: &ast::Function) -> Judged {
    let ast::Function {
        name: _,
        uses_odbc_syntax,
        parameters,
        args,
        filter: _,
        null_treatment,
        over: _,
        within_group,
    } = function;
    none(
        "a call",
        &[
            (*uses_odbc_syntax, "{"),
            (!matches!(parameters, ast::FunctionArguments::None), "parameters"),
            (matches!(null_treatment, Some(ast::NullTreatment::IgnoreNulls)), "IGNORE"),
            (matches!(null_treatment, Some(ast::NullTreatment::RespectNulls)), "RESPECT"),
        ],
    )?;
    judge_keys(within_group)?;
    let ast::FunctionArguments::List(list) = args else { return ControlFlow::Continue(()) };
    let ast::FunctionArgumentList { duplicate_treatment: _, args: _, clauses } = list;
    for clause in clauses {
        use ast::FunctionArgumentClause as Clause;
        let words = match clause {
            Clause::OrderBy(keys) => {
                judge_keys(keys)?;
                continue;
            }
            Clause::IgnoreOrRespectNulls(_) => "NULLS",
            Clause::Limit(_) => "LIMIT",
            Clause::OnOverflow(_) => "OVERFLOW",
            Clause::Having(_) => "HAVING",
            Clause::Separator(_) => "SEPARATOR",
            Clause::JsonNullClause(_) => "ON NULL",
            Clause::JsonReturningClause(_) => "RETURNING",
        };
        none("a call", &[(true, words)])?;
    }
    ControlFlow::Continue(())
}
