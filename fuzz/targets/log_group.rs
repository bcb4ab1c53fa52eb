//! Records of the log: no bytes make the reader panic, and what it understood
//! can be written and read again.
#![cfg_attr(fuzzing, no_main)]

use latewood_engine::log::{GroupBuilder, GroupForm, Record, RecordIter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for form in [GroupForm::Narrow, GroupForm::Wide] {
        read(bytes, form);
    }
});

fn read(bytes: &[u8], form: GroupForm) {
    let records = RecordIter::new(bytes, form).map_while(Result::ok);
    let records: Vec<Record<'_>> = records.collect();
    let mut group = GroupBuilder::new();
    for record in &records {
        add(&mut group, record);
    }
    let again: Vec<Record<'_>> = RecordIter::new(group.payload(), GroupForm::Wide)
        .map(|record| record.expect("just written"))
        .collect();
    assert_eq!(again.len(), records.len());
    for (again, record) in again.iter().zip(&records) {
        assert!(same(again, record), "{record:?} became {again:?}");
    }
}

fn add(group: &mut GroupBuilder, record: &Record<'_>) {
    match record {
        Record::Sample {
            id,
            timestamp,
            value,
            policy,
        } => {
            group.sample(*id, *timestamp, *value, *policy);
        }
        Record::Create {
            id,
            key,
            made_by,
            options,
        } => group.create(*id, key, *made_by, options),
        Record::Alter { id, options } => group.alter(*id, options),
        Record::DeleteRange { id, from, to } => group.delete_range(*id, *from, *to),
        Record::Expired { id, before } => group.expired(*id, Some(*before)),
        Record::DeleteSeries { id } => group.delete_series(*id),
        Record::Rename { id, key } => group.rename(*id, key),
        Record::Expire { id, at_ms } => group.expire(*id, *at_ms),
        Record::CreateRule {
            id,
            destination,
            spec,
        } => group.create_rule(*id, *destination, *spec),
        Record::DeleteRule { id, destination } => group.delete_rule(*id, *destination),
        Record::RuleTake { id, all } => group.rule_take(*id, *all),
        Record::RuleDone { id } => group.rule_done(*id),
        Record::RuleLeft {
            id,
            destination,
            first,
            last,
        } => group.rule_left(*id, *destination, *first, *last),
        Record::RuleHistory {
            id,
            destination,
            first,
            newest,
        } => group.rule_history(*id, *destination, *first, *newest),
        Record::RuleFilled {
            id,
            destination,
            first,
            last,
        } => group.rule_filled(*id, *destination, *first, *last),
        Record::Build { id, options } => group.build(*id, options),
        Record::FlushAll => group.flush_all(),
        Record::Floor { floor } => group.floor(*floor),
        Record::Horizon { reader, at } => group.horizon(*reader, *at),
        Record::Done { reader, position } => group.done(*reader, *position),
        Record::Pending { reader, state } => group.pending(*reader, state),
        Record::Steps { reader, from, to } => group.steps(*reader, *from, *to),
        Record::Since { reader, at } => group.since(*reader, *at),
        Record::Cut(cut) => group.cut(*cut),
        Record::Ended(ended) => group.ended(ended),
    }
}

/// Equal, with values compared as bits and NaN in options equal to itself.
fn same(a: &Record<'_>, b: &Record<'_>) -> bool {
    match (a, b) {
        (Record::Sample { value: x, .. }, Record::Sample { value: y, .. }) => {
            x.to_bits() == y.to_bits() && format!("{a:?}") == format!("{b:?}")
        }
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}
