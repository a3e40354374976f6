//! Stores tokens in files, for later processes.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use oauth2::TokenResponse;
use rmcp::transport::auth::OAuthTokenResponse;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the file format.
const FORMAT: u32 = 1;
/// Maximum size of a file, in bytes.
const FILE_LIMIT: u64 = 256 * 1024;
/// How long to wait for another process that renews the token.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The time between two attempts to lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// A folder of tokens, one file per server, that only its owner can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStore {
    folder: PathBuf,
}

/// The login at one server.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    format: u32,
    /// The server's URL.
    server: String,
    /// The issuer of the token. None of this is sent to another authorization server.
    pub(super) issuer: Option<String>,
    pub(super) client_id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) redirect_uri: Option<String>,
    /// The requested scopes, to which a later login adds more.
    pub(super) scopes: Vec<String>,
    /// Seconds since 1970.
    pub(super) received_at: Option<u64>,
    /// The response of the authorization server.
    pub(super) token: OAuthTokenResponse,
}

impl Login {
    pub(super) fn new(server: &str, client_id: String, token: OAuthTokenResponse) -> Login {
        let (format, server) = (FORMAT, server.to_owned());
        let (issuer, client_secret, redirect_uri, scopes, received_at) = Default::default();
        Login { format, server, issuer, client_id, client_secret, redirect_uri, scopes, received_at, token }
    }

    pub(super) fn access_token(&self) -> &str {
        self.token.access_token().secret()
    }

    pub(super) fn has_refresh_token(&self) -> bool {
        self.token.refresh_token().is_some()
    }

    /// True if the token expires within `margin` seconds, or within a quarter of its lifetime if that is shorter.
    pub(super) fn is_old(&self, now: u64, margin: u64) -> bool {
        let lasts = self.token.expires_in().map(|lasts| lasts.as_secs());
        self.received_at.zip(lasts).is_some_and(|(from, lasts)| {
            let margin = margin.min(lasts / 4);
            now.saturating_add(margin) >= from.saturating_add(lasts)
        })
    }
}

/// Why tokens cannot be stored or read.
#[derive(thiserror::Error)]
pub enum StoreError {
    /// The file cannot be read or written.
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        /// The failed operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// Other users can read the file.
    #[error("{} can be read by others than its owner; `chmod 600` it, or remove it and log in again", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a login.
    #[error("{} is not a login of this program ({what}); remove it and log in again", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem, without content of the file.
        what: String,
    },
    /// Another process has kept the lock too long.
    #[error("another process has kept {} locked for {} s", path.display(), LOCK_TIMEOUT.as_secs())]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

debug_as_display!(StoreError);

impl TokenStore {
    /// Stores tokens in this folder, which is created with the first token.
    pub fn at(folder: impl Into<PathBuf>) -> TokenStore {
        TokenStore { folder: folder.into() }
    }

    /// The file for the login of a server. Its name is the host, for the user, and a hash of the whole URL.
    pub fn file(&self, server: &str) -> PathBuf {
        let url = canonical(server);
        let host: String = url.split("://").nth(1).unwrap_or_default().chars().take_while(|c| *c != '/').collect();
        let host = host.replace(|c: char| !c.is_ascii_alphanumeric() && !"-.".contains(c), "_");
        let hash: String = Sha256::digest(url.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{}-{hash}.json", &host[..host.len().min(100)]))
    }

    /// Removes the login of a server; `false` if there was none.
    pub fn forget(&self, server: &str) -> Result<bool, StoreError> {
        let path = self.file(server);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(StoreError::File { what: "remove", path, cause }),
        }
    }

