complete -c cg_merge -s o -d 'Write to FILE, all or nothing, instead of standard output' -r -F
complete -c cg_merge -l job -d 'With --reduce: what tells this start from others, where the launcher does not say' -r
complete -c cg_merge -l patience -d 'With --reduce: how long to wait for another process' -r
complete -c cg_merge -l fold-by -d 'The same, commands being the same after s/OLD/NEW/; may be repeated' -r
complete -c cg_merge -l rank -d 'With --by-rank: make the rank of a profile from its name by s/OLD/NEW/' -r
complete -c cg_merge -l event -d 'With --by-rank: the event to look at [default: the first]' -r
complete -c cg_merge -l threshold -d 'With --by-rank: show functions with at least this percentage of the total [default: 0.1]' -r
complete -c cg_merge -l reduce -d 'Under a launcher (mpirun, srun): add up together with the other processes, of which each takes a share of the files, or those that have its rank in their names for %r; FILE must be seen by all'
complete -c cg_merge -l by-rank -d 'Instead of the sum, print how evenly the ranks of a parallel program share each function'
complete -c cg_merge -l by-process -d 'Merge trees of processes (`grind --tree=FILE`) into one: with --fold, processes that run the same command under the same parent become one'
complete -c cg_merge -l fold -d 'With --by-process: make processes one that run the same command'
complete -c cg_merge -l json -d 'With --by-rank: print the table as JSON, for programs'
complete -c cg_merge -s h -l help -d 'Print help'
complete -c cg_merge -s V -l version -d 'Print version'
