//! Errors of queries as Prometheus answers them.

use super::views::Views;
use crate::http::answer::Answer;
use axum::http::StatusCode;
use latewood_promql::engine::{Error, EvalError};
use latewood_promql::source::Interrupt;
use std::sync::Arc;

/// The status of a query whose client left, as Prometheus has it.
const CLIENT_CLOSED: u16 = 499;

/// The answer for a query that ends before it is evaluated.
pub(super) fn before_evaluation(why: Interrupt) -> Answer {
    let mut answer = refusal(EvalError::from(why).into(), None);
    answer.text = match why {
        Interrupt::Timeout => "query timed out in query execution".to_owned(),
        Interrupt::Canceled => "query was canceled in query execution".to_owned(),
    };
    answer
}

/// The answer for an error of a query.
pub(super) fn refusal(error: Error, views: Option<&Arc<Views>>) -> Answer {
    let (status, error_type) = match &error {
        Error::Parse(_) | Error::Prepare(_) | Error::Type(_) => {
            return Answer::parameter("query", error);
        }
        Error::Eval(EvalError::Source(_)) => {
            if let Some(answer) = views.and_then(|views| views.reader().take_refusal()) {
                return answer;
            }
            (StatusCode::UNPROCESSABLE_ENTITY, "execution")
        }
        Error::Eval(EvalError::Interrupt(Interrupt::Timeout)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "timeout")
        }
        Error::Eval(EvalError::Interrupt(Interrupt::Canceled)) => {
            let status = StatusCode::from_u16(CLIENT_CLOSED);
            (
                status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
                "canceled",
            )
        }
        Error::Eval(EvalError::Crowded) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        Error::Eval(_) => (StatusCode::UNPROCESSABLE_ENTITY, "execution"),
    };
    let mut answer = Answer::new(status, error.to_string());
    answer.error_type = Some(error_type);
    answer
}
