//! Owners of series that are gone.

use super::World;

#[test]
fn a_series_that_is_gone_is_anybodys_once_no_rule_writes_it() {
    let mut world = World::new("groups: [{name: g, rules: [{record: double, expr: 2 * t}]}]");
    world.sample(&[("__name__", "t")], -30, 3.0);
    world.turn(-30);
    let owned = |world: &World| {
        world.manager.forget_gone(&world.shared);
        world.shared.db.owned().len()
    };
    assert_eq!(owned(&world), 1);
    world.shared.db.flush_all().unwrap();
    assert_eq!(owned(&world), 1, "its rule may go on");
    // It does not, and says so by a mark, which is there.
    world.turn(-20);
    assert_eq!((owned(&world), world.manager.series()), (1, 0));
    world.shared.db.flush_all().unwrap();
    assert_eq!(owned(&world), 0);
}
