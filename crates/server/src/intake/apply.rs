//! Batches: from waiting samples to outcomes by line.

use super::pause::enter;
use super::report::shown;
use super::senders::Waited;
use super::{EngineIntake, Failure, Pending, Place, ToCome, key_of, owned_text};
use crate::messaging::{ADD_EVENT, Class};
use crate::observe::{Limit, Protocol, Route};
use latewood_engine::{Append, AppendTo, Create, Outcome, Position, Refusal, Scratch};
use latewood_model::limits::APPEND_BATCH_MAX;
use latewood_model::{Labels, SeriesOptions};
use latewood_wire::intake::{Intake, Moment, Reason, Refused, Slot};
use latewood_wire::series_name::SeriesName;

impl EngineIntake {
    /// Applies the samples that wait.
    pub(super) fn apply(&mut self) {
        if !self.known.is_empty() {
            self.apply_known();
        }
        if !self.fresh.is_empty() {
            self.apply_fresh();
        }
        self.senders.applied();
    }

    /// Waits for the disk where the server promises that.
    pub(super) fn sync(&mut self) {
        let waits = self.shared.settings.durability == latewood_engine::Durability::Sync;
        if waits && self.report.position != Position::default() {
            let synced = self.shared.db.sync_to(self.report.position);
            if let Err(error) = synced {
                self.report.doubt(error, self.report.samples);
            }
        }
    }

    fn apply_known(&mut self) {
        let waiting = std::mem::take(&mut self.known);
        let mut batch = Vec::with_capacity(waiting.len());
        for pending in &waiting {
            // Only what is there waits here.
            if let Place::There(series) = &self.series[pending.slot as usize].place {
                batch.push(AppendTo {
                    series,
                    timestamp: pending.timestamp_ms,
                    value: pending.value,
                    on_duplicate: None,
                });
            }
        }
        // Events are published with the exec lock held: no EXEC sees the samples before
        // its WATCH does.
        let applied = enter(&self.shared, self.in_pause).and_then(|_pass| {
            let applied = self.shared.db.append_resolved(&batch, &mut self.scratch);
            if applied.is_ok() && self.shared.events.is_listening() {
                for append in &batch {
                    let key = &append.series.key;
                    self.shared.changed(Class::Module, ADD_EVENT, key);
                }
            }
            applied.map_err(Failure::Engine)
        });
        match applied {
            Ok(position) => {
                self.report.position = self.report.position.max(position);
                let scratch = std::mem::take(&mut self.scratch);
                self.note_arrivals(&waiting);
                self.count_late(Waited::Known, &waiting, &scratch);
                self.note_outcomes(&waiting, &scratch);
                self.scratch = scratch;
            }
            Err(error) => self.report.fail_samples(error, waiting.len()),
        }
        self.known = waiting;
        self.known.clear();
    }

    #[inline]
    fn note_arrivals(&self, waiting: &[Pending]) {
        self.shared.observe.arrivals.came(waiting.len(), |at| {
            let pending = waiting[at];
            let key = key_of(&self.series[pending.slot as usize].place);
            (key, self.now_ms.saturating_sub(pending.timestamp_ms))
        });
    }

    fn note_outcomes(&mut self, waiting: &[Pending], scratch: &Scratch) {
        let outcomes = waiting.iter().zip(scratch.outcomes());
        for (index, (pending, outcome)) in outcomes.enumerate() {
            match outcome {
                Ok(_) => self.report.samples += 1,
                Err(Refusal::StaleSeries) => self.renew(*pending, Waited::Known, index),
                Err(_) => {
                    self.note(pending, *outcome);
                    self.note_sender(Some((Waited::Known, index)));
                }
            }
        }
    }

    /// Creates again the series of a sample, which was removed; `index` is that of the sample among
    /// those that waited.
    #[cold]
    fn renew(&mut self, pending: Pending, waited: Waited, index: usize) {
        let slot = pending.slot as usize;
        if let Place::There(series) = &self.series[slot].place {
            let mut name = SeriesName::new();
            if !name.read(&series.key) {
                return self.note(&pending, Err(Refusal::StaleSeries));
            }
            match self.to_come(&name) {
                Ok(place) => self.put_place(slot, place),
                Err(refused) => {
                    let text = format_args!("{}", refused.text);
                    return self.report.refuse(pending.line, refused.reason, text);
                }
            }
        }
        self.senders.renew(waited, index, self.fresh.len());
        self.fresh.push(pending);
    }

