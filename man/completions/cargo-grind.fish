complete -c cargo-grind -l tool -d 'What is measured' -r -f -a "cachegrind\t'Instructions by function and line'
callgrind\t'Who calls whom, at what cost'"
complete -c cargo-grind -l grind -d 'Give grind an option, as often as needed, such as --grind=--cache-sim=yes' -r
complete -c cargo-grind -l show -d 'How to show the result' -r -f -a "functions\t'Totals and functions'
lines\t'Source lines as well'
report\t'A page in the browser'
nothing\t'Not at all'"
complete -c cargo-grind -l threshold -d 'Show functions with at least this percentage of the total' -r
complete -c cargo-grind -l dev -d 'Build as cargo does without --release [default: optimized]'
complete -c cargo-grind -s h -l help -d 'Print help (see more with \'--help\')'
complete -c cargo-grind -s V -l version -d 'Print version'
