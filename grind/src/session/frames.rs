//! What a session says of interpreters whose frames are asked for: which it has refused, and that there was none. Each is said once.

use grind_names::frames::Frames;
use grind_names::opened::Opened;
use grind_session::{Notice, Session as _};
use grind_types::frames::FrameHook;
use grind_types::{Module, Pid};

use super::Runner;

impl Runner<'_> {
    /// Finds interpreters, if their frames are asked for. Names are those of what is `opened`.
    pub fn find_frames(&mut self, opened: Opened) {
        self.frames = self.options.callgrind.frames.map(|language| Frames::new(language, opened));
    }

    /// The hooks of interpreters in a module of a process; says which have been refused, and why.
    pub(super) fn hooks_of(&mut self, pid: Pid, module: &Module) -> Vec<(u64, FrameHook)> {
        let Some(frames) = &mut self.frames else { return Vec::new() };
        let environment = || std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let hooks = frames.hooks(module, &environment);
        let language = frames.language();
        for (path, refusal) in frames.refused() {
            let text = format!(
                "--frames={}: functions that {} runs are not shown: {refusal}",
                language.option(),
                path.display()
            );
            self.notice(pid, Notice::Warning(text));
        }
        hooks
    }

    /// The last process has ended: says so if there has been no interpreter.
    pub(super) fn tell_no_frames(&mut self, pid: Pid) {
        let Some(frames) = self.frames.as_ref().filter(|frames| frames.none()) else { return };
        let text = format!(
            "--frames={}: no function of a program is shown, since no {} was found whose symbols are there (is it stripped, \
             or another interpreter?)",
            frames.language().option(),
            frames.language().interpreter()
        );
        self.notice(pid, Notice::Warning(text));
    }
}
