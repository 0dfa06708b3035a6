//! Who looks at what runs: numbers of the engine's thread go to a thread of their own, which reads debug information and answers. The
//! thread begins with the first question; a run that nobody looks at has none. What it does costs the program nothing but the time
//! to copy its counts.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Activity, ActivityRequest, Answer, Asked, Request};
use grind_analysis::counts::Events;
use grind_analysis::simulator::Finding;
use grind_names::made::Registry;
use grind_names::opened::Opened;
use grind_names::source::Sources;
use grind_session::ProcessReport;
use grind_session::broken;
use grind_types::Pid;

use crate::os;

pub mod sample;

use sample::{Gathering, Modified, Namer, Sample};

/// What the thread is told.
#[derive(Debug)]
enum Message {
    Sample(Box<Sample>, ActivityRequest, Asked),
    Forget(Pid),
}

/// See the module's description.
#[derive(Debug)]
pub struct Live {
    opened: Opened,
    made: Registry,
    gatherings: HashMap<Pid, Gathering>,
    to: Option<Sender<Message>>,
}

impl Live {
    /// Nobody has looked yet. Names are those of what is `opened`, those of code that programs make in `made`.
    #[must_use]
    pub fn new(opened: Opened, made: Registry) -> Self {
        Self { opened, made, gatherings: HashMap::new(), to: None }
    }

    /// Process `pid` has ended, or runs another program from now on.
    pub fn forget(&mut self, pid: Pid) {
        if self.gatherings.remove(&pid).is_some()
            && let Some(to) = &self.to
        {
            let _ = to.send(Message::Forget(pid));
        }
    }

    /// Answers what `asked` wants to know of a process, which began then. `events` are those that are told, and what
    /// modifications are to be; `findings` is what a simulator has found. The
    /// thread began with it when its processor time was that.
    pub fn answer(
        &mut self,
        report: &ProcessReport<'_>,
        began: Instant,
        events: (Events, Modified),
        findings: &[Finding],
        (asked, since): (Asked, Duration),
    ) {
        let Request::Functions(wanted) = asked.request.clone() else { return };
        if self.to.is_none() {
            self.to = begin(self.opened.clone(), self.made.clone());
        }
        let Some(to) = &self.to else {
            return asked.answer(Answer::Refused("there can be no more threads".to_owned()));
        };
        let gathering = self.gatherings.entry(report.pid).or_insert_with(|| Gathering::new(began));
        let mut sample = gathering.sample(report, events, findings);
        sample.took = os::thread_time().saturating_sub(since);
        // Dropped, it is refused.
        let _ = to.send(Message::Sample(Box::new(sample), wanted, asked));
    }
}

/// Begins the thread that has names. It ends when nobody can send it anything any more.
fn begin(opened: Opened, made: Registry) -> Option<Sender<Message>> {
    let (to, from) = channel();
    let serve = move || {
        let (mut namer, mut symbolizer) = (Namer::default(), Sources::new(opened));
        for message in from {
            match message {
                Message::Forget(pid) => namer.forget(pid),
                Message::Sample(sample, wanted, asked) => {
                    let (before, since) = (sample.took, os::thread_time());
                    let told = broken::caught(|| namer.tell(*sample, &wanted, &mut symbolizer, &made));
                    let took = before + os::thread_time().saturating_sub(since);
                    asked.answer(match told {
                        Ok(activity) => {
                            let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                            Answer::Done(Activity { took, ..activity }.lines())
                        }
                        Err(_) => Answer::Refused("names cannot be found".to_owned()),
                    });
                }
            }
        }
    };
    thread::Builder::new().name("live".to_owned()).spawn(serve).ok().map(|_| to)
}