    pub(super) fn load(&self, server: &str) -> Result<Option<Login>, StoreError> {
        let path = self.file(server);
        let failed = |cause| StoreError::File { what: "read", path: path.clone(), cause };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(failed(cause)),
        };
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(StoreError::Exposed { path });
        }
        let mut text = Vec::new();
        file.take(FILE_LIMIT).read_to_end(&mut text).map_err(failed)?;
        let unreadable = |what: String| StoreError::Unreadable { path: path.clone(), what };
        let login: Login = serde_json::from_slice(&text)
            // The parser's own message could quote a token.
            .map_err(|error| unreadable(format!("line {} column {}", error.line(), error.column())))?;
        if login.format != FORMAT {
            return Err(unreadable(format!("format {}; this program reads {FORMAT}", login.format)));
        }
        Ok((canonical(&login.server) == canonical(server)).then_some(login))
    }

    /// Stores a login. A reader sees the whole of it, or what was stored before.
    pub(super) fn save(&self, login: &Login) -> Result<(), StoreError> {
        let path = self.file(&login.server);
        let failed = |cause| StoreError::File { what: "write", path: path.clone(), cause };
        self.make_folder().map_err(failed)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(failed)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let text = serde_json::to_vec_pretty(login).map_err(|error| failed(error.into()))?;
        file.write_all(&text).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        // An existing folder may have other permissions, and it must be for its owner only.
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))
    }

    /// Waits until no other process renews the token of this server. Dropping the file releases the lock.
    pub(super) async fn lock(&self, server: &str) -> Result<File, StoreError> {
        let path = self.file(server).with_extension("lock");
        let failed = |cause| StoreError::File { what: "lock", path: path.clone(), cause };
        self.make_folder().map_err(failed)?;
        let file = open_lock(&path).map_err(failed)?;
        let locked = tokio::time::timeout(LOCK_TIMEOUT, async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_INTERVAL).await,
                    Err(TryLockError::Error(cause)) => return Err(cause),
                }
            }
        });
        match locked.await {
            Ok(Ok(())) => Ok(file),
            Ok(Err(cause)) => Err(failed(cause)),
            Err(_) => Err(StoreError::Locked { path }),
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// The canonical form of a URL: scheme and host in lower case, no fragment.
fn canonical(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(end);
            let path = if path.is_empty() { "/" } else { path };
            format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://MCP.example:8443/mcp?tenant=1";

    fn login(token: &str) -> Login {
        let text = format!(
            r#"{{"access_token":"{token}","token_type":"bearer","expires_in":3600,"refresh_token":"again","vendor":1}}"#
        );
        let mut login = Login::new(SERVER, "client".into(), serde_json::from_str(&text).unwrap());
        login.received_at = Some(1000);
        login
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_the_stored_tokens() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("state/rehearsal/tokens");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let store = TokenStore::at(&folder);
        assert!(store.load(SERVER).unwrap().is_none());
        store.save(&login("one")).unwrap();
        store.save(&login("two")).unwrap();
        assert_eq!((mode(&folder), mode(&store.file(SERVER))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(store.load("https://mcp.example:8443/mcp?tenant=1").unwrap().unwrap().access_token(), "two");
        assert!(store.load("https://mcp.example:8443/mcp").unwrap().is_none(), "another URL has its own login");
        assert!(store.forget(SERVER).unwrap());
        assert!(!store.forget(SERVER).unwrap());
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let store = TokenStore::at(scratch.path().join("tokens"));
        store.save(&login("secret")).unwrap();
        let path = store.file(SERVER);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(store.load(SERVER), Err(StoreError::Exposed { .. })));
    }

    #[test]
    fn a_broken_file_is_reported_without_its_content() {
        let scratch = tempfile::tempdir().unwrap();
        let store = TokenStore::at(scratch.path().join("tokens"));
        store.save(&login("secret")).unwrap();
        let path = store.file(SERVER);
        let whole = fs::read_to_string(&path).unwrap();
        for broken in [whole.replace("\"format\": 1", "\"format\": 9"), whole.replace("3600", "\"secret\""), "x".into()]
        {
            fs::write(&path, broken).unwrap();
            let error = store.load(SERVER).err().unwrap().to_string();
            assert!(error.contains("log in again") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_token_is_old_shortly_before_it_expires() {
        let login = login("x");
        assert!(!login.is_old(4500, 30) && login.is_old(4570, 30));
        assert!(!login.is_old(3000, 5000) && login.is_old(3700, 5000));
    }

    #[test]
    fn a_file_stays_in_its_folder_for_any_host() {
        let store = TokenStore::at("/tokens");
        for url in ["https://../../etc/passwd", "http://[::1]:9/mcp", "x", &format!("http://{}/", "é".repeat(300))] {
            assert_eq!(store.file(url).parent(), Some(Path::new("/tokens")), "{url}");
        }
    }
}
