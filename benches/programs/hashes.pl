# Hashes, strings and regular expressions.
use strict;
my ($state, %count, $hits) = (1, (), 0);
for my $i (1 .. 900_000) {
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    my $word = "w" . ($state % 5003) . "-" . ($i % 7);
    $count{$word}++;
    $hits++ if $word =~ /^w(\d+)\d*5-[0-3]$/ && $1 % 3 == 0;
}
my $text = join " ", map { "$_=$count{$_}" } sort keys %count;
$hits += () = $text =~ /\b(\w+)-(\d)=\d+ (?=w1)/g;
print scalar(keys %count), " $hits\n";
