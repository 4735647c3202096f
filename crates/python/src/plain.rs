//! Arguments that are of just the classes that a function's annotations say, as most are: they are looked at here, and
//! all others in Python, which says what is wrong with them.

use crate::classes::Classes;
use fabius_sql_meaning::sql_type::FREE_SCALE;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple, PyType};

/// What a function's parameters take.
#[pyclass(frozen)]
pub struct PlainParameters {
    parameters: Vec<PlainParameter>,
}

struct PlainParameter {
    class: Py<PyType>,
    is_list: bool,
    is_optional: bool,
    check: Check,
}

/// What a value has to be, besides of its class.
#[derive(Clone, Copy)]
enum Check {
    Nothing,
    /// A number of 64 bits.
    Small,
    /// A `Decimal` all of whose digits are kept.
    Kept,
}

impl PlainParameter {
    fn takes(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !value.get_type().is(&self.class) {
            return Ok(false);
        }
        Ok(match self.check {
            Check::Nothing => true,
            Check::Small => value.extract::<i64>().is_ok_and(|number| number > i64::MIN),
            Check::Kept => {
                let exponent = value.call_method0("as_tuple")?.getattr("exponent")?;
                // Of what is no number it is a letter.
                exponent.extract::<i64>().is_ok_and(|exponent| exponent >= -i64::from(FREE_SCALE))
            }
        })
    }
}

#[pymethods]
impl PlainParameters {
    /// Of each parameter a class, whose values are as they are given, whether a list of them is wanted, and whether
    /// `None` is one.
    #[new]
    fn new(py: Python<'_>, parameters: Vec<(Bound<'_, PyType>, bool, bool)>) -> PyResult<PlainParameters> {
        let (int, decimal) = (py.get_type::<PyInt>(), &Classes::of(py)?.decimal);
        let parameter = |(class, is_list, is_optional): (Bound<'_, PyType>, bool, bool)| {
            let check = match () {
                () if class.is(&int) => Check::Small,
                () if class.is(decimal) => Check::Kept,
                () => Check::Nothing,
            };
            PlainParameter { class: class.unbind(), is_list, is_optional, check }
        };
        Ok(PlainParameters { parameters: parameters.into_iter().map(parameter).collect() })
    }

    /// The values of a call, its lists copied; `None` if one of them has to be looked at more closely.
    fn values<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyList>>> {
        if arguments.len() != self.parameters.len() {
            return Ok(None);
        }
        let values = PyList::empty(arguments.py());
        for (parameter, value) in self.parameters.iter().zip(arguments.iter_borrowed()) {
            if value.is_none() && parameter.is_optional {
                values.append(value)?;
                continue;
            }
            if !parameter.is_list {
                if !parameter.takes(&value)? {
                    return Ok(None);
                }
                values.append(value)?;
                continue;
            }
            let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
            let copy = PyList::empty(arguments.py());
            for element in list.iter() {
                if !parameter.takes(&element)? {
                    return Ok(None);
                }
                copy.append(element)?;
            }
            values.append(copy)?;
        }
        Ok(Some(values))
    }
}
