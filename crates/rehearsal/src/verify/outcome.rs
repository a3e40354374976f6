//! What can come of sending a recording again, beside a report.

use crate::client::ClientError;

/// Why a recording could not be sent again.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError<E> {
    /// The server could not be named.
    #[error(transparent)]
    Named(E),
    /// The server could not be started or reached.
    #[error("{words}")]
    Connect {
        /// Why not, without secrets.
        words: String,
        /// The same as it is.
        error: Box<ClientError>,
    },
}

/// Whether everything was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// It was.
    #[default]
    Nothing,
    /// Something was answered in a way that cannot be understood, or the server was lost.
    Something,
    /// Something was not answered in time.
    Late,
}

/// Whether nothing is there to answer.
pub(super) fn is_unreachable(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::ServerGone { .. }
            | ClientError::Refused { .. }
            | ClientError::NotAuthorized { .. }
            | ClientError::Lost { .. }
    )
}
