//! Where a recording is.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a recording is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// In a file.
    File(PathBuf),
    /// On stdin: `-` on the command line.
    Stdin,
}

impl FromStr for Input {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Input, Infallible> {
        Ok(match word {
            "-" => Input::Stdin,
            path => Input::File(path.into()),
        })
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Input {
        if path.as_os_str() == "-" { Input::Stdin } else { Input::File(path) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Stdin => f.write_str("stdin"),
        }
    }
}
