//! Ids of samples in groups whose ids have 32 bits, and in wide ones.

use latewood_engine::ErrorKind;
use latewood_engine::log::{GroupForm, Record, RecordIter};
use latewood_model::SeriesId;

/// A sample of 0 at 0, `step` away from series 0.
fn sample_after(step: i64) -> Vec<u8> {
    let folded = (step << 1 ^ step >> 63) as u64;
    let len = folded.max(1).ilog2() / 7 + 1;
    let step = (folded << len | 1 << (len - 1)).to_le_bytes();
    [&[0x0a][..], &step[..len as usize], &[0x01]].concat()
}

#[test]
fn ids_wrap_at_32_bits_only_where_a_group_is_not_wide() {
    let id_after = |step, form| match RecordIter::new(&sample_after(step), form).next() {
        Some(Ok(Record::Sample { id, .. })) => Some(id.0),
        Some(Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            None
        }
        other => panic!("{other:?}"),
    };
    let back = -(1 << 30);
    assert_eq!(id_after(back, GroupForm::Narrow), Some(3 << 30));
    assert_eq!(id_after(back, GroupForm::Wide), None);
    assert_eq!(id_after(1 << 31, GroupForm::Narrow), None);
    let most = SeriesId::MAX.0 as i64;
    assert_eq!(id_after(most, GroupForm::Wide), Some(SeriesId::MAX.0));
    assert_eq!(id_after(most + 1, GroupForm::Wide), None);
}
