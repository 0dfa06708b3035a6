//! Launchers of parallel programs, and what each tells the processes that it starts. Only variables are looked at, so that no
//! library of any launcher is needed. Whoever wants to know a rank asks here, so that all programs agree on it.

/// A launcher's variables, by its manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The rank of a process.
    pub rank: &'static str,
    /// How many processes there are, where it says so.
    pub size: Option<&'static str>,
    /// What tells a job from others: as many of these as are set.
    pub jobs: &'static [&'static str],
}

const fn launcher(rank: &'static str, size: Option<&'static str>, jobs: &'static [&'static str]) -> Launcher {
    Launcher { rank, size, jobs }
}

/// Open MPI (and PRRTE), MPICH and Intel MPI (Hydra), MVAPICH, PMIx, PALS and ALPS of Cray, Slurm. The launcher proper comes
/// before what may have started it.
pub const LAUNCHERS: [Launcher; 7] = [
    launcher("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE"), &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"]),
    launcher("PMI_RANK", Some("PMI_SIZE"), &["PMI_JOBID", "PBS_JOBID", "LSB_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"]),
    launcher("MV2_COMM_WORLD_RANK", Some("MV2_COMM_WORLD_SIZE"), &["PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"]),
    launcher("PMIX_RANK", None, &["PMIX_NAMESPACE"]),
    launcher("PALS_RANKID", Some("PALS_SIZE"), &["PALS_APID"]),
    launcher("ALPS_APP_PE", None, &["ALPS_APP_ID"]),
    launcher("SLURM_PROCID", Some("SLURM_NTASKS"), &["SLURM_JOB_ID", "SLURM_STEP_ID"]),
];
