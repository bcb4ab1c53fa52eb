//! Scripts of the project that install peers.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::base::error::{Doing, Error, Result};

/// Has a script of the project install its peer; returns a command that runs the script.
pub(super) fn install(script: &str) -> Result<Command> {
    let path = project_file(script)?;
    let doing = format!("run {script} install");
    let mut installing = Command::new(&path)
        .arg("install")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .doing(&doing)?;
    // Shown as it comes, since fetching takes a while; the last words say what went wrong.
    let mut last = String::new();
    let said = installing.stderr.take().map(BufReader::new);
    for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
        last = String::from_utf8_lossy(&line.doing(&doing)?).into_owned();
        eprintln!("{last}");
    }
    if installing.wait().doing(&doing)?.success() {
        Ok(Command::new(path))
    } else {
        Err(Error::new(format!("{script} install failed: {last}")))
    }
}

/// The version of one of Debian's packages, for programs that do not know their own.
pub(super) fn package_version(package: &str) -> Result<String> {
    let output = Command::new("apt-cache")
        .args(["show", "--no-all-versions", package])
        .output()
        .doing("run apt-cache")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
    let version = version.ok_or_else(|| Error::new(format!("apt-cache knows no {package}")))?;
    Ok(version.to_owned())
}

/// A file of the project, looked for from the working directory and from this program upwards.
pub(crate) fn project_file(relative: &str) -> Result<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    let folders = here.ancestors().chain(program.ancestors());
    let mut paths = folders.map(|folder| folder.join(relative));
    let found = paths.find(|path| path.is_file());
    found.ok_or_else(|| Error::new(format!("{relative} not found; run this inside the project")))
}
