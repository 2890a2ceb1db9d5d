# needs: m4 bison flex gcc
# tags: fast
# m4, bison, flex and the calculator that they make
cat >c.y <<'S'
%{
#include <stdio.h>
int yylex(void);
void yyerror(const char *s) { puts(s); }
%}
%token N
%left '+' '-'
%left '*'
%%
l: | l e '\n' { printf("%d\n", $2); } ;
e: N | e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; } ;
%%
int main(void) { return yyparse(); }
S
cat >c.l <<'S'
%{
#include "c.tab.h"
#include <stdlib.h>
%}
%option noyywrap nounput noinput
%%
[0-9]+ { yylval = atoi(yytext); return N; }
[ ]+ ;
.|\n return *yytext;
S
$RUN bison -d c.y && $RUN flex -o c.c c.l && $RUN gcc -w -o calc c.tab.c c.c || exit 1
printf '1 + 2 * 3\n(4 - 9) * 7\n' | $RUN ./calc
printf '1 +\n' | $RUN ./calc; echo "status $?"
cat >a.m4 <<'S'
define(`twice', `$1$1')twice(ab) ifelse(1, 1, yes, no) eval(2 ** 10)
define(`count', `ifelse($1, 0, , `$1 count(decr($1))')')count(20)
S
$RUN m4 a.m4
