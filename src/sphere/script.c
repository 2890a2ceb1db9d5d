/* `#!` lines, split as the kernel splits them: leading and trailing blanks go, the first word is the interpreter, all the
 * rest is one argument. A line longer than SCRIPT_LINE is accepted if only its argument is cut off. */
#include "inproc/sys.h"
#include "sphere/loader.h"

static bool blank(char c) { return c == ' ' || c == '\t'; }

/* Both search [from, to], the end included; NULL = not there. */
static char *skip_blanks(char *from, char *to) {
    for (; from <= to; from++)
        if (!blank(*from)) return from;
    return NULL;
}

static char *word_end(char *from, char *to) {
    for (; from <= to; from++)
        if (blank(*from) || !*from) return from;
    return NULL;
}

static char *line_end(char *text) {
    for (char *c = text; c < text + SCRIPT_LINE; c++)
        if (*c == '\n') return c;
    return NULL;
}

long script_split(struct script_line *s) {
    char *text = s->text, *last = text + SCRIPT_LINE - 1;
    s->interp = s->arg = NULL;
    if (text[0] != '#' || text[1] != '!') return -ENOEXEC;

    char *end = line_end(text);
    if (!end) {
        char *name = skip_blanks(text + 2, last);
        if (!name || !word_end(name, last)) return -ENOEXEC;
        end = last;
    }
    while (blank(end[-1])) end--;

    char *name = skip_blanks(text + 2, end);
    if (!name || name == end) return -ENOEXEC;
    char *name_end = word_end(name, end);
    char *arg = name_end && *name_end ? skip_blanks(name_end, end) : NULL;
    *end = '\0';
    if (arg) *name_end = '\0';
    s->interp = name;
    s->arg = arg;
    return 0;
}
