complete -c cg_export -l format -d 'What to write' -r -f -a "pprof\t'pprof: profile.proto, gzipped'
speedscope\t'speedscope\'s own format'
folded\t'Folded stacks, one a line, for flame graphs'
firefox\t'A processed profile of the Firefox Profiler'
chrome\t'A trace of the parts of profiles, for Perfetto and Chromium'
dot\t'The call graph for Graphviz'
json\t'Everything, as one JSON document'
parquet\t'A data set of Parquet files, for DuckDB, Spark and others'"
complete -c cg_export -s o -d 'Write to FILE, all or nothing, instead of standard output; for parquet the folder of the data set' -r -F
complete -c cg_export -l stacks -d 'Where stacks come from [default: contexts if any were recorded, else flat]' -r -f -a "contexts\t'Exact: whole chains of calls, or the contexts in the names of functions'
flat\t'Exact: each function alone'
estimated\t'Shared out along the call graph; functions\' own costs stay exact'"
complete -c cg_export -l event -d 'For folded and dot: the event to write [default: the first]' -r
complete -c cg_export -l threshold -d 'For dot: leave out functions with less than this percentage of the total [default: 0.5]' -r
complete -c cg_export -l benchmark -d 'For parquet: what was measured' -r
complete -c cg_export -l commit -d 'For parquet: the commit that was measured' -r
complete -c cg_export -l run -d 'For parquet: the run, such as its number in CI' -r
complete -c cg_export -l time -d 'For parquet: when, in seconds since 1970 [default: when the file was last changed]' -r
complete -c cg_export -l rank -d 'For parquet: make the rank of a profile from its name by s/OLD/NEW/' -r
complete -c cg_export -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_export -s V -l version -d 'Print version'
