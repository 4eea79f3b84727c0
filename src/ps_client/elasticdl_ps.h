/* A client of parameter servers (`elasticdl ps`), for C and for languages that call C. The library
 * is libelasticdl_ps.so.
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
 * Calls return 0, or a canonical code of gRPC (3: a wrong argument, 14: a server cannot be
 * reached). edl_ps_last_error() returns the message. Memory stays the caller's, and is not accessed
 * after a call has returned. One thread at a time may use a client; different clients are
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
  const char* caller;  /* name of this process in logs and errors of servers; may be NULL */
  int transport;       /* EDL_PS_AUTO: shared memory where possible, otherwise TCP */
  double timeout;      /* seconds without progress after which calls fail; 0: ten minutes */
} edl_ps_options;

/* Connects to the servers, and waits for servers that do not run yet. Sets `*client` only when it
 * returns 0. */
EDL_PS_API int edl_ps_connect(const edl_ps_options* options, edl_ps** client);

/* Declares the parameters, as JSON: docs/formats/parameters.md. Call this once, before the
 * functions below, in which tables and tensors are numbers, from 0 in the order of the text. */
EDL_PS_API int edl_ps_declare(edl_ps* client, const char* json);

/* The values of a tensor, as many as its declared size. */
typedef struct edl_ps_tensor {
  size_t tensor;
  float* values; /* written by edl_ps_pull, read by edl_ps_put */
} edl_ps_tensor;

/* Sets the values of tensors that have none yet. */
EDL_PS_API int edl_ps_put(edl_ps* client, const edl_ps_tensor* tensors, size_t count);

/* Rows of a table: `count` ids in any order, which may repeat, and memory for a row of each. */
typedef struct edl_ps_rows {
  size_t table;
  size_t count;
  const int64_t* ids;
  float* rows;
} edl_ps_rows;

/* What to do for an id without a row: create the row, or only return the row that would be created.
 */
enum { EDL_PS_CREATE = 0, EDL_PS_TELL = 1 };

/* Pulls rows and tensors, with one message to each lane. */
EDL_PS_API int edl_ps_pull(edl_ps* client, int unknown, const edl_ps_rows* tables,
                           size_t table_count, const edl_ps_tensor* tensors, size_t tensor_count);

/* Gradients of rows: one for each id. The gradients of equal ids are summed. */
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

/* Applies the gradients of a batch once, even if a connection is lost during the call. Sets
 * `*refused` to 1 if a gradient is NaN or infinite; the batch changes nothing then. `refused` may
 * be NULL. 10 (ABORTED), also of edl_ps_pull: a server was restarted and lacks what this client
 * trained. It is returned once; restore a checkpoint, or continue with the parameters that the
 * servers have. 11 (OUT_OF_RANGE), only in synchronous rounds: the parameters that were pulled are
 * too old; pull, compute the batch again, and push it. */
EDL_PS_API int edl_ps_push(edl_ps* client, const edl_ps_row_gradients* tables, size_t table_count,
                           const edl_ps_tensor_gradient* tensors, size_t tensor_count,
                           int* refused);

/* Closes open synchronous rounds with the gradients that they have. */
EDL_PS_API int edl_ps_flush(edl_ps* client);

/* Saves all parameters to a new folder that the servers can write, and loads them into servers that
 * have no parameters yet. */
EDL_PS_API int edl_ps_save(edl_ps* client, const char* folder);
EDL_PS_API int edl_ps_restore(edl_ps* client, const char* folder);

/* The message of this thread's last failed call. Valid until the next failed call. */
EDL_PS_API const char* edl_ps_last_error(void);

/* Closes the connections and frees the client. Does nothing for NULL. */
EDL_PS_API void edl_ps_close(edl_ps* client);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */
#endif
