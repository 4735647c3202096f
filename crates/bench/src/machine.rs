//! What the machine says about itself: cores, and the memory of this process.

use std::fs;

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