    fn apply_fresh(&mut self) {
        // Samples wait again whose series went between two parts. They create it then, so each
        // round leaves fewer.
        while !self.fresh.is_empty() {
            let waiting = std::mem::take(&mut self.fresh);
            let first = self.senders.take_fresh(waiting.len());
            // What was found stale comes on top of what waited.
            let parts = waiting.chunks(APPEND_BATCH_MAX);
            for (number, part) in parts.enumerate() {
                self.apply_fresh_part(part, first + number * APPEND_BATCH_MAX);
            }
        }
    }

    /// Applies those of the fresh ones that begin with number `from`.
    pub(super) fn apply_fresh_part(&mut self, waiting: &[Pending], from: usize) {
        let is_of_rule = self.protocol == Protocol::Rules;
        let batch = waiting.iter().map(|pending| {
            let (key, create) = match &self.series[pending.slot as usize].place {
                Place::ToCome(new) if is_of_rule => (&*new.key, Create::Derived(&new.options)),
                Place::ToCome(new) => (&*new.key, Create::Sent(&new.options)),
                // A part before this one created it.
                Place::There(series) => (&*series.key, Create::Never),
            };
            Append {
                key,
                timestamp: pending.timestamp_ms,
                value: pending.value,
                on_duplicate: None,
                create,
            }
        });
        let batch: Vec<_> = batch.collect();
        let wants_new = self.shared.events.wants(Class::New);
        let new: Vec<_> = if wants_new {
            batch
                .iter()
                .map(|append| !self.shared.db.contains(append.key))
                .collect()
        } else {
            Vec::new()
        };
        let pass = match enter(&self.shared, self.in_pause) {
            Ok(pass) => pass,
            Err(failure) => return self.report.fail_samples(failure, waiting.len()),
        };
        let position = match self.shared.db.append(&batch, &mut self.scratch) {
            Ok(position) => position,
            Err(error) => {
                let failure = Failure::Engine(error);
                return self.report.fail_samples(failure, waiting.len());
            }
        };
        self.report.position = self.report.position.max(position);
        if self.shared.events.is_listening() {
            self.tell_of_fresh(&batch, &new);
        }
        drop(pass);
        drop(batch);
        self.note_arrivals(waiting);
        self.count_late(Waited::Fresh(from), waiting, &self.scratch);
        for (index, pending) in waiting.iter().enumerate() {
            let waited = Waited::Fresh(from);
            match self.scratch.outcomes()[index] {
                // A part before this one created it, and it was removed since.
                Err(Refusal::NoSuchKey) => self.renew(*pending, waited, index),
                outcome => {
                    self.note(pending, outcome);
                    match outcome {
                        Ok(_) => self.arrive(pending.slot as usize),
                        Err(_) => self.note_sender(Some((waited, index))),
                    }
                }
            }
        }
    }

