//! Groups over a simulated disk.
