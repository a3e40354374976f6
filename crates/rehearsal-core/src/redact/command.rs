//! Redacts passwords in the arguments of a command line.

use std::ops::Range;

use super::prefilter::{self, Signal};
use super::redacted::SecretKind;
use super::secret_scan::SecretScan;

impl SecretScan<'_> {
    /// Redacts passwords that follow a one-letter flag or no flag at all:
    ///
    /// ```text
    /// curl -u me:hunter2 https://…    mysql -uroot -phunter2    sshpass -p hunter2 ssh …
    /// ```
    pub(super) fn commands(&mut self, text: &str) {
        for found in prefilter::find(text.as_bytes()).filter(|found| matches!(found.needle, Signal::Command)) {
            let program = text[found.start..found.end].trim_end().to_ascii_lowercase();
            let line = &text[found.end..];
            let line = &line[..line.find(['\n', '\r', ';', '|', '&']).unwrap_or(line.len())];
            let mut before = "";
            let mut at = found.end;
            for word in line.split_inclusive(char::is_whitespace) {
                let range = at..at + word.trim_end().len();
                at += word.len();
                let word = &text[range.clone()];
                match program.as_str() {
                    "curl" => self.curl(text, range, before),
                    "mysql" if word.len() > 2 && word.starts_with("-p") => self.word(text, range.start + 2..range.end),
                    "sshpass" if before == "-p" => self.word(text, range),
                    "sshpass" if word.len() > 2 && word.starts_with("-p") => {
                        self.word(text, range.start + 2..range.end)
                    }
                    _ => {}
                }
                // The arguments after the first word that is not a flag belong to another program.
                if program == "sshpass" && !word.is_empty() && !word.starts_with('-') {
                    break;
                }
                before = if word.is_empty() { before } else { word };
            }
        }
    }

    fn curl(&mut self, text: &str, range: Range<usize>, before: &str) {
        let word = &text[range.clone()];
        if matches!(before, "-u" | "--user" | "-U" | "--proxy-user") {
            self.user(text, range);
        } else if let Some(flag) = ["--user=", "--proxy-user=", "-u"].iter().find(|flag| word.starts_with(**flag)) {
            self.user(text, range.start + flag.len()..range.end);
        }
    }

    /// Redacts `me:hunter2`; `1000:1000` and `node:node` are a user and a group.
    pub(super) fn user(&mut self, text: &str, range: Range<usize>) {
        let Some((user, password)) = text[range.clone()].split_once(':') else { return };
        let name = user.trim_start_matches(['"', '\'']);
        let number = password.bytes().all(|byte| byte.is_ascii_digit());
        if !name.is_empty() && name != password && !(number && name.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word(text, range.start + user.len() + 1..range.end);
        }
    }

    /// Redacts a word without its quotes; `$PASSWORD` is only a reference.
    fn word(&mut self, text: &str, range: Range<usize>) {
        let quotes = ['"', '\'', '`', ',', ')', '\\'];
        let word = text[range.clone()].trim_end_matches(quotes);
        let inner = word.trim_start_matches(quotes);
        let start = range.start + (word.len() - inner.len());
        if !inner.starts_with('$') {
            self.redact_range(text, start..start + inner.len(), SecretKind::Password);
        }
    }
}
