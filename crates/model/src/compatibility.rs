//! The version of RedisTimeSeries whose answers the TS.* commands give.

use crate::named;

named! {
    /// Where two versions of RedisTimeSeries answer differently, which one is followed.
    ///
    /// `docs/compatibility.md` lists what depends on it.
    #[derive(Default)]
    pub enum Compatibility {
        /// RedisTimeSeries 1.12, of Redis 7.4.
        V1_12 = 0 => "1.12",
        /// Redis 8.10.
        #[default]
        V8_10 = 1 => "8.10",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_followed_unless_another_is_named() {
        assert_eq!(Compatibility::default(), Compatibility::V8_10);
        for version in Compatibility::ALL {
            let found = Compatibility::of_name(version.name().as_bytes());
            assert_eq!(found, Some(version));
        }
        assert_eq!(Compatibility::of_name(b"8"), None);
    }
}
