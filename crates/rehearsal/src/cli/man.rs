//! `rehearse man`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};

use super::command_line::CommandLine;
use super::context::Context;
use super::exit::{Exit, Failure};
use super::output::to_stdout;

/// Print the manual page, or write the pages of all verbs to a directory
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ManArgs {
    /// The directory for rehearse.1, rehearse-list.1 and so on
    #[arg(value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  rehearse man | man -l -
  rehearse man ~/.local/share/man/man1";

impl ManArgs {
    /// Prints or writes the pages.
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let mut command = CommandLine::help_command();
        command.build();
        let Some(directory) = &self.dir else {
            to_stdout(|out| print_page(&command, out))?;
            return Ok(Exit::Ok);
        };
        let unwritable = |path: &Path, cause: io::Error| Failure::unwritable(path, &cause);
        std::fs::create_dir_all(directory).map_err(|cause| unwritable(directory, cause))?;
        for command in pages(&command) {
            let path = directory.join(Page::new(command.clone()).get_filename());
            let mut page = Vec::new();
            print_page(command, &mut page).map_err(Failure::stdout)?;
            std::fs::write(&path, page).map_err(|cause| unwritable(&path, cause))?;
            context.stderr.note(format_args!("wrote {}", path.display()));
        }
        Ok(Exit::Ok)
    }
}

/// A command and all its subcommands.
fn pages(command: &Command) -> Vec<&Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(pages)).collect()
}

/// Prints one page. The text after the options keeps its line ends.
fn print_page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let page = Page::new(command.clone()).source(concat!("rehearse ", env!("CARGO_PKG_VERSION")));
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    for paragraph in more.split("\n\n") {
        match paragraph.split_once(":\n") {
            Some((title, lines)) if lines.starts_with(' ') => {
                roff.control("SH", [title.to_uppercase().as_str()]);
                roff.control("nf", []);
                roff.text(lines.lines().map(|line| roman(format!("{line}\n"))).collect::<Vec<_>>());
                roff.control("fi", []);
            }
            Some(_) | None => {
                roff.control("SH", ["NOTES"]);
                roff.text([roman(paragraph)]);
            }
        }
    }
    roff.to_writer(out)
}
