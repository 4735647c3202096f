//! What a statement asks for.

use crate::copy::CopyStatement;
use crate::lock_mode::LockMode;
use crate::privilege::{Class, Privilege};
use serde::{Deserialize, Serialize};
use sqlparser::ast;

/// A statement, by who answers it.
#[derive(Clone, Debug)]
pub enum Command {
    /// Nothing.
    Empty,
    /// Rows are read or written, or something is defined: as sqlparser reads it.
    Sql(Box<ast::Statement>),
    /// `CREATE [OR REPLACE] FUNCTION | PROCEDURE`: read with the language of its body.
    CreateFunction,
    /// `DO`: a block without a name.
    Do,
    /// `CREATE SEQUENCE`
    CreateSequence {
        /// The sequence's name.
        name: ast::ObjectName,
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// `TEMPORARY`
        is_temporary: bool,
        /// What it says.
        options: SequenceOptions,
    },
    /// `ALTER TABLE ... ALTER COLUMN ... ADD GENERATED ... AS IDENTITY`
    AddIdentity {
        /// The table.
        table: ast::ObjectName,
        /// The table's column.
        column: String,
        /// `ALWAYS`, `BY DEFAULT`
        identity: Identity,
        /// Of its sequence.
        options: SequenceOptions,
    },
    /// `ALTER SEQUENCE`
    AlterSequence {
        /// The sequence's name.
        name: ast::ObjectName,
        /// `IF EXISTS`
        if_exists: bool,
        /// What becomes of it.
        change: SequenceChange,
    },
    /// `ALTER SCHEMA name RENAME TO name`
    RenameSchema {
        /// The schema's name.
        from: String,
        /// The schema's new name.
        to: String,
    },
    /// `ALTER INDEX | VIEW | MATERIALIZED VIEW name RENAME TO name`
    Rename {
        /// `INDEX`, `VIEW`, `MATERIALIZED VIEW`
        kind: &'static str,
        /// `IF EXISTS`
        if_exists: bool,
        /// The relation's name.
        from: ast::ObjectName,
        /// The relation's new name.
        to: String,
    },
    /// `CREATE MATERIALIZED VIEW`
    CreateMaterializedView(Box<MaterializedView>),
    /// `REFRESH MATERIALIZED VIEW`
    Refresh {
        /// The view's name.
        name: ast::ObjectName,
        /// `CONCURRENTLY`
        concurrently: bool,
        /// Whether it has rows afterwards.
        with_data: bool,
    },
    /// `COPY`
    Copy(Box<CopyStatement>),
    /// `BEGIN`, `START TRANSACTION`
    Begin(Characteristics),
    /// `COMMIT`, `END`
    Commit {
        /// `AND CHAIN`
        chain: bool,
    },
    /// `ROLLBACK`, `ABORT`
    Rollback {
        /// `AND CHAIN`
        chain: bool,
    },
    /// `SAVEPOINT`
    Savepoint(String),
    /// `ROLLBACK TO`
    RollbackTo(String),
    /// `RELEASE`
    Release(String),
    /// `SET TRANSACTION`
    SetTransaction(Characteristics),
    /// `SET CONSTRAINTS`
    SetConstraints {
        /// Which; `None` for `ALL`.
        names: Option<Vec<ast::ObjectName>>,
        /// `DEFERRED`
        is_deferred: bool,
    },
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`
    SetCharacteristics(Characteristics),
    /// `SET name = value`; `None` for `DEFAULT`.
    Set {
        /// `LOCAL`
        is_local: bool,
        /// The setting.
        name: String,
        /// The setting's value.
        value: Option<String>,
    },
    /// `SHOW`: one, or all of them.
    Show(Option<String>),
    /// `RESET`: one, or all of them.
    Reset(Option<String>),
    /// `DISCARD`
    Discard(Discard),
    /// `LISTEN`: the channel.
    Listen(String),
    /// `UNLISTEN`: the channel, or all of them.
    Unlisten(Option<String>),
    /// `NOTIFY`
    Notify {
        /// Where something is told.
        channel: String,
        /// What.
        payload: String,
    },
    /// `PREPARE`
    Prepare {
        /// The statement's name.
        name: String,
        /// Types of its parameters, as far as they are given.
        types: Vec<ast::DataType>,
        /// The statement.
        text: String,
    },
    /// `EXECUTE`
    Execute {
        /// Which.
        name: String,
        /// What the statement's parameters become.
        arguments: Vec<ast::Expr>,
    },
    /// `DEALLOCATE`: one, or all of them.
    Deallocate(Option<String>),
    /// `DECLARE ... CURSOR FOR`
    Declare {
        /// The cursor's name.
        name: String,
        /// `WITH HOLD`
        is_held: bool,
        /// `SCROLL`, `NO SCROLL`
        scroll: Scroll,
        /// The query.
        text: String,
    },
    /// `FETCH`, `MOVE`
    Fetch {
        /// Which cursor.
        name: String,
        /// How far.
        step: Step,
        /// `MOVE`: no rows are given.
        is_move: bool,
    },
    /// `CLOSE`: one, or all of them.
    Close(Option<String>),
    /// `LOCK TABLE`
    Lock {
        /// Which.
        tables: Vec<ast::ObjectName>,
        /// How.
        mode: LockMode,
        /// `NOWAIT`
        no_wait: bool,
    },
    /// `VACUUM`, `ANALYZE`, `REINDEX`, `CLUSTER`: there is nothing to do. The tag, and relations that have to be there.
    Maintenance(&'static str, Vec<ast::ObjectName>),
    /// `CHECKPOINT`
    Checkpoint,
    /// `COMMENT ON`
    Comment {
        /// `TABLE`, `COLUMN`, ...
        kind: String,
        /// On what.
        name: ast::ObjectName,
        /// `None` takes it away.
        comment: Option<String>,
    },
    /// `GRANT`, `REVOKE` of privileges, `ALTER DEFAULT PRIVILEGES`
    Grant(Box<Granting>),
    /// `CREATE ROLE`, `GRANT role TO member`, ...
    Role(Box<RoleCommand>),
    /// `ALTER ... OWNER TO`
    Owner {
        /// The command's tag.
        tag: &'static str,
        /// `IF EXISTS`
        if_exists: bool,
        /// What gets another owner.
        of: Box<Securable>,
        /// Who.
        to: RoleName,
    },
    /// `CREATE DOMAIN`
    CreateDomain {
        /// The domain's name.
        name: ast::ObjectName,
        /// The type that its values have.
        data_type: Box<ast::DataType>,
        /// What else is said of it.
        parts: Vec<DomainPart>,
    },
    /// `CREATE DATABASE`
    CreateDatabase {
        /// The database's name.
        name: String,
        /// `TEMPLATE`
        template: Option<String>,
        /// `OWNER`
        owner: Option<String>,
    },
    /// `DROP DATABASE`, `ALTER DATABASE`
    ChangeDatabase {
        /// The database's name.
        name: String,
        /// What becomes of it.
        change: DatabaseChange,
    },
    /// `ALTER DOMAIN`
    AlterDomain {
        /// The domain's name.
        name: ast::ObjectName,
        /// What changes.
        change: Box<DomainChange>,
    },
    /// `DROP DOMAIN`
    DropDomain {
        /// The domains' names.
        names: Vec<ast::ObjectName>,
        /// `IF EXISTS`
        if_exists: bool,
        /// `CASCADE`
        cascade: bool,
    },
    /// `CREATE EXTENSION`: its name, and `IF NOT EXISTS`.
    CreateExtension(String, bool),
    /// `DROP EXTENSION`
    DropExtension {
        /// The extensions' names.
        names: Vec<String>,
        /// `IF EXISTS`
        if_exists: bool,
    },
}

/// What is said of a domain.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainPart {
    /// `DEFAULT`
    Default(ast::Expr),
    /// `NOT NULL`
    NotNull,
    /// `NULL`
    Null,
    /// `CHECK`, with a name or without.
    Check(Option<String>, ast::Expr),
}

/// What `ALTER DOMAIN` changes.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainChange {
    /// `ADD` a constraint.
    Add(DomainPart),
    /// `DROP CONSTRAINT`
    Drop {
        /// The constraint's name.
        constraint: String,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `SET` or `DROP NOT NULL`
    NotNull(bool),
    /// `SET` or `DROP DEFAULT`
    Default(Option<ast::Expr>),
    /// `RENAME TO`
    Rename(String),
}

/// What becomes of a database.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseChange {
    /// `DROP DATABASE`
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// `WITH (FORCE)`
        is_forced: bool,
    },
    /// `RENAME TO`
    Rename(String),
}

/// Something that has an owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Securable {
    /// A table, view, sequence or index.
    Relation(ast::ObjectName),
    /// A sequence.
    Sequence(ast::ObjectName),
    /// A database.
    Database(String),
    /// A schema.
    Schema(String),
    /// A function or procedure; the types of its arguments, if they are given.
    Function(ast::ObjectName, Option<Vec<ast::DataType>>),
    /// A type or domain.
    Type(ast::ObjectName),
}

/// On what privileges are granted.
#[derive(Clone, Debug, PartialEq)]
pub enum Objects {
    /// On these.
    Named(Vec<Securable>),
    /// On all of some schemas.
    AllIn(Vec<String>),
    /// On those that will be made: by these roles, or by the current one; in these schemas, or in all.
    Future(Vec<RoleName>, Vec<String>),
}

/// `GRANT` and `REVOKE` of privileges.
#[derive(Clone, Debug, PartialEq)]
pub struct Granting {
    /// Not `REVOKE`.
    pub gives: bool,
    /// What; `None` for `ALL PRIVILEGES`.
    pub privileges: Option<Vec<Privilege>>,
    /// Of what kind the objects are.
    pub class: Class,
    /// On what.
    pub objects: Objects,
    /// To or from whom.
    pub grantees: Vec<RoleName>,
    /// `WITH GRANT OPTION`, `GRANT OPTION FOR`
    pub option: bool,
    /// `CASCADE`
    pub cascades: bool,
}

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// By its name.
    Named(String),
    /// `CURRENT_USER`, `CURRENT_ROLE`
    Current,
    /// `SESSION_USER`
    Session,
    /// `PUBLIC`: everybody.
    Public,
}

/// What is said of a role; `None` where nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoleOptions {
    /// `SUPERUSER`
    pub is_superuser: Option<bool>,
    /// `CREATEDB`
    pub creates_databases: Option<bool>,
    /// `CREATEROLE`
    pub creates_roles: Option<bool>,
    /// `INHERIT`
    pub inherits: Option<bool>,
    /// `LOGIN`
    pub can_login: Option<bool>,
    /// `REPLICATION`
    pub replicates: Option<bool>,
    /// `BYPASSRLS`
    pub bypasses_row_security: Option<bool>,
    /// `CONNECTION LIMIT`
    pub connection_limit: Option<i64>,
    /// `PASSWORD`; `Some(None)` is `PASSWORD NULL`.
    pub password: Option<Option<String>>,
    /// `VALID UNTIL`
    pub valid_until: Option<String>,
    /// `IN ROLE`: it is a member of these.
    pub member_of: Vec<String>,
    /// `ROLE`: these are members of it.
    pub members: Vec<String>,
    /// `ADMIN`: these are, and may make others members.
    pub admins: Vec<String>,
}

/// A statement about roles.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleCommand {
    /// `CREATE ROLE | USER | GROUP`
    Create {
        /// The role's name.
        name: String,
        /// What is said of it; `USER` says `LOGIN`.
        options: RoleOptions,
    },
    /// `ALTER ROLE ... [WITH] option ...`
    Alter {
        /// Whose.
        role: RoleName,
        /// What changes.
        options: RoleOptions,
    },
    /// `ALTER ROLE ... RENAME TO`
    Rename {
        /// The role's name.
        from: String,
        /// The role's new name.
        to: String,
    },
    /// `ALTER ROLE ... SET | RESET`: how sessions of the role begin.
    Setting {
        /// Whose.
        role: RoleName,
        /// The setting; `None` for `RESET ALL`.
        name: Option<String>,
        /// The setting's value; `None` for none of the role's own.
        value: Option<String>,
    },
    /// `DROP ROLE | USER | GROUP`
    Drop {
        /// The roles' names.
        names: Vec<RoleName>,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `GRANT role TO member`, `REVOKE role FROM member`
    Membership {
        /// Not `REVOKE`.
        gives: bool,
        /// To what they belong.
        roles: Vec<String>,
        /// Who does.
        members: Vec<RoleName>,
        /// `WITH ADMIN OPTION`, `ADMIN OPTION FOR`
        admin: bool,
    },
    /// `REASSIGN OWNED BY ... TO`
    Reassign {
        /// Whose objects.
        from: Vec<RoleName>,
        /// Whose they become.
        to: RoleName,
    },
    /// `DROP OWNED BY`
    DropOwned {
        /// Whose objects.
        by: Vec<RoleName>,
        /// `CASCADE`
        cascades: bool,
    },
}

/// What `BEGIN` and `SET TRANSACTION` say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Characteristics {
    /// `READ ONLY`, `READ WRITE`
    pub is_read_only: Option<bool>,
    /// `ISOLATION LEVEL`, as `SHOW transaction_isolation` gives it back.
    pub isolation: Option<&'static str>,
    /// `DEFERRABLE`
    pub is_deferrable: Option<bool>,
}

/// What `DISCARD` forgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// Everything.
    All,
    /// Cached plans.
    Plans,
    /// Cached numbers of sequences.
    Sequences,
    /// Temporary tables.
    Temporary,
}

/// Where a cursor may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scroll {
    /// Nothing is said: back as far as that costs nothing.
    #[default]
    Usual,
    /// `SCROLL`: everywhere.
    Both,
    /// `NO SCROLL`: on.
    Forward,
}

/// How far `FETCH` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many rows on, or back.
    By(i64),
    /// All that are left.
    AllForward,
    /// All that came before, last first.
    AllBackward,
    /// The row of a number, from 1; from the end if negative.
    Absolute(i64),
    /// The row so far from here.
    Relative(i64),
}

/// Who numbers an identity column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// `GENERATED ALWAYS`: its sequence alone.
    Always,
    /// `GENERATED BY DEFAULT`: its sequence, where no value is given.
    ByDefault,
}

/// What `CREATE SEQUENCE` and `ALTER SEQUENCE` say; `None` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceOptions {
    /// `AS type`
    pub sql_type: Option<ast::DataType>,
    /// `START WITH`
    pub start: Option<i64>,
    /// `RESTART`, perhaps `WITH` a number.
    pub restart: Option<Option<i64>>,
    /// `INCREMENT BY`
    pub increment: Option<i64>,
    /// `MINVALUE`; `Some(None)` is `NO MINVALUE`.
    pub minimum: Option<Option<i64>>,
    /// `MAXVALUE`; `Some(None)` is `NO MAXVALUE`.
    pub maximum: Option<Option<i64>>,
    /// `CYCLE`, `NO CYCLE`
    pub cycle: Option<bool>,
    /// `OWNED BY`; `Some(None)` is `OWNED BY NONE`.
    pub owner: Option<Option<ast::ObjectName>>,
    /// `SEQUENCE NAME`, of an identity column.
    pub name: Option<ast::ObjectName>,
}

/// What becomes of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceChange {
    /// It has other options.
    Options(SequenceOptions),
    /// `RENAME TO`
    Rename(String),
}

/// `CREATE MATERIALIZED VIEW`
#[derive(Clone, Debug)]
pub struct MaterializedView {
    /// The view's name.
    pub name: ast::ObjectName,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Names of its first columns.
    pub columns: Vec<String>,
    /// What its rows are.
    pub query: Box<ast::Query>,
    /// Whether it has rows from the beginning.
    pub with_data: bool,
}
