//! Classes of Python's library that values become.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The classes, and the moments that others are counted from.
pub struct Classes {
    pub decimal: Py<PyAny>,
    pub date_of_ordinal: Py<PyAny>,
    pub date: Py<PyAny>,
    pub datetime: Py<PyAny>,
    pub time: Py<PyAny>,
    pub timedelta: Py<PyAny>,
    pub timezone: Py<PyAny>,
    /// 1970-01-01 00:00 without a time zone, and in UTC.
    pub epoch: Py<PyAny>,
    pub epoch_utc: Py<PyAny>,
    pub uuid: Py<PyAny>,
    /// `ipaddress.ip_address`, `ip_interface`, `ip_network`
    pub ip_address: Py<PyAny>,
    pub ip_interface: Py<PyAny>,
    pub ip_network: Py<PyAny>,
    /// The classes of addresses, with or without a network, and those of networks.
    pub addresses: Py<PyAny>,
    pub networks: Py<PyAny>,
    pub read_json: Py<PyAny>,
    /// `enum.Enum`
    pub enumeration: Py<PyAny>,
    /// `fabius.Json`
    pub json: Py<PyAny>,
    /// `fabius.errors.DataError`
    pub data_error: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    /// The classes; they are looked up once.
    pub fn of(py: Python<'_>) -> PyResult<&Classes> {
        CLASSES.get_or_try_init(py, || {
            let datetime = py.import("datetime")?;
            let moment = datetime.getattr("datetime")?;
            let timezone = datetime.getattr("timezone")?;
            let utc = timezone.getattr("utc")?;
            let epoch = moment.call1((1970, 1, 1))?;
            let epoch_utc = moment.call1((1970, 1, 1, 0, 0, 0, 0, &utc))?;
            let ip = py.import("ipaddress")?;
            let of_both = |name: &str| -> PyResult<Py<PyAny>> {
                let classes = (ip.getattr(format!("IPv4{name}"))?, ip.getattr(format!("IPv6{name}"))?);
                classes.into_py_any(py)
            };
            Ok(Classes {
                decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
                date_of_ordinal: datetime.getattr("date")?.getattr("fromordinal")?.unbind(),
                date: datetime.getattr("date")?.unbind(),
                datetime: moment.unbind(),
                time: datetime.getattr("time")?.unbind(),
                timedelta: datetime.getattr("timedelta")?.unbind(),
                timezone: timezone.unbind(),
                epoch: epoch.unbind(),
                epoch_utc: epoch_utc.unbind(),
                uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
                ip_address: ip.getattr("ip_address")?.unbind(),
                ip_interface: ip.getattr("ip_interface")?.unbind(),
                ip_network: ip.getattr("ip_network")?.unbind(),
                addresses: of_both("Address")?,
                networks: of_both("Network")?,
                read_json: py.import("json")?.getattr("loads")?.unbind(),
                enumeration: py.import("enum")?.getattr("Enum")?.unbind(),
                json: py.import("fabius.values")?.getattr("Json")?.unbind(),
                data_error: py.import("fabius.errors")?.getattr("DataError")?.unbind(),
            })
        })
    }
}
