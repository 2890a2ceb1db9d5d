# needs: perl
# tags: fast
# perl: regular expressions, sorting, sprintf, fork, pipes, eval, local signals
cat >a.pl <<'S'
use strict; use List::Util qw(sum reduce); use Digest::MD5 qw(md5_hex); use POSIX qw(floor); use Data::Dumper; $Data::Dumper::Sortkeys = 1;
my %h = map { $_ => $_ ** 2 } 1 .. 200; print sum(values %h), " ", md5_hex(join ",", sort { $a <=> $b } keys %h), "\n";
my $t = "The year 1999 and 2024, " x 50; my $n = () = $t =~ /\b(?:19|20)\d\d\b/g; (my $u = $t) =~ s/(\d+)/<$1>/g; print "$n ", length $u, "\n";
print Dumper({ a => [1, 2, { b => undef }] }); printf "%.10g %s\n", 4 * atan2(1, 1), scalar reverse "abc";
my $pid = fork; if (!$pid) { exit 9 } waitpid $pid, 0; print $? >> 8, "\n";
open my $p, "-|", "echo from a pipe" or die; print <$p>; close $p;
$SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; 1 while 1 }; print $@; eval { die { code => 5 } }; print $@->{code}, "\n";
my @s = sort { $a->[1] <=> $b->[1] or $a->[0] cmp $b->[0] } map { [$_, length] } split / /, $t; print scalar @s, " $s[-1][0]\n"; exit 4;
S
$RUN perl a.pl; echo "status $?"
