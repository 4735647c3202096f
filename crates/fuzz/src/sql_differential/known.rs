//! Differences from PostgreSQL that are on purpose, as far as the comparison meets them: `docs/sql.md` prints this
//! list.

/// How the comparison deals with a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Statements do not have it.
    NotGenerated,
    /// Answers that differ only in this are the same.
    Tolerated,
}

/// A difference.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// What differs.
    pub what: &'static str,
    /// Where it comes from.
    pub why: &'static str,
    /// What the comparison does about it.
    pub how: How,
}

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        what: "zeros at the end of `numeric`, and its digits beyond the eighth",
        why: "`numeric` without digits keeps ten behind the point, and loses zeros",
        how: How::Tolerated,
    },
    Known {
        what: "`numeric` as text or in JSON, and its division other than rounded",
        why: "the same digits would be seen",
        how: How::NotGenerated,
    },
    Known {
        what: "the last digits of `real` and `double precision`",
        why: "sums are taken in another order",
        how: How::Tolerated,
    },
    Known {
        what: "`stddev`, `variance` and their like of whole numbers and `numeric`",
        why: "they are `double precision`",
        how: How::NotGenerated,
    },
    Known {
        what: "which constraint a statement has violated, if it has violated several (SQLSTATEs of class 23), or has \
               also changed a row twice (21000)",
        why: "unique constraints and second changes of a row are checked when a statement ends",
        how: How::Tolerated,
    },
    Known {
        what: "23503 for a `WITH` of whose parts one writes rows that refer to those which another deletes or changes",
        why: "what the reference does on `DELETE` and `UPDATE` is done first; PostgreSQL does it in the order in which \
              the parts run, which its manual leaves open (7.8.4)",
        how: How::Tolerated,
    },
    Known {
        what: "whether a constraint that a row violates is told, or that a later row has no value (class 22)",
        why: "constraints are checked once all rows are computed",
        how: How::Tolerated,
    },
    Known {
        what: "`UPDATE` of columns with a unique constraint",
        why: "PostgreSQL refuses what is not unique in between",
        how: How::NotGenerated,
    },
    Known {
        what: "constants as keys of `ROLLUP`, `CUBE` and `GROUPING SETS`",
        why: "PostgreSQL 15 shows a value that it can compute beforehand instead of null",
        how: How::NotGenerated,
    },
    Known {
        what: "21000 for a scalar subquery of several rows whose value nobody needs",
        why: "it is not asked",
        how: How::Tolerated,
    },
    Known {
        what: "errors of values (class 22) that a statement finds and changes no row for, or that `EXPLAIN` gives too",
        why: "constants are computed where they are needed, PostgreSQL's beforehand",
        how: How::Tolerated,
    },
    Known {
        what: "42803 for a key of `GROUP BY` that is computed, as what `IN (SELECT ...)` is asked about",
        why: "the subquery is taken to ask about the columns of the key",
        how: How::Tolerated,
    },
    Known {
        what: "42803 for `grouping` within a subquery, of a column that `USING` or `NATURAL` has merged around it",
        why: "PostgreSQL 15 does not find it among the keys there",
        how: How::Tolerated,
    },
    Known {
        what: "`DISTINCT` of sets of groups",
        why: "PostgreSQL 15 leaves out keys that a condition makes equal, though they may be null",
        how: How::NotGenerated,
    },
    Known {
        what: "`ANY` and `ALL` of an empty array, in a subquery beside which an outer join has no row",
        why: "PostgreSQL 15 shows what they are of null instead of null",
        how: How::NotGenerated,
    },
    Known {
        what: "the order of sets of groups, and which of them come first within another query",
        why: "PostgreSQL 15 takes a key that a condition makes equal to a constant for sorted, its nulls included",
        how: How::Tolerated,
    },
    Known {
        what: "an error within a subquery that no row asks for, of a statement that has none",
        why: "subqueries that stand by themselves are computed beforehand",
        how: How::Tolerated,
    },
    Known {
        what: "which error is told of a statement that has several",
        why: "its parts are looked at in another order; that it has both is shown by leaving out parts of it",
        how: How::Tolerated,
    },
    Known {
        what: "windows over sets of groups behind a condition",
        why: "they are sorted as said above",
        how: How::NotGenerated,
    },
    Known {
        what: "chains of `AND` or `OR` as keys of `GROUP BY`",
        why: "a chain is one flat list: a longer one in `HAVING` does not have the key as its part",
        how: How::NotGenerated,
    },
    Known { what: "parameters of `char(n)`", why: "their type is `text`", how: How::NotGenerated },
    Known {
        what: "`char(n)` of several lengths or beside other text in `CASE`, `COALESCE`, `UNION`, `USING`",
        why: "the type is `text`",
        how: How::NotGenerated,
    },
    Known {
        what: "54000 for a transaction whose statements form a program of more than 1 MiB",
        why: "a transaction is run as one program when it commits",
        how: How::Tolerated,
    },
    Known {
        what: "messages, details, hints and positions of errors",
        why: "only SQLSTATEs are compared",
        how: How::Tolerated,
    },
];

/// The list as Markdown.
pub fn markdown() -> String {
    let line = |known: &Known| {
        let Known { what, why, how } = known;
        let how = match how {
            How::NotGenerated => "not generated",
            How::Tolerated => "tolerated",
        };
        format!("| {what} | {why} | {how} |\n")
    };
    let lines: String = KNOWN.iter().map(line).collect();
    format!("| what | why | in the comparison |\n|---|---|---|\n{lines}")
}
