//! Checking a database: reads all files and verifies all invariants.

use super::log::Judge;
use super::read::{list, manifest_bytes};
use crate::base::error::Result;
use crate::base::names;
use crate::io::Env;
use crate::io::directory::{is_remote, open_existing};
use crate::io::quarantine::Quarantine;
use crate::log::{self, LogHole, Position, RecoveryReport};
use crate::storage::block::{Block, BlockMeta, Cache};
use crate::storage::files::parked::ParkedFile;
use crate::storage::files::{
    Directory, LogFound, Manifest, PartitionFiles, SeriesFileMeta, SeriesFileReader, SeriesRow,
};
use crate::storage::metadata;
use latewood_model::{SeriesId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::sync::Arc;

/// Index pages are read once each: no use for more.
const CACHE_BYTES: u64 = 1 << 20;

/// One thing worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether data is lost or in danger; else it is only worth knowing.
    pub is_damage: bool,
    /// What it is, with the file it is about.
    pub what: String,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Damage found.
    pub damage: u64,
    /// A start refuses the directory, with strict options or without.
    pub is_refused: bool,
    /// Blocks.
    pub blocks: u64,
    /// Samples in them, overwritten and deleted ones included.
    pub block_samples: u64,
    /// Series in series files.
    pub series: u64,
    /// Groups of the log.
    pub groups: u64,
    /// Samples in them.
    pub log_samples: u64,
    /// Those of them that no block holds yet.
    pub unstored_samples: u64,
}

struct Checker<'a> {
    env: &'a Env,
    dir: &'a Path,
    tell: &'a mut dyn FnMut(&Finding),
    checked: Checked,
    /// Up to which group of the log the files hold each series.
    stored: HashMap<SeriesId, u64>,
    /// The directory is a cache, which may lack blocks; how many.
    is_cache: bool,
    blocks_away: u64,
}

/// Checks the database in `dir` without changing it: the format version, the
/// manifest, every byte of series files, blocks and log, that the chunks of
/// each series ascend over all base blocks, that no file is missing, and what
/// the decision tables of a start say of all of it together. Findings go to
/// `tell` as they are met.
///
/// Where there is no damage, a start with strict options takes the directory;
/// unless it is refused, one without takes it, too.
///
/// # Errors
/// `Locked` while a server has it, `Unsupported` where a file is of another
/// version, `Invalid` where there is no database, `Io`. A damaged file is no
/// error but a finding.
pub fn check(env: &Env, dir: &Path, tell: &mut dyn FnMut(&Finding)) -> Result<Checked> {
    let guard = open_existing(env, dir)?;
    let checked = check_held(env, dir, tell);
    guard.check_undisturbed()?;
    checked
}

/// The same for a directory that is locked already.
///
/// # Errors
/// As [`check`].
pub(super) fn check_held(env: &Env, dir: &Path, tell: &mut dyn FnMut(&Finding)) -> Result<Checked> {
    let mut checker = Checker {
        env,
        dir,
        tell,
        checked: Checked::default(),
        stored: HashMap::new(),
        is_cache: is_remote(env, dir)?,
        blocks_away: 0,
    };
    let directory = Directory::look(env, dir)?;
    let manifest = &directory.contents;
    checker.manifest_copies()?;
    for files in manifest.partitions.values() {
        checker.partition(manifest, files)?;
    }
    checker.strangers(manifest)?;
    if checker.is_cache {
        checker.remote_log(&directory)
    } else {
        checker.log(&directory)?
    }
    let metadata = metadata::read(env, dir);
    checker.found(metadata)?;
    checker.leftovers()?;
    Ok(checker.checked)
}

