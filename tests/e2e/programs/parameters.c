/* Trains a table and a tensor with elasticdl_ps.h. Usage: parameters SERVERS CHECKPOINT TRANSPORT
 * [restored]. Prints "ok", or the line of the first check that failed. */
#include <elasticdl_ps.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      printf("line %d: %s (%s)\n", __LINE__, #condition, edl_ps_last_error());        \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

enum { DIM = 2, SIZE = 20000, INVALID_ARGUMENT = 3, ALREADY_EXISTS = 6 };

static const char* const kDeclaration =
    "{\"tables\": [{\"name\": \"t\", \"dim\": 2, \"initializer\": {\"name\": \"ones\"}}],"
    " \"tensors\": [{\"name\": \"d\", \"size\": 20000, \"optimizer\": {\"name\": \"SGD\"}}]}";

static const int64_t kIds[] = {5, -3, 5};
static float values[SIZE];
static float gradient[SIZE];

static void check_values(edl_ps* client, float row5, float first_value) {
  float rows[3 * DIM];
  edl_ps_rows wanted = {.table = 0, .count = 3, .ids = kIds, .rows = rows};
  edl_ps_tensor tensor = {.tensor = 0, .values = values};
  CHECK(edl_ps_pull(client, EDL_PS_TELL, &wanted, 1, &tensor, 1) == 0);
  CHECK(rows[0] == row5 && rows[1] == row5 && rows[4] == row5);
  CHECK(values[0] == first_value && values[SIZE - 1] == first_value + SIZE - 1);
}

static int push(edl_ps* client, float third, int* refused) {
  float gradients[3 * DIM] = {1, 1, 4, 4, third, third};
  edl_ps_row_gradients rows = {
      .table = 0, .count = 3, .ids = kIds, .gradients = gradients, .learning_rate = 0.5F};
  edl_ps_tensor_gradient tensor = {.tensor = 0, .gradient = gradient, .learning_rate = 1};
  return edl_ps_push(client, &rows, 1, &tensor, 1, refused);
}

static void check_refusals(edl_ps* client) {
  edl_ps_tensor unknown = {.tensor = 1, .values = values};
  edl_ps* none = NULL;
  edl_ps_options wrong = {.servers = "localhost"};
  CHECK(edl_ps_connect(&wrong, &none) == INVALID_ARGUMENT && none == NULL);
  CHECK(strstr(edl_ps_last_error(), "'localhost' is not host:port") != NULL);
  wrong.servers = "";
  CHECK(edl_ps_connect(&wrong, &none) == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(client, "{") == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(client, "[]") == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(client, "{\"tables\": [{\"name\": \"t\"}]}") == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(client, "{\"tables\": 7, \"tensors\": 8}") == INVALID_ARGUMENT);
  CHECK(edl_ps_put(client, &unknown, 1) == INVALID_ARGUMENT);
}

static void check_null_arguments(edl_ps* client) {
  edl_ps* none = NULL;
  edl_ps_options options = {.servers = "127.0.0.1:1"};
  edl_ps_rows rows = {.table = 0, .count = 3, .ids = NULL, .rows = NULL};
  edl_ps_tensor tensor = {.tensor = 0, .values = NULL};
  edl_ps_row_gradients gradients = {.table = 0, .count = 3, .ids = kIds, .gradients = NULL};
  CHECK(edl_ps_connect(NULL, &none) == INVALID_ARGUMENT);
  CHECK(edl_ps_connect(&options, NULL) == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(NULL, kDeclaration) == INVALID_ARGUMENT);
  CHECK(edl_ps_declare(client, NULL) == INVALID_ARGUMENT);
  CHECK(strcmp(edl_ps_last_error(), "json is NULL") == 0);
  CHECK(edl_ps_put(client, NULL, 1) == INVALID_ARGUMENT);
  CHECK(edl_ps_put(client, &tensor, 1) == INVALID_ARGUMENT);
  CHECK(edl_ps_pull(client, EDL_PS_TELL, NULL, 1, NULL, 0) == INVALID_ARGUMENT);
  CHECK(edl_ps_pull(client, EDL_PS_TELL, &rows, 1, NULL, 0) == INVALID_ARGUMENT);
  CHECK(edl_ps_push(client, &gradients, 1, NULL, 0, NULL) == INVALID_ARGUMENT);
  CHECK(edl_ps_save(client, NULL) == INVALID_ARGUMENT);
  CHECK(edl_ps_restore(client, NULL) == INVALID_ARGUMENT);
  CHECK(edl_ps_flush(NULL) == INVALID_ARGUMENT);
  edl_ps_close(NULL);
}

static void check_rates(edl_ps* client) {
  float one[3 * DIM] = {1, 1, 1, 1, 1, 1};
  edl_ps_row_gradients rows = {
      .table = 0, .count = 3, .ids = kIds, .gradients = one, .learning_rate = (float)1e39};
  CHECK(edl_ps_push(client, &rows, 1, NULL, 0, NULL) == INVALID_ARGUMENT);
}

static void train(edl_ps* client, const char* checkpoint) {
  edl_ps_tensor tensor = {.tensor = 0, .values = values};
  int refused = -1;
  for (int i = 0; i < SIZE; ++i) {
    values[i] = (float)i;
    gradient[i] = -2;
  }
  CHECK(edl_ps_put(client, &tensor, 1) == 0);
  CHECK(push(client, 3, &refused) == 0 && refused == 0);
  check_values(client, 1 - 0.5F * (1 + 3), 2);
  CHECK(push(client, NAN, &refused) == 0 && refused == 1);
  CHECK(push(client, 1, NULL) == 0);
  check_values(client, -2, 4);
  CHECK(edl_ps_save(client, checkpoint) == 0);
  CHECK(edl_ps_save(client, checkpoint) == ALREADY_EXISTS);
}

int main(int argc, char** argv) {
  edl_ps* client = NULL;
  CHECK(argc >= 4);
  edl_ps_options options = {.servers = argv[1], .transport = atoi(argv[3]), .timeout = 30};
  CHECK(edl_ps_connect(&options, &client) == 0);
  check_refusals(client);
  check_null_arguments(client);
  if (argc > 4) {
    CHECK(edl_ps_restore(client, argv[2]) == 0);
    CHECK(edl_ps_declare(client, kDeclaration) == 0);
    check_values(client, -2, 4);
  } else {
    CHECK(edl_ps_declare(client, kDeclaration) == 0);
    check_null_arguments(client);
    check_rates(client);
    train(client, argv[2]);
  }
  edl_ps_close(client);
  edl_ps_close(NULL);
  puts("ok");
  return 0;
}
