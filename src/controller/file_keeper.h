/* File keeper: a thread that takes the descriptors of mapped files from the runtimes, has their contents kept in the store and
 * says in the log which objects the recording needs. */
#ifndef REPRISE_FILE_KEEPER_H
#define REPRISE_FILE_KEEPER_H

#include <pthread.h>
#include <stdbool.h>

#include "controller/log_writer.h"
#include "controller/store.h"
#include "log/channel.h"

struct file_keeper {
    struct channel *channel;
    struct store *store;
    struct log_writer *writer;
    int socket;
    pthread_t thread;

    pthread_mutex_t lock;      /* over `named` */
    struct object_name *named; /* objects that the log names: a hash table, all zero is free */
    size_t n_named, named_size;

    struct known_file *recalled; /* files that were known at the start */
    uint32_t *recalled_at;       /* their entries in the channel */
    size_t n_recalled;           /* those that no runtime has used yet come first */
    bool complained;
};

/* Fills in the channel's table with what the store knows. Before any runtime runs. */
void keeper_open(struct file_keeper *, struct channel *, struct store *, struct log_writer *, int socket);
bool keeper_start(struct file_keeper *);

/* Names objects that runtimes began to use without asking. To be called before events are written that may need them. */
void keeper_name_used(struct file_keeper *);

/* Answers what is asked, ends the thread; who still waits is told that it failed. */
void keeper_finish(struct file_keeper *);

#endif
