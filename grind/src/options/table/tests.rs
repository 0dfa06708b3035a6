//! The table agrees with itself: names, explanations, accepted values.

use super::*;
use std::collections::HashSet;

#[test]
fn names_are_distinct() {
    let mut seen = HashSet::new();
    for name in OPTIONS.iter().flat_map(|o| o.names) {
        assert!(seen.insert(*name), "{name} is listed twice");
    }
}

#[test]
fn every_option_that_acts_is_explained_and_every_other_says_why() {
    for o in OPTIONS {
        match o.role {
            Role::Core(_) | Role::Tool(_) | Role::Debug(_) | Role::Early => {
                assert!(!o.help.is_empty(), "{:?}", o.names)
            }
            Role::Ignored(why) | Role::Lacking(_, why) => assert!(!why.is_empty(), "{:?}", o.names),
        }
        if let Role::Lacking(accepted, _) = o.role {
            for value in accepted {
                assert!(
                    o.kind.check(o.names[0], Some(OsStr::new(value))).is_ok(),
                    "{} does not accept {value}",
                    o.names[0]
                );
            }
        }
    }
}

#[test]
fn every_cpu_name_is_known() {
    for name in CPU_NAMES {
        assert!(CPUS.iter().any(|(n, _)| n == name));
    }
    assert_eq!(CPU_NAMES.len(), CPUS.len());
    assert!(BESIDE_NAMES.iter().eq(BESIDE.iter().map(|(name, _)| name)));
}
