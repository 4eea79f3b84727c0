/* Parameters on servers (`elasticdl ps`), for C and for languages that call C. The library is
 * libelasticdl_ps.so.
 *
 *   edl_ps* client;
 *   edl_ps_options options = {.servers = "127.0.0.1:40001"};
 *   if (edl_ps_connect(&options, &client) != 0) { puts(edl_ps_last_error()); ... }
 *   edl_ps_declare(client, "{\"tables\": [{\"name\": \"users\", \"dim\": 2}]}");
 *   int64_t ids[] = {7, 9};
 *   float rows[2 * 2];
 *   edl_ps_rows wanted = {.table = 0, .count = 2, .ids = ids, .rows = rows};
 *   edl_ps_pull(client, EDL_PS_CREATE, &wanted, 1, NULL, 0);
 *
 * Calls return 0, or one of the canonical codes of gRPC (3: a wrong argument, 14: a server is
 * away); what was wrong is told by edl_ps_last_error(). Memory stays the caller's, and is not
 * touched once a call has returned. One thread at a time may use a client; different clients are
 * independent. */
#ifndef ELASTICDL_PS_H_
#define ELASTICDL_PS_H_

/* C has its own names. NOLINTBEGIN */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EDL_PS_API __attribute__((visibility("default")))

typedef struct edl_ps edl_ps;

enum { EDL_PS_AUTO = 0, EDL_PS_TCP = 1, EDL_PS_SHARED_MEMORY = 2 };

typedef struct edl_ps_options {
  const char* servers; /* "host:port,host:port", in the order of their --index */
  const char* token;   /* NULL: none */
  const char* caller;  /* who this is, in messages of the server; may be NULL */
  int transport;       /* EDL_PS_AUTO: shared memory where that works */
  double timeout;      /* seconds without any answer before calls fail; 0: ten minutes */
} edl_ps_options;

/* Waits for the servers. `*client` is set only when it returns 0. */
EDL_PS_API int edl_ps_connect(const edl_ps_options* options, edl_ps** client);

/* Names the parameters, once, before all below: JSON, docs/formats/parameters.md. From then on
 * tables and tensors are numbers, from 0 in the order of the text. */
EDL_PS_API int edl_ps_declare(edl_ps* client, const char* json);

/* The values of a tensor, as many as were declared. */
typedef struct edl_ps_tensor {
  size_t tensor;
  float* values; /* written by a pull, only read by a put */
} edl_ps_tensor;

/* Gives tensors that have no value yet theirs. */
EDL_PS_API int edl_ps_put(edl_ps* client, const edl_ps_tensor* tensors, size_t count);

/* Rows of a table: `count` ids in any order, some perhaps more than once, and a row for each. */
typedef struct edl_ps_rows {
  size_t table;
  size_t count;
  const int64_t* ids;
  float* rows;
} edl_ps_rows;

/* What to do about an id without a row: make it, or only tell what it would be. */
enum { EDL_PS_CREATE = 0, EDL_PS_TELL = 1 };

/* All in one message to each server. */
EDL_PS_API int edl_ps_pull(edl_ps* client, int unknown, const edl_ps_rows* tables,
                           size_t table_count, const edl_ps_tensor* tensors, size_t tensor_count);

/* Gradients of rows: one for each id; those of the same id are added. */
typedef struct edl_ps_row_gradients {
  size_t table;
  size_t count;
  const int64_t* ids;
  const float* gradients;
  float learning_rate;
} edl_ps_row_gradients;

typedef struct edl_ps_tensor_gradient {
  size_t tensor;
  const float* gradient;
  float learning_rate;
} edl_ps_tensor_gradient;

/* Trains with a batch, once, also when a connection is lost in the middle. `*refused` becomes 1
 * when a gradient is NaN or infinite, and the batch changed nothing; it may be NULL. 10 (ABORTED),
 * of pulls, too: a server was started anew and lacks what this client trained; it is told once.
 * Restore then, or go on with what the servers have. 11 (OUT_OF_RANGE), in synchronous rounds
 * alone: the parameters that were pulled are too old; pull, compute the batch again, and push it.
 */
EDL_PS_API int edl_ps_push(edl_ps* client, const edl_ps_row_gradients* tables, size_t table_count,
                           const edl_ps_tensor_gradient* tensors, size_t tensor_count,
                           int* refused);

/* Applies synchronous rounds that are not full with what they have: nobody will fill them. */
EDL_PS_API int edl_ps_flush(edl_ps* client);

/* To a new folder that the servers can write; and from there to servers that have nothing yet. */
EDL_PS_API int edl_ps_save(edl_ps* client, const char* folder);
EDL_PS_API int edl_ps_restore(edl_ps* client, const char* folder);

/* Of this thread's last call that failed. Valid until its next one. */
EDL_PS_API const char* edl_ps_last_error(void);

/* Ends the connections. NULL is none. */
EDL_PS_API void edl_ps_close(edl_ps* client);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */
#endif