    /// Publishes the events of samples and of new keys.
    #[cold]
    fn tell_of_fresh(&self, batch: &[Append<'_>], new: &[bool]) {
        let mut told = std::collections::HashSet::new();
        // The engine tells of series that bring compactions along.
        let tells = self
            .shared
            .db
            .defaults()
            .compactions
            .compactions()
            .is_empty();
        for (index, append) in batch.iter().enumerate() {
            let is_new = new.get(index) == Some(&true) && self.scratch.outcomes()[index].is_ok();
            if is_new && tells && told.insert(append.key) {
                self.shared.events.created(append.key);
            }
            self.shared.changed(Class::Module, ADD_EVENT, append.key);
        }
    }

    /// Refers to a series that has just got its first sample.
    fn arrive(&mut self, slot: usize) {
        if let Place::ToCome(new) = &self.series[slot].place
            && let Ok(series) = self.shared.db.resolve(&new.key)
        {
            self.put_place(slot, Place::There(series));
        }
    }

    fn put_place(&mut self, slot: usize, place: Place) {
        let held = &mut self.series[slot].place;
        self.to_come_bytes -= held.len_bytes();
        self.to_come_bytes += place.len_bytes();
        *held = place;
    }

    fn note(&mut self, pending: &Pending, outcome: Outcome) {
        let Err(refusal) = outcome else {
            self.report.samples += 1;
            return;
        };
        let key = shown(key_of(&self.series[pending.slot as usize].place));
        let (line, at) = (pending.line, pending.timestamp_ms);
        let report = &mut self.report;
        let reason = match refusal {
            Refusal::Duplicate | Refusal::OlderThanNewest | Refusal::SumIsNan => Reason::Duplicate,
            Refusal::OlderThanRetention | Refusal::OlderThanFloor => Reason::Retention,
            Refusal::InvalidTimestamp => Reason::Timestamp,
            Refusal::Limit(_) | Refusal::NoSuchKey | Refusal::StaleSeries => Reason::Limit,
            Refusal::Damaged => Reason::Damaged,
            Refusal::Owned => Reason::Permission,
            // No fault of the sample: sent again later, it may be taken.
            Refusal::OutOfMemory | Refusal::Away => {
                return report.fail_series(format_args!("{key} at {at}: {refusal}"));
            }
        };
        report.by_engine += u64::from(matches!(reason, Reason::Duplicate | Reason::Retention));
        if refusal == Refusal::OlderThanFloor {
            let floor = self.shared.db.floor();
            let text = format_args!("{key} at {at}: {refusal}, which begins at {floor}");
            return report.refuse(line, reason, text);
        }
        if refusal == Refusal::Owned {
            let place = &self.series[pending.slot as usize].place;
            let text = owned_text(key_of(place), &self.shared.db);
            return report.refuse(line, reason, format_args!("{key} at {at}: {text}"));
        }
        report.refuse(line, reason, format_args!("{key} at {at}: {refusal}"));
    }

    /// Refuses a sample for its timestamp.
    #[cold]
    pub(super) fn refuse_time(&mut self, slot: Slot, at: Moment, line: u32) {
        let place = self.series.get(slot.0 as usize).map(|series| &series.place);
        let key = shown(place.map_or(&[], key_of));
        let at = at.ms;
        if at < 0 {
            let text = format_args!("{key} at {at}: the timestamp is negative");
            return self.refuse(line, Reason::Timestamp, text);
        }
        let is_ahead = at > self.latest_ms;
        let why = self.shared.settings.senders.time_limits.refusal(is_ahead);
        let reason = if is_ahead {
            Reason::Future
        } else {
            Reason::Past
        };
        let unit = match self.senders.route() {
            Route::Otlp | Route::Akumuli => "nanoseconds",
            Route::RemoteWrite | Route::JsonImport | Route::Rules => "milliseconds",
            Route::TextImport => "milliseconds, or seconds in OpenMetrics",
            Route::OpenTsdbTcp | Route::OpenTsdbHttp => "seconds or milliseconds",
            Route::InfluxTcp | Route::InfluxUdp => "the unit of the port's precision",
            Route::InfluxHttp | Route::CsvImport | Route::Resp => "the unit the request names",
        };
        let text = format_args!("{key} at {at}: {why}; is it in {unit}?");
        self.refuse(line, reason, text);
    }

    /// A series that does not exist yet, as it will be created.
    pub(super) fn to_come(&self, name: &SeriesName) -> Result<Place, Refused> {
        let labels = Labels::new(name.labels()).map_err(|error| {
            self.shared.observe.refused.note(Limit::Labels);
            Refused {
                reason: Reason::Name,
                text: error.to_string(),
            }
        })?;
        let settings = &self.shared.settings;
        let mut options = SeriesOptions {
            labels,
            duplicate_policy: Some(settings.senders.duplicate_policy),
            ..self.shared.db.defaults().series.clone()
        };
        if self.protocol == Protocol::Rules && settings.rules.retention_ms > 0 {
            options.retention_ms = settings.rules.retention_ms;
        }
        let key = name.key().into();
        Ok(Place::ToCome(Box::new(ToCome { key, options })))
    }
}
