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
    match installing.wait().doing(&doing)?.success() {
        true => Ok(Command::new(path)),
        false => Err(Error::new(format!("{script} install failed: {last}"))),
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
fn project_file(relative: &str) -> Result<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    let folders = here.ancestors().chain(program.ancestors());
    let mut paths = folders.map(|folder| folder.join(relative));
    let found = paths.find(|path| path.is_file());
    found.ok_or_else(|| Error::new(format!("{relative} not found; run this inside the project")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// What a script says last, or `installed`, where there are only these programs, each a name
    /// and what it says, and what the scripts themselves need.
    fn last_words(script: &str, programs: &[(&str, &str)], home: &std::path::Path) -> String {
        let dir = tempfile::tempdir().unwrap();
        for (name, says) in programs {
            let path = dir.path().join(name);
            std::fs::write(&path, format!("#!/bin/bash\necho '{says}' >&2\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        for name in ["sed", "dirname"] {
            let found = ["/usr/bin", "/bin"].map(|folder| PathBuf::from(folder).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, dir.path().join(name)).unwrap();
        }
        let mut command = Command::new(project_file(script).unwrap());
        command
            .arg("install")
            .env("PATH", dir.path())
            .env("PEER_HOME", home);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => "installed".to_owned(),
            false => said.lines().last().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let home = tempfile::tempdir().unwrap();
        let java = |version: u8| format!("openjdk version \"{version}.0.2\" 2023");
        let (old, new) = (java(11), java(17));
        let questdb = |programs: &[_]| last_words("bench/peers/questdb.sh", programs, home.path());
        assert_eq!(questdb(&[]), "QuestDB needs java, 17 or newer");
        let too_old = questdb(&[("java", &old), ("mvn", "")]);
        assert_eq!(too_old, "QuestDB needs java 17 or newer; this one is 11");
        assert!(questdb(&[("java", &new)]).ends_with("needs mvn to be fetched"));
        // What was fetched before needs java all the same.
        std::fs::create_dir_all(home.path().join("questdb")).unwrap();
        std::fs::write(home.path().join("questdb/questdb-9.3.4.jar"), "").unwrap();
        assert_eq!(questdb(&[("mvn", "")]), "QuestDB needs java, 17 or newer");
        assert_eq!(questdb(&[("java", &new)]), "installed");
        let said = last_words("bench/peers/influxdb.sh", &[("apt-get", "")], home.path());
        assert!(said.ends_with("there is no dpkg here"), "{said}");
    }
}
