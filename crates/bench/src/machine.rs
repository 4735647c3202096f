//! What the machine says about itself: cores, and the memory of this process.

use std::fs;
use std::time::Duration;

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// Forgets the highest resident size so far, if the system allows it.
pub fn reset_peak() {
    // Only Linux has it, and not in every container; without it the peak is the process's.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The highest resident size in bytes since [`reset_peak`]; 0 where it cannot be read.
pub fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kb| kb * 1024)
}

/// How long one of the ticks is in which Linux tells processor time (`USER_HZ`, the same on every machine).
const TICK: Duration = Duration::from_millis(10);

/// The processor time that a process has used so far, its own and the system's for it; `None` where the system does not
/// tell.
pub fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name, in parentheses, may have any characters; `utime` and `stime` are the 14th and 15th field.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u32 =
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}

/// `, 12.0 GB of memory reserved`, if any is.
pub fn reserved() -> String {
    match fabius_env::memory::reserved_bytes() {
        0 => String::new(),
        bytes => format!(", {:.1} GB of memory reserved", bytes as f64 / f64::from(1 << 30)),
    }
}

/// The machine in a line, for figures: cores, processor, and what was taken of its memory beforehand.
pub fn summary() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")).and_then(|line| line.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    format!("{} cores, {model}{}", cores(), reserved())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the processor time of a process grows while it works.
    #[test]
    fn processor_time_grows() {
        let Some(before) = processor_time(std::process::id()) else { return };
        let mut sum = 0u64;
        while processor_time(std::process::id()).is_some_and(|time| time < before + 3 * TICK) {
            sum = std::hint::black_box((0..1_000_000u64).fold(sum, |sum, number| sum ^ (number << 3)));
        }
        assert_eq!(processor_time(u32::MAX), None);
    }
}
