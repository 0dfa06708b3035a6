//! Several files of data objects as one: the parts of a run.
//!
//! Invariants: counts are the sums of the parts', object by object and function by function; streams stay what they were, those of each
//! part by themselves.

use super::{Kind, Mem, add};

/// Why files cannot be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// They are of several processes.
    Processes,
    /// They count other events, or were asked for other things.
    Events,
    /// They have stack distances or shared lines, which are those of a whole run.
    Whole,
}

impl std::fmt::Display for Differs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Processes => "it is of another process than the files before: only parts of one run are added up",
            Self::Events => "it counts other events than the files before",
            Self::Whole => "stack distances and shared lines are not added up",
        })
    }
}

impl std::error::Error for Differs {}

impl Mem {
    /// Adds another part of the same run.
    ///
    /// # Errors
    /// When it is none.
    pub fn add_part(&mut self, part: Mem) -> Result<(), Differs> {
        let (head, of) = (&mut self.head, part.head);
        if (head.pid, &head.command) != (of.pid, &of.command) {
            return Err(Differs::Processes);
        }
        if [&head.reuse, &of.reuse].into_iter().any(Option::is_some)
            || [&head.sharing, &of.sharing].into_iter().any(Option::is_some)
        {
            return Err(Differs::Whole);
        }
        let line = |streams: &Option<super::StreamsHead>| streams.as_ref().map(|streams| streams.line);
        if head.events != of.events || head.uses != of.uses || line(&head.streams) != line(&of.streams) {
            return Err(Differs::Events);
        }
        head.unknown_frees = head.unknown_frees.saturating_add(of.unknown_frees);
        head.desc.retain(|line| of.desc.contains(line));
        (head.part, head.last) = (None, false);
        if let (Some(streams), Some(more)) = (&mut head.streams, &of.streams) {
            streams.others = streams.others.saturating_add(more.others);
        }
        head.missed_by = head.missed_by.or(of.missed_by);
        let instructions = self.streams.iter().map(|s| s.instruction + 1).max().unwrap_or(0);
        // (In order, as all files have them.)
        let (before, mut numbers) = (self.objects.len(), Vec::new());
        for object in part.objects {
            let Ok(n) = self.objects[..before].binary_search_by(|known| known.key().cmp(&object.key())) else {
                numbers.push(self.objects.len());
                self.objects.push(object);
                continue;
            };
            numbers.push(n);
            let known = &mut self.objects[n];
            known.bytes = match known.kind {
                Kind::Heap => known.bytes.saturating_add(object.bytes),
                _ => known.bytes.max(object.bytes),
            };
            known.blocks = known.blocks.saturating_add(object.blocks);
            // Parts follow one another.
            known.peak_bytes = known.peak_bytes.max(object.peak_bytes);
            known.add_members(object.members.clone(), (known.is_untouched(), object.is_untouched()));
            add(&mut known.counts, &object.counts);
            known.add_fields(object.fields);
        }
        for mut stream in part.streams {
            stream.object = numbers[stream.object];
            stream.instruction = stream.instruction.saturating_add(instructions);
            self.streams.push(stream);
        }
        for mut by in part.missed_by {
            by.object = numbers[by.object];
            self.missed_by.push(by);
        }
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::missed_by::MissedBy;
    use super::super::{Field, Head, Object, VERSION};
    use super::*;

    fn object(name: &str, blocks: u64, counts: [u64; 2]) -> Object {
        let field = Field { offset: 8, counts: counts.to_vec() };
        Object {
            kind: Kind::Heap,
            name: name.to_owned(),
            file: "a.c".to_owned(),
            line: 1,
            function: "f".to_owned(),
            bytes: 10 * blocks,
            blocks,
            peak_bytes: 7 * blocks,
            callers: Vec::new(),
            fields: vec![field],
            members: None,
            counts: counts.to_vec(),
        }
    }

    fn part(number: u64, objects: &[(&str, u64, [u64; 2])]) -> Mem {
        let head = Head {
            version: VERSION,
            command: "a".to_owned(),
            pid: 3,
            desc: vec!["D1".to_owned(), format!("Trigger: {number}")],
            events: vec!["D1mr".to_owned(), "D1mw".to_owned()],
            missed_by: Some(0),
            part: Some(number),
            ..Head::default()
        };
        let mut mem = Mem { head, ..Mem::default() };
        mem.objects = objects.iter().map(|(name, blocks, counts)| object(name, *blocks, *counts)).collect();
        mem.missed_by = (0..objects.len())
            .map(|n| MissedBy {
                object: n,
                function: "g".to_owned(),
                file: "a.c".to_owned(),
                module: "a".to_owned(),
                counts: objects[n].2.to_vec(),
            })
            .collect();
        mem.finish();
        mem
    }

    #[test]
    fn parts_add_up() {
        let mut all = part(1, &[("b", 2, [3, 1]), ("c", 1, [1, 0])]);
        all.add_part(part(2, &[("a", 4, [0, 2]), ("b", 1, [5, 5])])).expect("a part");
        let mut bytes = Vec::new();
        all.write(&mut bytes).expect("it is written");
        let read = Mem::read(&mut bytes.as_slice()).expect("the sums are right");
        assert_eq!(read.head.totals, [9, 8]);
        assert_eq!((read.head.part, &read.head.desc[..]), (None, &["D1".to_owned()][..]));
        let b = read.objects.iter().find(|o| o.name == "b").expect("it is there");
        assert_eq!((b.blocks, b.bytes, b.peak_bytes, &b.counts[..]), (3, 30, 14, &[8, 6][..]));
        assert_eq!(b.fields, [Field { offset: 8, counts: vec![8, 6] }]);
        assert_eq!(read.missed_by.len(), 3);
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let mut all = part(1, &[("b", 2, [3, 1])]);
        let mut other = part(2, &[]);
        other.head.pid = 4;
        assert_eq!(all.add_part(other), Err(Differs::Processes));
        let mut other = part(2, &[]);
        other.head.uses = Some(64);
        assert_eq!(all.add_part(other), Err(Differs::Events));
        let mut other = part(2, &[]);
        other.head.reuse = Some(super::super::reuse::ReuseHead::default());
        assert_eq!(all.add_part(other), Err(Differs::Whole));
        assert_eq!(all, part(1, &[("b", 2, [3, 1])]));
    }
}
