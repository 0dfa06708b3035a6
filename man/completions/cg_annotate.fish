complete -c cg_annotate -l fold-by -d 'The same, commands being the same after s/OLD/NEW/; may be repeated' -r
complete -c cg_annotate -l mod-filename -d 'Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_annotate -l mod-funcname -d 'Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_annotate -l show -d 'Show only these events, in this order' -r
complete -c cg_annotate -l sort -d 'Sort by these events; the first also decides what is above the threshold' -r
complete -c cg_annotate -l threshold -d 'Show functions with at least this percentage of the total, from 0 to 20' -r
complete -c cg_annotate -l show-percs -d 'Show percentages beside counts [default]' -r -f -a "yes\t'On'
no\t'Off'"
complete -c cg_annotate -l auto -d 'Old spelling of --annotate and --no-annotate' -r -f -a "yes\t'On'
no\t'Off'"
complete -c cg_annotate -l context -d 'Print this many lines of source before and after each line that has counts' -r
complete -c cg_annotate -l fail-above -d 'With --diff: end with exit status 3 if the total of EVENT grew by more than PERCENT; may be repeated' -r
complete -c cg_annotate -l fail-above-function -d 'With --diff: the same for each function with at least --threshold percent of a total; may be repeated' -r
complete -c cg_annotate -l map-source -d 'Read source files whose names begin with OLD where they begin with NEW instead; may be repeated' -r
complete -c cg_annotate -l color -d 'When to colour the report' -r -f -a "auto\t'If standard output is a terminal and `NO_COLOR` is unset or empty'
always\t'Always'
never\t'Never'"
complete -c cg_annotate -l diff -d 'Print the difference of two profiles: the second minus the first'
complete -c cg_annotate -l by-context -d 'Print what each function costs in each context that the program has named by client requests'
complete -c cg_annotate -l by-process -d 'Print what each process of a tree costs (`grind --tree=FILE`), itself and with all that it started, and functions by program'
complete -c cg_annotate -l fold -d 'With --by-process: make processes one that run the same command'
complete -c cg_annotate -l no-show-percs -d 'Show counts only'
complete -c cg_annotate -l annotate -d 'Print source files with their counts [default]'
complete -c cg_annotate -l no-annotate -d 'Do not print source files'
complete -c cg_annotate -l json -d 'Print the report as JSON, for programs'
complete -c cg_annotate -l github-summary -d 'Print the totals and the functions above the threshold as Markdown tables'
complete -c cg_annotate -l growth -d 'With --diff: show each function\'s counts before and after, and changed source files with the counts of both sides; bounds show that, too'
complete -c cg_annotate -l match-paths -d 'With --diff: rename source files so that those of two builds in different folders meet'
complete -c cg_annotate -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_annotate -s V -l version -d 'Print version'
