//! Clauses of definitions that PostgreSQL does not have: of `CREATE`, `ALTER`, `TRUNCATE`.

use super::{Judged, judge_keys, none};
use sqlparser::ast;
use std::ops::ControlFlow;

pub(super) fn judge_table(create: &ast::CreateTable) -> Judged {
    let ast::CreateTable {
        or_replace,
        temporary: _,
        external,
        dynamic,
        global: _,
        if_not_exists: _,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_options,
        file_format,
        location,
        query: _,
        without_rowid,
        like: _,
        clone,
        version,
        comment,
        on_commit: _,
        on_cluster,
        primary_key,
        order_by,
        partition_by: _,
        cluster_by,
        clustered_by,
        inherits: _,
        partition_of: _,
        for_values: _,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = create;
    let is_hive = hive_formats.as_ref().is_some_and(|format| {
        let ast::HiveFormat { row_format, serde_properties, storage, location } = format;
        row_format.is_some() || serde_properties.is_some() || storage.is_some() || location.is_some()
    });
    none(
        "CREATE TABLE",
        &[
            (*or_replace, "OR REPLACE"),
            (*external, "EXTERNAL"),
            (*dynamic, "DYNAMIC"),
            (*transient, "TRANSIENT"),
            (*volatile, "VOLATILE"),
            (*iceberg, "ICEBERG"),
            (*snapshot, "SNAPSHOT"),
            (!matches!(hive_distribution, ast::HiveDistributionStyle::NONE), "PARTITIONED or SKEWED"),
            (is_hive, "ROW FORMAT, STORED AS or LOCATION"),
            (file_format.is_some(), "STORED AS"),
            (location.is_some(), "LOCATION"),
            (*without_rowid, "WITHOUT ROWID"),
            (clone.is_some(), "CLONE"),
            (version.is_some(), "AT"),
            (comment.is_some(), "COMMENT"),
            (on_cluster.is_some(), "ON CLUSTER"),
            (primary_key.is_some(), "PRIMARY KEY behind the columns"),
            (order_by.is_some(), "ORDER BY"),
            (cluster_by.is_some(), "CLUSTER BY"),
            (clustered_by.is_some(), "CLUSTERED BY"),
            (*strict, "STRICT"),
            (*copy_grants, "COPY GRANTS"),
            (enable_schema_evolution.is_some(), "ENABLE_SCHEMA_EVOLUTION"),
            (change_tracking.is_some(), "CHANGE_TRACKING"),
            (data_retention_time_in_days.is_some(), "DATA_RETENTION_TIME_IN_DAYS"),
            (max_data_extension_time_in_days.is_some(), "MAX_DATA_EXTENSION_TIME_IN_DAYS"),
            (default_ddl_collation.is_some(), "DEFAULT_DDL_COLLATION"),
            (with_aggregation_policy.is_some(), "AGGREGATION POLICY"),
            (with_row_access_policy.is_some(), "ROW ACCESS POLICY"),
            (with_storage_lifecycle_policy.is_some(), "STORAGE LIFECYCLE POLICY"),
            (with_tags.is_some(), "TAG"),
            (external_volume.is_some(), "EXTERNAL_VOLUME"),
            (base_location.is_some(), "BASE_LOCATION"),
            (catalog.is_some(), "CATALOG"),
            (catalog_sync.is_some(), "CATALOG_SYNC"),
            (storage_serialization_policy.is_some(), "STORAGE_SERIALIZATION_POLICY"),
            (target_lag.is_some(), "TARGET_LAG"),
            (warehouse.is_some(), "WAREHOUSE"),
            (refresh_mode.is_some(), "REFRESH_MODE"),
            (initialize.is_some(), "INITIALIZE"),
            (*require_user, "REQUIRE USER"),
            (diststyle.is_some(), "DISTSTYLE"),
            (distkey.is_some(), "DISTKEY"),
            (sortkey.is_some(), "SORTKEY"),
            (backup.is_some(), "BACKUP"),
        ],
    )?;
    judge_options("CREATE TABLE", table_options)?;
    columns.iter().try_for_each(judge_column)?;
    constraints.iter().try_for_each(judge_constraint)
}

/// `WITH (...)` says how rows are kept; the other forms are not PostgreSQL's.
fn judge_options(of: &'static str, options: &ast::CreateTableOptions) -> Judged {
    let options = match options {
        ast::CreateTableOptions::None | ast::CreateTableOptions::With(_) => return ControlFlow::Continue(()),
        ast::CreateTableOptions::Options(_) => return none(of, &[(true, "OPTIONS")]),
        ast::CreateTableOptions::TableProperties(_) => return none(of, &[(true, "TBLPROPERTIES")]),
        ast::CreateTableOptions::Plain(options) => options,
    };
    let words = match options.first() {
        None => return ControlFlow::Continue(()),
        Some(ast::SqlOption::Comment(_)) => "COMMENT",
        Some(ast::SqlOption::NamedParenthesizedList(_)) => "ENGINE",
        Some(ast::SqlOption::KeyValue { key, value: _ }) => {
            let known =
                ["ENGINE", "AUTO_INCREMENT", "CHARSET", "COLLATE", "COMMENT", "ROW_FORMAT", "DEFAULT"];
            known.into_iter().find(|known| key.value.eq_ignore_ascii_case(known)).unwrap_or("options")
        }
        Some(_) => "options",
    };
    none(of, &[(true, words)])
}

fn judge_column(column: &ast::ColumnDef) -> Judged {
    let ast::ColumnDef { name: _, data_type: _, options } = column;
    options.iter().try_for_each(|ast::ColumnOptionDef { name: _, option }| judge_column_option(option))
}

fn judge_column_option(option: &ast::ColumnOption) -> Judged {
    use ast::ColumnOption as Option_;
    let words = match option {
        Option_::Null
        | Option_::NotNull
        | Option_::Default(_)
        | Option_::Collation(_)
        | Option_::Identity(_) => return ControlFlow::Continue(()),
        Option_::PrimaryKey(key) => return judge_primary_key(key),
        Option_::Unique(key) => return judge_unique(key),
        Option_::ForeignKey(key) => return judge_foreign_key(key),
        Option_::Check(check) => return judge_check(check),
        Option_::Generated {
            generated_as: _,
            sequence_options: _,
            generation_expr: _,
            generation_expr_mode,
            generated_keyword,
        } => {
            let is_virtual = matches!(generation_expr_mode, Some(ast::GeneratedExpressionMode::Virtual));
            return none("a column", &[(is_virtual, "VIRTUAL"), (!*generated_keyword, "AS")]);
        }
        Option_::Materialized(_) => "MATERIALIZED",
        Option_::Ephemeral(_) => "EPHEMERAL",
        Option_::Alias(_) => "ALIAS",
        Option_::DialectSpecific(_) => "AUTO_INCREMENT",
        Option_::CharacterSet(_) => "CHARACTER SET",
        Option_::Comment(_) => "COMMENT",
        Option_::OnUpdate(_) => "ON UPDATE",
        Option_::Options(_) => "OPTIONS",
        Option_::OnConflict(_) => "ON CONFLICT",
        Option_::Policy(_) => "POLICY",
        Option_::Tags(_) => "TAG",
        Option_::Srid(_) => "SRID",
        Option_::Invisible => "INVISIBLE",
    };
    none("a column", &[(true, words)])
}

fn judge_characteristics(characteristics: Option<&ast::ConstraintCharacteristics>) -> Judged {
    let Some(characteristics) = characteristics else { return ControlFlow::Continue(()) };
    let ast::ConstraintCharacteristics { deferrable: _, initially: _, enforced } = characteristics;
    none("a constraint", &[(enforced.is_some(), "ENFORCED")])
}

fn judge_check(check: &ast::CheckConstraint) -> Judged {
    let ast::CheckConstraint { name: _, expr: _, enforced } = check;
    none("CHECK", &[(enforced.is_some(), "ENFORCED")])
}

fn judge_primary_key(key: &ast::PrimaryKeyConstraint) -> Judged {
    let ast::PrimaryKeyConstraint {
        name: _,
        index_name,
        index_type,
        columns: _,
        index_options,
        characteristics,
    } = key;
    none(
        "PRIMARY KEY",
        &[
            (index_name.is_some(), "a name of the index"),
            (index_type.is_some(), "USING"),
            (!index_options.is_empty(), "options of the index"),
        ],
    )?;
    judge_characteristics(characteristics.as_ref())
}

fn judge_unique(key: &ast::UniqueConstraint) -> Judged {
    let ast::UniqueConstraint {
        name: _,
        index_name,
        index_type_display,
        index_type,
        columns: _,
        index_options,
        characteristics,
        nulls_distinct: _,
    } = key;
    none(
        "UNIQUE",
        &[
            (matches!(index_type_display, ast::KeyOrIndexDisplay::Key), "KEY"),
            (matches!(index_type_display, ast::KeyOrIndexDisplay::Index), "INDEX"),
            (index_name.is_some(), "a name of the index"),
            (index_type.is_some(), "USING"),
            (!index_options.is_empty(), "options of the index"),
        ],
    )?;
    judge_characteristics(characteristics.as_ref())
}

fn judge_foreign_key(key: &ast::ForeignKeyConstraint) -> Judged {
    let ast::ForeignKeyConstraint {
        name: _,
        index_name,
        columns: _,
        foreign_table: _,
        referred_columns: _,
        on_delete: _,
        on_update: _,
        match_kind: _,
        characteristics,
    } = key;
    none("FOREIGN KEY", &[(index_name.is_some(), "a name of the index")])?;
    judge_characteristics(characteristics.as_ref())
}

fn judge_constraint(constraint: &ast::TableConstraint) -> Judged {
    match constraint {
        ast::TableConstraint::Unique(key) => judge_unique(key),
        ast::TableConstraint::PrimaryKey(key) => judge_primary_key(key),
        ast::TableConstraint::ForeignKey(key) => judge_foreign_key(key),
        ast::TableConstraint::Check(check) => judge_check(check),
        ast::TableConstraint::Index(index) => {
            none("CREATE TABLE", &[(true, if index.display_as_key { "KEY" } else { "INDEX" })])
        }
        ast::TableConstraint::FulltextOrSpatial(index) => {
            none("CREATE TABLE", &[(true, if index.fulltext { "FULLTEXT" } else { "SPATIAL" })])
        }
        ast::TableConstraint::PrimaryKeyUsingIndex(by) | ast::TableConstraint::UniqueUsingIndex(by) => {
            let ast::ConstraintUsingIndex { name: _, index_name: _, characteristics } = by;
            judge_characteristics(characteristics.as_ref())
        }
    }
}

pub(super) fn judge_index(create: &ast::CreateIndex) -> Judged {
    let ast::CreateIndex {
        name: _,
        table_name: _,
        using: _,
        columns,
        unique: _,
        concurrently: _,
        if_not_exists: _,
        include: _,
        nulls_distinct: _,
        with: _,
        predicate: _,
        index_options,
        alter_options,
    } = create;
    none(
        "CREATE INDEX",
        &[(!index_options.is_empty(), "options"), (!alter_options.is_empty(), "ALGORITHM or LOCK")],
    )?;
    columns.iter().try_for_each(|ast::IndexColumn { column, operator_class: _ }| {
        judge_keys(std::slice::from_ref(column))
    })
}

pub(super) fn judge_view(create: &ast::CreateView) -> Judged {
    let ast::CreateView {
        or_alter,
        or_replace: _,
        materialized: _,
        secure,
        name: _,
        name_before_not_exists,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists: _,
        temporary: _,
        copy_grants,
        to,
        params,
    } = create;
    none(
        "CREATE VIEW",
        &[
            (*or_alter, "OR ALTER"),
            (*secure, "SECURE"),
            (*name_before_not_exists, "IF NOT EXISTS behind the name"),
            (!cluster_by.is_empty(), "CLUSTER BY"),
            (comment.is_some(), "COMMENT"),
            (*with_no_schema_binding, "WITH NO SCHEMA BINDING"),
            (*copy_grants, "COPY GRANTS"),
            (to.is_some(), "TO"),
            (params.is_some(), "ALGORITHM, DEFINER or SQL SECURITY"),
        ],
    )?;
    for ast::ViewColumnDef { name: _, data_type, options } in columns {
        none("a view's column", &[(data_type.is_some(), "a type"), (options.is_some(), "options")])?;
    }
    judge_options("CREATE VIEW", options)
}

pub(super) fn judge_alteration(alter: &ast::AlterTable) -> Judged {
    use ast::AlterTableOperation as Op;
    let ast::AlterTable {
        name: _,
        if_exists: _,
        only: _,
        operations,
        location,
        on_cluster,
        table_type,
        end_token: _,
    } = alter;
    none(
        "ALTER TABLE",
        &[
            (location.is_some(), "LOCATION"),
            (on_cluster.is_some(), "ON CLUSTER"),
            (table_type.is_some(), "a kind of table"),
        ],
    )?;
    for operation in operations {
        match operation {
            Op::AddConstraint { constraint, not_valid: _ } => judge_constraint(constraint)?,
            Op::AddColumn { column_keyword: _, if_not_exists: _, column_def, column_position } => {
                none("ADD COLUMN", &[(column_position.is_some(), "FIRST or AFTER")])?;
                judge_column(column_def)?;
            }
            Op::DropColumn { has_column_keyword: _, column_names, if_exists: _, drop_behavior: _ } => {
                none("DROP COLUMN", &[(column_names.len() > 1, ",")])?;
            }
            Op::ModifyColumn { .. } => none("ALTER TABLE", &[(true, "MODIFY")])?,
            Op::ChangeColumn { .. } => none("ALTER TABLE", &[(true, "CHANGE")])?,
            Op::DropPrimaryKey { .. } => none("ALTER TABLE", &[(true, "PRIMARY")])?,
            Op::DropForeignKey { .. } => none("ALTER TABLE", &[(true, "FOREIGN")])?,
            Op::Algorithm { .. } => none("ALTER TABLE", &[(true, "ALGORITHM")])?,
            Op::Lock { .. } => none("ALTER TABLE", &[(true, "LOCK")])?,
            Op::AutoIncrement { .. } => none("ALTER TABLE", &[(true, "AUTO_INCREMENT")])?,
            // Refused by name where they are not read.
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

pub(super) fn judge_truncation(truncate: &ast::Truncate) -> Judged {
    let ast::Truncate {
        table_names: _,
        partitions,
        table: _,
        if_exists,
        identity: _,
        cascade: _,
        on_cluster,
    } = truncate;
    none(
        "TRUNCATE",
        &[
            (partitions.is_some(), "PARTITION"),
            (*if_exists, "IF EXISTS"),
            (on_cluster.is_some(), "ON CLUSTER"),
        ],
    )
}
