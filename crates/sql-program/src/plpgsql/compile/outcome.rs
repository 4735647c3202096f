//! How control leaves a list of statements, as far as the text says.

use fabius_sql_syntax::plpgsql::tree::{Level, Statement, StatementKind};

/// How control leaves statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on behind them, or may do so.
    Continues,
    /// It goes elsewhere: `RETURN`, `EXIT`, `CONTINUE`.
    Leaves,
    /// The call is aborted.
    Aborts,
}

/// How control leaves a list of statements.
pub fn outcome<'a>(statements: impl IntoIterator<Item = &'a Statement>) -> Outcome {
    let outcomes = statements.into_iter().map(|statement| of(&statement.kind));
    outcomes.into_iter().find(|outcome| *outcome != Outcome::Continues).unwrap_or(Outcome::Continues)
}

fn of(statement: &StatementKind) -> Outcome {
    match statement {
        StatementKind::Return(_) | StatementKind::Leave { when: None, .. } => Outcome::Leaves,
        StatementKind::Raise(raise) if raise.level == Level::Exception => Outcome::Aborts,
        StatementKind::Block(block) if block.label.is_none() => outcome(&block.statements),
        StatementKind::If { arms, otherwise: Some(otherwise) } => {
            together(arms.iter().map(|(_, body)| body).chain([otherwise]).map(outcome))
        }
        StatementKind::Case { arms, otherwise, .. } => {
            together(arms.iter().map(|(_, body)| body).chain(otherwise).map(outcome))
        }
        _ => Outcome::Continues,
    }
}

fn together(ways: impl Iterator<Item = Outcome>) -> Outcome {
    let mut all = Outcome::Aborts;
    for way in ways {
        match way {
            Outcome::Continues => return Outcome::Continues,
            Outcome::Leaves => all = Outcome::Leaves,
            Outcome::Aborts => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_program::syntax::diagnostic::Source;
    use fabius_sql_syntax::plpgsql::parser::parse;

    fn outcome_of(body: &str) -> Outcome {
        let block = parse(&Source::new(format!("BEGIN {body} END"), "")).expect("a body");
        outcome(&block.statements)
    }

    /// Goal: only what leaves on every way counts as leaving.
    #[test]
    fn every_way_has_to_leave() {
        assert_eq!(outcome_of("NULL; RETURN 1; x := 2;"), Outcome::Leaves);
        assert_eq!(outcome_of("IF a THEN RETURN 1; END IF;"), Outcome::Continues);
        assert_eq!(outcome_of("IF a THEN RETURN 1; ELSE RAISE 'x'; END IF;"), Outcome::Leaves);
        assert_eq!(outcome_of("CASE a WHEN 1 THEN RAISE 'x'; END CASE;"), Outcome::Aborts);
        assert_eq!(outcome_of("LOOP RETURN 1; END LOOP;"), Outcome::Continues);
        assert_eq!(outcome_of("RAISE NOTICE 'x';"), Outcome::Continues);
    }
}