impl Checker<'_> {
    fn damage(&mut self, what: String) {
        self.checked.damage += 1;
        (self.tell)(&Finding {
            is_damage: true,
            what,
        });
    }

    fn notice(&mut self, what: String) {
        (self.tell)(&Finding {
            is_damage: false,
            what,
        });
    }

    /// Turns what is wrong with a file into a finding.
    fn found<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_damage() || error.is_not_found() => {
                self.damage(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// One damaged copy of the manifest is passed over; both are found with
    /// the log.
    fn manifest_copies(&mut self) -> Result<()> {
        let path = self.dir.join(names::MANIFEST);
        let Some(bytes) = manifest_bytes(self.env, self.dir)? else {
            return Ok(());
        };
        if Manifest::decode(&bytes).is_ok() && Manifest::verify(&bytes).is_err() {
            self.notice(format!(
                "one of the two copies in the manifest is damaged; the other one is whole, and the next flush writes both anew ({})",
                path.display()
            ));
        }
        Ok(())
    }

    fn partition(&mut self, manifest: &Manifest, files: &PartitionFiles) -> Result<()> {
        self.series_files(manifest, files)?;
        let mut ends = BTreeMap::new();
        for meta in &files.base {
            let read = self.block(meta, Some(&mut ends));
            self.found(read)?;
        }
        for meta in &files.late {
            let read = self.block(meta, None);
            self.found(read)?;
        }
        Ok(())
    }

    fn series_files(&mut self, manifest: &Manifest, files: &PartitionFiles) -> Result<()> {
        let (before, mut is_whole) = (self.stored.len(), true);
        for meta in files.series_files() {
            let is_parked = files.parked.contains(meta);
            let read = self.series_file(manifest, meta, is_parked);
            if self.found(read)?.is_none() {
                is_whole = false;
                // Without it nobody can tell which samples belong to which series.
                let is_needed = !is_parked || !self.tells_of_series(manifest, meta);
                self.checked.is_refused |= is_needed;
            }
        }
        let found = self.stored.len().saturating_sub(before) as u64;
        self.checked.series += found;
        let named = files.series_count();
        if is_whole && found != named {
            let partition = files.series_files().next().map_or(0, |file| file.partition);
            self.damage(format!(
                "the series files of partition {partition} hold {found} series, not {named} as the manifest says"
            ));
        }
        Ok(())
    }

    /// Whether a start can read what it needs of a file of parked series.
    fn tells_of_series(&self, manifest: &Manifest, meta: &SeriesFileMeta) -> bool {
        let path = names::series_dir(self.dir).join(names::series_file(meta.number));
        let file = ParkedFile::open(self.env, &path, meta);
        file.is_ok_and(|file| file.key_hashes(manifest.key_seed).is_ok())
    }

    fn series_file(
        &mut self,
        manifest: &Manifest,
        meta: &SeriesFileMeta,
        is_parked: bool,
    ) -> Result<()> {
        let path = names::series_dir(self.dir).join(names::series_file(meta.number));
        let mut reader = SeriesFileReader::open_to_verify(self.env, &path, meta)?;
        let mut rows = Vec::new();
        while reader.next(&mut rows)? {
            let check = if is_parked {
                SeriesRow::check_parked
            } else {
                SeriesRow::check
            };
            let checked = rows.iter().try_for_each(check);
            checked.map_err(|error| error.at(&path))?;
            self.stored
                .extend(rows.iter().map(|row| (row.id, row.position)));
            let beyond = rows.iter().find(|row| row.id.0 >= manifest.next_id);
            if let Some(row) = beyond {
                let text = format!(
                    "series {} has a number that was not given yet ({})",
                    row.id.0,
                    path.display()
                );
                self.damage(text);
            }
        }
        for id in reader.removed() {
            self.stored.remove(id);
        }
        Ok(())
    }

    /// Checks a block; a base block also against those before it, of which
    /// `ends` has the newest timestamp of each series.
    fn block(
        &mut self,
        meta: &BlockMeta,
        ends: Option<&mut BTreeMap<SeriesId, Timestamp>>,
    ) -> Result<()> {
        let path = names::blocks_dir(self.dir).join(names::block(meta.number));
        let opened = self.env.disk.open(&path).map_err(|error| error.kind());
        if self.is_cache && opened.is_err_and(|kind| kind == NotFound) {
            self.blocks_away += 1;
            return Ok(());
        }
        let block = Arc::new(Block::open(
            self.env,
            &path,
            meta,
            &Cache::new(CACHE_BYTES),
        )?);
        block.verify()?;
        self.checked.blocks += 1;
        self.checked.block_samples += meta.samples;
        let Some(ends) = ends else { return Ok(()) };
        let mut scan = block.scan();
        while let Some(entry) = scan.advance()? {
            let end = ends.entry(entry.id).or_insert(Timestamp::MIN);
            if entry.first <= *end && *end != Timestamp::MIN {
                let text = format!(
                    "the block is damaged: series {} overlaps what an older block holds ({})",
                    entry.id.0,
                    path.display()
                );
                self.damage(text);
                return Ok(());
            }
            *end = entry.last;
        }
        Ok(())
    }

    /// Files that the manifest does not name.
    fn strangers(&mut self, manifest: &Manifest) -> Result<()> {
        let blocks: BTreeSet<u64> = manifest.blocks().map(|block| block.number).collect();
        let files: BTreeSet<u64> = manifest.series_files().map(|file| file.number).collect();
        let blocks = |name: &str| names::parse_block(name).is_some_and(|n| blocks.contains(&n));
        self.strangers_in(&names::blocks_dir(self.dir), &blocks)?;
        let files = |name: &str| names::parse_series_file(name).is_some_and(|n| files.contains(&n));
        self.strangers_in(&names::series_dir(self.dir), &files)
    }

    fn strangers_in(&mut self, folder: &Path, is_named: &dyn Fn(&str) -> bool) -> Result<()> {
        for name in list(self.env, folder)? {
            if !is_named(&name) {
                let path = folder.join(&name);
                let text = "nothing refers to this file";
                self.notice(format!("{text} ({})", path.display()));
            }
        }
        Ok(())
    }

    fn log(&mut self, directory: &Directory) -> Result<()> {
        let durable = Position(directory.contents.log_next_min() - 1);
        let judge = Judge::new(directory, std::mem::take(&mut self.stored));
        let read = log::look(self.env, &names::log_dir(self.dir), durable, &judge);
        let Some(report) = self.found(read)? else {
            self.checked.is_refused = true;
            return Ok(());
        };
        self.checked.groups = report.groups;
        self.checked.log_samples = judge.samples();
        self.checked.unstored_samples = judge.unstored();
        if let Some(refusal) = judge.refusal() {
            self.checked.is_refused = true;
            // A missing file was met where it is read.
            if directory.missing.is_none() {
                self.damage(refusal.to_string());
            }
        }
        for hole in &report.holes {
            self.hole(hole);
        }
        self.curiosities(&report);
        Ok(())
    }

    /// The decision of a start on a cache, beside any log.
    fn remote_log(&mut self, directory: &Directory) {
        self.notice(format!(
            "the log is in Kafka, and the directory is a cache of files; `latewood cluster check` reads log and checkpoint ({})",
            self.dir.display()
        ));
        if self.blocks_away > 0 {
            let what = "blocks are not in the cache: a server fetches them from the object store";
            self.notice(format!("{} {what}", self.blocks_away));
        }
        // What is missing is downloaded before the start.
        let decided = directory.decide(LogFound::From(Position(1)));
        if let (Err(refusal), None) = (decided, &directory.missing) {
            self.checked.is_refused = true;
            self.damage(refusal.to_string());
        }
    }

    fn hole(&mut self, hole: &LogHole) {
        let groups = match hole.groups {
            0 => "an unknown number of".to_owned(),
            groups => groups.to_string(),
        };
        self.damage(format!(
            "the log is damaged: {groups} groups from {} on were durable and are lost, at offset {} ({})",
            hole.first,
            hole.offset,
            hole.segment.display()
        ));
    }

    /// Notices about the log that are no damage.
    fn curiosities(&mut self, report: &RecoveryReport) {
        if report.groups_dropped > 0 {
            self.notice(format!(
                "{} groups stand behind a torn end of the log; they were never acknowledged as durable",
                report.groups_dropped
            ));
        }
        for path in &report.damaged_copies {
            self.notice(format!(
                "one of the two copies of the segment's header is damaged; the other one is whole, and both are written anew once the segment is used again ({})",
                path.display()
            ));
        }
        for path in &report.set_aside {
            self.notice(format!(
                "the segment's header was cut short or is damaged, and nothing says that it held anything durable; a start moves it into quarantine ({})",
                path.display()
            ));
        }
    }

    fn leftovers(&mut self) -> Result<()> {
        let quarantine = names::quarantine_dir(self.dir);
        let held = Quarantine::new(self.env, &quarantine).held()?.len();
        if held > 0 {
            self.notice(format!(
                "quarantine holds {held} damaged files ({})",
                quarantine.display()
            ));
        }
        Ok(())
    }
}
