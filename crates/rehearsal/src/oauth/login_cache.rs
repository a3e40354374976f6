//! The login in use, in memory and in its file.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};

use super::options::OAuthError;
use super::token_store::{Login, StoreError, TokenStore};

/// The login in use, in which `rmcp` stores its tokens. Clones share it.
#[derive(Clone)]
pub(super) struct LoginCache {
    server: Arc<str>,
    file_store: Option<TokenStore>,
    login: Arc<Mutex<Option<Login>>>,
}

impl LoginCache {
    pub(super) fn new(server: &str, store: Option<TokenStore>) -> LoginCache {
        LoginCache { server: server.into(), file_store: store, login: Arc::default() }
    }

    fn set(&self, login: Option<Login>) {
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = login;
    }

    /// The login in memory.
    pub(super) fn get(&self) -> Option<Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The login in its file, which another process may have renewed.
    pub(super) fn reload(&self) -> Result<Option<Login>, StoreError> {
        if let Some(store) = &self.file_store
            && let Some(login) = store.load(&self.server)?
        {
            self.set(Some(login));
        }
        Ok(self.get())
    }

    /// Stores a login in memory and in its file.
    pub(super) fn store(&self, login: Login) -> Result<(), StoreError> {
        let saved = self.file_store.as_ref().map_or(Ok(()), |store| store.save(&login));
        self.set(Some(login));
        saved
    }

    /// Changes the login except its token.
    pub(super) fn amend(&self, change: impl FnOnce(&mut Login)) -> Result<(), StoreError> {
        match self.get() {
            Some(mut login) => {
                change(&mut login);
                self.store(login)
            }
            None => Ok(()),
        }
    }

    pub(super) fn forget(&self) -> Result<(), StoreError> {
        self.set(None);
        self.file_store.as_ref().map_or(Ok(()), |store| store.forget(&self.server).map(drop))
    }

    /// Prevents other processes from renewing the same login.
    pub(super) async fn lock(&self) -> Result<Option<File>, OAuthError> {
        match &self.file_store {
            Some(store) => Ok(Some(store.lock(&self.server).await?)),
            None => Ok(None),
        }
    }
}

fn failed(error: StoreError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for LoginCache {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.get().map(|login| {
            let Login { client_id, token, scopes, received_at, issuer, .. } = login;
            StoredCredentials::new(client_id, Some(token), scopes, received_at).with_issuer(issuer)
        }))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let Some(token) = credentials.token_response else { return self.forget().map_err(failed) };
        let before = self.get().filter(|login| login.client_id == credentials.client_id);
        let mut login = Login::new(&self.server, credentials.client_id, token);
        if let Some(before) = before {
            (login.client_secret, login.redirect_uri) = (before.client_secret, before.redirect_uri);
            login.scopes = before.scopes;
        }
        if login.scopes.is_empty() {
            login.scopes = credentials.granted_scopes;
        }
        (login.issuer, login.received_at) = (credentials.issuer, credentials.token_received_at);
        self.store(login).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.forget().map_err(failed)
    }
}
