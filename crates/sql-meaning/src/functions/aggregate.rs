//! Aggregates (PostgreSQL 15, 9.21).

use super::{Body, Definition, declare};

/// What an aggregate makes of the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// `array_agg`
    Array,
    /// `avg`
    Average,
    /// `bit_and`, `bit_or`, `bit_xor`
    Bits(Bits),
    /// `bool_and` and `every`, or `bool_or`.
    Truth {
        /// Whether it asks for all, not for any.
        is_of_all: bool,
    },
    /// `count`
    Count,
    /// `json_agg`, `jsonb_agg`
    JsonArray,
    /// `json_object_agg`, `jsonb_object_agg`
    JsonObject,
    /// `max`
    Maximum,
    /// `min`
    Minimum,
    /// `mode`, `percentile_cont`, `percentile_disc`: of values in an order that is said by `WITHIN GROUP`.
    OfOrdered(OfOrdered),
    /// A figure of statistics.
    Statistic(Statistic),
    /// `sum`
    Sum,
    /// `string_agg`
    Text,
}

/// How bits are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// `bit_and`
    And,
    /// `bit_or`
    Or,
    /// `bit_xor`
    Xor,
}

/// What is taken of ordered values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfOrdered {
    /// `mode`: the most frequent.
    Mode,
    /// `percentile_cont`: between values.
    PercentileContinuous,
    /// `percentile_disc`: one of the values.
    PercentileDiscrete,
}

/// A figure of the values of one expression or of two (PostgreSQL 15, table 9.60).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// `corr`
    Correlation,
    /// `covar_pop`
    CovarianceOfPopulation,
    /// `covar_samp`
    CovarianceOfSample,
    /// `stddev_pop`
    DeviationOfPopulation,
    /// `stddev_samp`, `stddev`
    DeviationOfSample,
    /// `var_pop`
    VarianceOfPopulation,
    /// `var_samp`, `variance`
    VarianceOfSample,
    /// `regr_...`: a line through points.
    Regression(Regression),
}

/// A figure of the line through points that squares of distances are least from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regression {
    /// `regr_avgx`
    AverageX,
    /// `regr_avgy`
    AverageY,
    /// `regr_count`
    Count,
    /// `regr_intercept`
    Intercept,
    /// `regr_r2`
    Determination,
    /// `regr_slope`
    Slope,
    /// `regr_sxx`
    SquaresX,
    /// `regr_sxy`
    Products,
    /// `regr_syy`
    SquaresY,
}

/// The aggregates. Values that one of [`Aggregate::OfOrdered`] orders count as its last arguments.
pub(super) fn definitions() -> Vec<Definition> {
    use Aggregate as A;
    let mut all = Vec::new();
    let mut add = |signature: &str, aggregate: Aggregate| {
        let declared = declare(signature, Body::Aggregate(aggregate));
        all.push(Definition { is_strict: false, ..declared });
    };
    add("array_agg(anynonarray) anyarray", A::Array);
    add("array_agg(anyarray) anyarray", A::Array);
    for of in ["smallint numeric", "int numeric", "bigint numeric", "numeric numeric"] {
        let (of, returns) = of.split_once(' ').expect("two types");
        add(&format!("avg({of}) {returns}"), A::Average);
    }
    for of in ["real", "double_precision"] {
        add(&format!("avg({of}) double_precision"), A::Average);
    }
    add("avg(interval) interval", A::Average);
    for (name, bits) in [("bit_and", Bits::And), ("bit_or", Bits::Or), ("bit_xor", Bits::Xor)] {
        for of in ["smallint", "int", "bigint"] {
            add(&format!("{name}({of}) {of}"), A::Bits(bits));
        }
    }
    for (name, is_of_all) in [("bool_and", true), ("every", true), ("bool_or", false)] {
        add(&format!("{name}(boolean) boolean"), A::Truth { is_of_all });
    }
    add("count() bigint", A::Count);
    add("count(any) bigint", A::Count);
    for json in ["json", "jsonb"] {
        add(&format!("{json}_agg(anyelement) {json} stable"), A::JsonArray);
        add(&format!("{json}_object_agg(any, any) {json} stable"), A::JsonObject);
    }
    for (name, aggregate) in [("max", A::Maximum), ("min", A::Minimum)] {
        for of in ORDERED {
            add(&format!("{name}({of}) {of}"), aggregate);
        }
    }
    add("mode(anyelement) anyelement", A::OfOrdered(OfOrdered::Mode));
    for of in ["double_precision", "interval"] {
        let continuous = A::OfOrdered(OfOrdered::PercentileContinuous);
        add(&format!("percentile_cont(double_precision, {of}) {of}"), continuous);
        add(&format!("percentile_cont(double_precision[], {of}) {of}[]"), continuous);
    }
    let discrete = A::OfOrdered(OfOrdered::PercentileDiscrete);
    add("percentile_disc(double_precision, anyelement) anyelement", discrete);
    add("percentile_disc(double_precision[], anyelement) anyarray", discrete);
    for (names, statistic) in STATISTICS {
        for name in *names {
            let parameters = match statistic {
                Statistic::Correlation
                | Statistic::CovarianceOfPopulation
                | Statistic::CovarianceOfSample
                | Statistic::Regression(_) => "double_precision, double_precision",
                _ => "double_precision",
            };
            let returns = match statistic {
                Statistic::Regression(Regression::Count) => "bigint",
                _ => "double_precision",
            };
            add(&format!("{name}({parameters}) {returns}"), A::Statistic(*statistic));
        }
    }
    for of in ["smallint bigint", "int bigint", "bigint numeric", "numeric numeric"] {
        let (of, returns) = of.split_once(' ').expect("two types");
        add(&format!("sum({of}) {returns}"), A::Sum);
    }
    for of in ["real", "double_precision", "interval"] {
        add(&format!("sum({of}) {of}"), A::Sum);
    }
    add("string_agg(text, text) text", A::Text);
    add("string_agg(bytea, bytea) bytea", A::Text);
    all
}

/// The types that have a least and a greatest value.
const ORDERED: [&str; 17] = [
    "smallint",
    "int",
    "bigint",
    "oid",
    "numeric",
    "real",
    "double_precision",
    "text",
    "bpchar",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "inet",
    "anyarray",
    "anyenum",
];

const STATISTICS: &[(&[&str], Statistic)] = &[
    (&["corr"], Statistic::Correlation),
    (&["covar_pop"], Statistic::CovarianceOfPopulation),
    (&["covar_samp"], Statistic::CovarianceOfSample),
    (&["stddev_pop"], Statistic::DeviationOfPopulation),
    (&["stddev_samp", "stddev"], Statistic::DeviationOfSample),
    (&["var_pop"], Statistic::VarianceOfPopulation),
    (&["var_samp", "variance"], Statistic::VarianceOfSample),
    (&["regr_avgx"], Statistic::Regression(Regression::AverageX)),
    (&["regr_avgy"], Statistic::Regression(Regression::AverageY)),
    (&["regr_count"], Statistic::Regression(Regression::Count)),
    (&["regr_intercept"], Statistic::Regression(Regression::Intercept)),
    (&["regr_r2"], Statistic::Regression(Regression::Determination)),
    (&["regr_slope"], Statistic::Regression(Regression::Slope)),
    (&["regr_sxx"], Statistic::Regression(Regression::SquaresX)),
    (&["regr_sxy"], Statistic::Regression(Regression::Products)),
    (&["regr_syy"], Statistic::Regression(Regression::SquaresY)),
];
