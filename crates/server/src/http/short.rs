//! Short bodies, read before the user is known.

use super::answer::Answer;
use super::body::{cut_short, too_long, too_slow};
use axum::body::{Body, Bytes, to_bytes};
use http_body_util::LengthLimitError;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of a body that takes no place among requests.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// Takes in a body of few bytes, which anybody may send: it takes no place
/// that a request of somebody known would need.
///
/// # Errors
/// 408 where it takes more than `time_max`, 413 where it is too long.
pub(super) async fn receive_short(body: Body, time_max: Duration) -> Result<Bytes, Answer> {
    let whole = timeout(time_max, to_bytes(body, SHORT_BYTES_MAX)).await;
    let whole = whole.map_err(|_| too_slow(time_max))?;
    whole.map_err(|error| {
        let cause = error.source();
        if cause.is_some_and(|cause| cause.is::<LengthLimitError>()) {
            too_long(SHORT_BYTES_MAX as u64)
        } else {
            cut_short(&error)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body::BODY_TIME_MAX;
    use axum::http::StatusCode;
    use futures_util::stream;
    use std::io;

    #[tokio::test]
    async fn a_short_body_comes_in_time_and_is_short() {
        let never = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let late = receive_short(never, Duration::ZERO).await.unwrap_err();
        assert_eq!(late.status, StatusCode::REQUEST_TIMEOUT);
        let long = Body::from(vec![b'x'; SHORT_BYTES_MAX + 1]);
        let long = receive_short(long, BODY_TIME_MAX).await.unwrap_err();
        assert_eq!(long.status, StatusCode::PAYLOAD_TOO_LARGE);
        let whole = receive_short(Body::from("q=x"), BODY_TIME_MAX).await;
        assert_eq!(whole.unwrap(), "q=x");
    }
}
