# SPDX-FileCopyrightText: hirelock contributors
# SPDX-License-Identifier: MIT
#
# plant.pl check TREE MUTANT...: does the text that each mutant replaces stand once where it says, and
# do the files still compile with it?
# plant.pl plant TREE MUTANT: replaces it there, and prints the files that it changed.
#
# A change stands in a function, a variable or a macro of src/, whatever its file, or in a script of
# lua/, whatever its folder: "in: hli_grant_take", "in: lock_release.lua". Texts are compared token
# by token: comments, spaces and line breaks do not count.

use strict;
use warnings;
use File::Basename;

my %token_of = (
    c => qr{\G(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+|\.\.\.|->|\+\+|--|<<=?|>>=?|&&|\|\||\#\#
              |[-+*/%&|^!=<>]=|\S)}xs,
    lua => qr{\G(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[\[.*?\]\]|\w+|\.\.\.?|[~=<>]=|\S)}xs,
);
my %skip_of = (
    c => qr{\G(?:\s+|\\\n|/\*.*?\*/|//[^\n]*)}s,
    lua => qr{\G(?:\s+|--\[\[.*?\]\]|--[^\n]*)}s,
);

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$file>;
}

# In C and in Lua, below these folders; by find, as a small Perl has no File::Find.
sub files_of {
    my @in = grep { -d } @_ or return;
    open my $list, '-|', 'find', @in, qw(-name *.[ch] -o -name *.lua) or die "find: $!\n";
    chomp(my @found = <$list>);
    return @found;
}

# tokens(TEXT, c|lua): [token, begin, end]...
sub tokens {
    my ($text, $language) = @_;
    my ($token, $skip, @found) = ($token_of{$language}, $skip_of{$language});
    pos($text) = 0;
    while (pos($text) < length $text) {
        next if $text =~ /$skip/gc;
        my $begin = pos $text;
        $text =~ /$token/gc or die "no token at $begin\n";
        push @found, [substr($text, $begin, pos($text) - $begin), $begin, pos $text];
    }
    return @found;
}

sub spelled { return join "\n", '', (map { $_->[0] } @_), ''; }

# Of a definition at the top of a C file: where its body or its value begins.
sub body_of {
    my ($at) = grep { $_[$_][0] =~ /^[{=]$/ } 0 .. $#_;
    return $at;
}

sub is_function {
    my $at = body_of(@_);
    return $at && $_[$at][0] eq '{' && $_[$at - 1][0] eq ')';
}

sub named {
    my @word = map { $_->[0] } @_;
    return $word[2] if @word > 2 && "@word[0, 1]" eq '# define';
    my $at = body_of(@_) or return '';
    my $before = join ' ', @word[0 .. $at - 1];
    return $before =~ /(\w+) (\((?:[^()]++|(?2))*\))$/ ? $1 : '' if is_function(@_);
    $before =~ s/\[.*?\]//g;
    return $word[$at] eq '=' && $before =~ /(\w+)\W*$/ ? $1 : '';
}

# definitions(TEXT): of a C file, [name, token...]...
sub definitions {
    my ($text) = @_;
    my (@found, @chunk);
    my ($depth, $line_end) = (0, -1);
    my $close = sub {
        my $name = named(@chunk);
        push @found, [$name, @chunk] if $name ne '';
        @chunk = ();
    };
    for my $token (tokens($text, 'c')) {
        my ($word, $begin) = @$token;
        if ($line_end >= 0 && $begin >= $line_end) { $close->(); $line_end = -1; }
        if (!@chunk && $depth == 0 && $word eq '#') {
            pos($text) = $begin;
            $text =~ /\G(?:[^\\\n]|\\.)*/gs;
            $line_end = pos $text;
        }
        push @chunk, $token;
        next if $line_end >= 0;
        $depth += ($word =~ /^[{(]$/) - ($word =~ /^[)}]$/);
        next if $depth > 0;
        $close->() if $word eq ';' || ($word eq '}' && is_function(@chunk));
    }
    $close->();
    return @found;
}

# Every definition of the tree by its name: {path, tokens}...
sub index_of {
    my ($tree) = @_;
    my %found;
    for my $path (files_of("$tree/src", "$tree/lua")) {
        my ($name, $language) = (basename($path), $path =~ /\.lua$/ ? 'lua' : 'c');
        my $text = slurp($path);
        if ($language eq 'lua') {
            push @{$found{$name}}, {path => $path, tokens => [tokens($text, 'lua')]};
            next;
        }
        for (definitions($text)) {
            my ($name, @tokens) = @$_;
            push @{$found{$name}}, {path => $path, tokens => \@tokens};
        }
    }
    return \%found;
}

# changes(MUTANT): {in, from, to}...
sub changes {
    my ($mutant) = @_;
    my $text = slurp($mutant);
    my @found;
    while ($text =~ /^in: *(\S+)\n--- from\n(.*?)^--- to\n(.*?)(?=^in: |\z)/msg) {
        my %change = (in => $1, from => $2, to => $3);
        $change{language} = $change{in} =~ /\.lua$/ ? 'lua' : 'c';
        push @found, \%change;
    }
    die "it plants nothing\n" if !@found;
    return @found;
}

# places(TOKENS, FROM): at which of the tokens does it begin?
sub places {
    my ($tokens, $from) = @_;
    my ($text, $sought, @found) = (spelled(@$tokens), spelled(@$from));
    my $at = -1;
    while (($at = index $text, $sought, $at + 1) >= 0) {
        my $before = substr $text, 0, $at;
        push @found, $before =~ tr/\n//;
    }
    return @found;
}

# place_of(INDEX, CHANGE): (definition, first token, count of tokens), or it dies and says why.
sub place_of {
    my ($index, $change) = @_;
    my $in = $change->{in};
    my @from = tokens($change->{from}, $change->{language});
    die "it replaces nothing in $in\n" if !@from;
    my @all = @{$index->{$in} // []};
    die "$in is defined nowhere" . elsewhere($index, $change, \@from) . "\n" if !@all;
    my @found;
    for my $definition (@all) {
        push @found, map { [$definition, $_, scalar @from] } places($definition->{tokens}, \@from);
    }
    return @{$found[0]} if @found == 1;
    my $count = @found;
    my $hint = @found ? '' : elsewhere($index, $change, \@from);
    die "its text stands $count times in $in$hint\n";
}

sub elsewhere { # where it may have gone
    my ($index, $change, $from) = @_;
    my $is_lua = $change->{language} eq 'lua';
    my @found;
    for my $in (sort keys %$index) {
        next if $is_lua != ($in =~ /\.lua$/);
        push @found, $in if grep { places($_->{tokens}, $from) } @{$index->{$in}};
    }
    return @found ? '; it stands in ' . join ', ', splice @found, 0, 4 : '';
}

# FOLDER_NAME SUITE/TEST is in tests/FOLDER/NAME.c, or in a file that it shares with others.
sub look_for_test {
    my ($tree, $mutant, $words) = @_;
    my ($folder, $name, $test) = slurp($mutant) =~ m{^killed by: ([a-z]+)_(\w+) \S+/(\w+)$}m
        or die "it names no test: killed by: FOLDER_NAME SUITE/TEST\n";
    die "there is no tests/$folder/$name.c\n" if !-e "$tree/tests/$folder/$name.c";
    die "$test stands nowhere in tests/\n" if !$words->{$test};
}

sub words_of_tests {
    my ($tree) = @_;
    my %words;
    for my $path (files_of("$tree/tests")) {
        $words{$_} = 1 for slurp($path) =~ /\w+/g;
    }
    return \%words;
}

# planted(INDEX, CHANGE...): the text of each file that they change.
sub planted {
    my ($index, @changes) = @_;
    my (%edits, %text);
    for my $change (@changes) {
        my ($definition, $first, $count) = place_of($index, $change);
        my ($path, $tokens) = @$definition{qw(path tokens)};
        chomp(my $to = $change->{to});
        push @{$edits{$path}}, [$tokens->[$first][1], $tokens->[$first + $count - 1][2], $to];
    }
    for my $path (keys %edits) {
        $text{$path} = slurp($path);
        for my $edit (sort { $b->[0] <=> $a->[0] } @{$edits{$path}}) { # from behind: places stay
            my ($begin, $end, $to) = @$edit;
            substr($text{$path}, $begin, $end - $begin) = $to;
        }
    }
    return \%text;
}

sub compile {
    my ($tree, $text) = @_;
    my @cc = (qw(cc -std=gnu11 -D_GNU_SOURCE= -w -fsyntax-only -x c), "-I$tree/include", "-I$tree/src", '-');
    for my $path (grep { /\.[ch]$/ } sort keys %$text) {
        open my $out, '|-', @cc or die "cc: $!\n";
        print $out $text->{$path};
        close $out or die "$path does not compile with it\n";
    }
}

sub check {
    my ($tree, @mutants) = @_;
    my ($index, $words) = (index_of($tree), words_of_tests($tree));
    my ($good, $bad) = (0, 0);
    for my $mutant (@mutants) {
        my @wrong;
        my $try = sub {
            eval { $_[0]->(); 1 } or push @wrong, $@;
        };
        my @changes;
        $try->(sub { @changes = changes($mutant) });
        for my $change (@changes) {
            $try->(sub { place_of($index, $change) });
        }
        $try->(sub { look_for_test($tree, $mutant, $words) });
        $try->(sub { compile($tree, planted($index, @changes)) }) if !@wrong;
        print "FAIL: $mutant: $_" for @wrong;
        @wrong ? $bad++ : $good++;
    }
    print "$good passed, $bad failed\n";
    return $bad == 0 && $good > 0;
}

sub plant {
    my ($tree, $mutant) = @_;
    my $text = planted(index_of($tree), changes($mutant));
    for my $path (sort keys %$text) {
        open my $out, '>', $path or die "$path: $!\n";
        print $out $text->{$path};
        close $out or die "$path: $!\n";
        print "$path\n";
    }
    return 1;
}

my ($verb, $tree, @mutants) = @ARGV;
my $done = $verb eq 'check' ? check($tree, @mutants) : plant($tree, @mutants);
exit($done ? 0 : 1);
