//! The check: consistency conditions 1 to 4 (clause 3.3.2).

use super::{DISTRICTS, Scale};
use crate::target::Target;
use crate::workload::Verdict;
use fabius::Result;
use fabius_value::Value;

/// Checks every warehouse and district.
///
/// # Errors
/// If a checking procedure aborts.
pub fn check(target: &Target, scale: Scale) -> Result<Verdict> {
    for w_id in 1..=scale.warehouses as i32 {
        let row = target.database.query("check_warehouse", &[w_id.into()])?;
        if row[0] != row[1] {
            return Ok(Err(format!(
                "condition 1: warehouse {w_id} has a year-to-date of {}, its districts of {}",
                row[0], row[1]
            )));
        }
        for d_id in 1..=DISTRICTS as i32 {
            let row = target.database.query("check_district", &[w_id.into(), d_id.into()])?;
            if let Some(why) = violation(&row) {
                return Ok(Err(format!("warehouse {w_id}, district {d_id}: {why}")));
            }
        }
    }
    Ok(Ok(format!("TPC-C conditions 1 to 4 hold in {} districts", scale.warehouses * DISTRICTS)))
}

/// What is wrong with a district, by the results of `check_district`.
fn violation(row: &[Value]) -> Option<String> {
    let [last, max, max_new, undelivered, span, said, lines] = row else {
        return Some("too few results".into());
    };
    let has_undelivered = *undelivered != Value::BigInt(0);
    let as_integer = |value: &Value| match value {
        Value::Int(v) => Some(i64::from(*v)),
        Value::BigInt(v) => Some(*v),
        _ => None,
    };
    let differ = |left: &Value, right: &Value| as_integer(left) != as_integer(right);
    if differ(last, max) || has_undelivered && differ(last, max_new) {
        return Some(format!(
            "condition 2: next order after {last}, orders to {max}, new orders to {max_new}"
        ));
    }
    if has_undelivered && differ(undelivered, span) {
        return Some(format!("condition 3: {undelivered} new orders span {span} numbers"));
    }
    differ(said, lines).then(|| format!("condition 4: orders say {said} lines, there are {lines}"))
}
