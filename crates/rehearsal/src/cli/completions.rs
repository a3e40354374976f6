//! `rehearse completions`

use clap::Args;
use clap_complete::Shell;

use super::command_line::CommandLine;
use super::exit::{Exit, Failure};
use super::output::to_stdout;

/// Print the completion script of a shell
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

const AFTER_HELP: &str = "\
Installation:
  bash        rehearse completions bash > ~/.local/share/bash-completion/completions/rehearse
  zsh         rehearse completions zsh > ~/.zfunc/_rehearse     (a directory of your $fpath)
  fish        rehearse completions fish > ~/.config/fish/completions/rehearse.fish
  elvish      rehearse completions elvish >> ~/.config/elvish/rc.elv
  powershell  rehearse completions powershell >> $PROFILE";

impl CompletionsArgs {
    /// Prints the script.
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::help_command(), "rehearse", &mut script);
        to_stdout(|out| out.write_all(&script))?;
        Ok(Exit::Ok)
    }
}
