/* The libraries that the program has loaded, from the list of its dynamic linker: qXfer:libraries-svr4. */
#ifndef REPRISE_RSP_LIBRARIES_H
#define REPRISE_RSP_LIBRARIES_H

#include "rsp/target.h"
#include "rsp/text.h"

void libraries_xml(struct target *, struct out *);

#endif
