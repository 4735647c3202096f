//! How many files and sockets the process may have open.

/// Raises the process's limit of open files and sockets as far as the system lets it; what it is then. `None` where
/// nobody says.
#[cfg(all(unix, not(miri)))]
pub fn raise_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is there to be written, and lives longer than the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return None;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the call reads `raised`, which lives longer.
    let is_raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0;
    // On some systems the number has no fixed width.
    #[allow(clippy::useless_conversion)]
    Some(u64::from(if is_raised { raised.rlim_cur } else { limit.rlim_cur }))
}

/// Raises the process's limit of open files and sockets as far as the system lets it; what it is then. `None` where
/// nobody says.
#[cfg(not(all(unix, not(miri))))]
pub fn raise_limit() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// Goal: afterwards the process may open as many files as the system lets it.
    #[test]
    fn the_limit_is_raised() {
        let raised = raise_limit().expect("a limit");
        let limits = std::fs::read_to_string("/proc/self/limits").expect("the limits");
        let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("that of files");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[3], words[4]), (raised.to_string().as_str(), raised.to_string().as_str()));
    }
}
