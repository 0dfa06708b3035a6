complete -c cg_report -s o -l output -d 'Where to write the report; - is standard output [default: the first profile\'s name with .html]' -r
complete -c cg_report -l serve -d 'Serve the report from this machine alone, at an address that nobody can guess, instead of writing a file: parts of it are sent when they are looked at, so that there is no limit to its size [default: any free port]' -r
complete -c cg_report -l live -d 'Serve a report of a run of grind that goes on, by its process: it begins with a part that the run is asked to write, and grows by each further one, which the page can ask for' -r
complete -c cg_report -l mem -d 'Show the data objects of the same run, too: its mem.out file, with misses by object, streams, stack distances and shared lines, as far as it has them' -r
complete -c cg_report -l samples -d 'Lay what another profiler measured beside the counts, as an event Smp: the output of perf script, a profile of pprof\'s format, folded stacks, or lines such as \'lib.so+0x1a2b 12\'. Parts of the profile are added up then' -r
complete -c cg_report -l samples-event -d 'With --samples: what was measured, if that is more than one thing, such as cycles:u [default: the first one]' -r
complete -c cg_report -l base -d 'Compare with this profile: everything in the report is then told of both, and as a difference. Several files on a side are runs of one thing: the one in the middle is shown, with how far the others are from it; may be repeated' -r
complete -c cg_report -l label -d 'What a profile is called instead of by its file: the first name is the first profile\'s, and so on; may be repeated' -r
complete -c cg_report -l event -d 'Show an event that is computed from others: a sum, such as Work=\'Ir + 10 Bm\', or a ratio of sums, such as PerK=\'1000 L1m / Ir\'; may be repeated' -r
complete -c cg_report -l fail-above -d 'Fail, with status 3, if the total of an event grew by more than this percentage since the base; may be repeated' -r
complete -c cg_report -l show -d 'Show only these events, in this order; others are not in the report' -r
complete -c cg_report -l sort -d 'The event that the report begins with [default: the first one]' -r
complete -c cg_report -l source -d 'Whether the text of source files becomes part of the report' -r -f -a "embed\t'Their text is part of the report'
none\t'The report has their names only'"
complete -c cg_report -l source-limit -d 'How much source text the report may hold, such as 16M; the most expensive files come first' -r
complete -c cg_report -s I -l include -d 'Look for source files here too; may be repeated' -r -F
complete -c cg_report -l mod-filename -d 'Rename source files by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_report -l mod-funcname -d 'Rename functions by s/OLD/NEW/, with flags g (all matches) and i (ignore case)' -r
complete -c cg_report -l code -d 'Whose machine code becomes part of the report: of functions that make up 99.9 % of the self cost, of all, or of none' -r -f -a "hot\t'The most expensive ones, up to 99.9 % of the self cost'
all\t'All that rows with addresses name'
none\t'None'"
complete -c cg_report -l root -d 'Look for the object files that ran below this folder, as in an image of another system' -r -F
complete -c cg_report -l parts -d 'Whether parts of profiles, such as dumps and threads, can be looked at one by one, or only their sum is in the report' -r -f -a "keep\t'Each can be looked at alone, and any of them together; not in a comparison'
sum\t'Only their sum is in the report'"
complete -c cg_report -l contexts -d 'Whether functions that a run told apart by callers or levels of recursion (f\'2, f\'g\'main) are one at first and the page has a switch (both), are one (merge), or stand apart (apart)' -r -f -a "both\t'All of a function are one, and the page can show each by itself'
merge\t'All of a function are one'
apart\t'Each stands by itself'"
complete -c cg_report -l editor -d 'Have source lines link to an editor: vscode, vscodium, cursor, zed, idea, sublime, textmate, emacs, or an address with {file} and {line}' -r
complete -c cg_report -l max-size -d 'Refuse to write a larger report' -r
complete -c cg_report -l open -d 'Open the report in $BROWSER, or in what xdg-open finds'
complete -c cg_report -l keep -d 'With --serve or --live: go on when the page has been closed for ten minutes'
complete -c cg_report -l separate -d 'Do not begin with the sum of several profiles but with the first one; the page switches between them'
complete -c cg_report -l redact -d 'Leave out sources, folders of files and objects, the command line and descriptions of the run'
complete -c cg_report -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cg_report -s V -l version -d 'Print version'
