#pragma once

#include <random>

#include "master/types.h"

namespace edl::master {

// What a schedule is made of, drawn from its seed.
struct Plan {
  static constexpr const char* kDataset = "records";

  int workers = 2;
  bool chief = false;
  DatasetSpec data;
  double kill_rate = 0;    // per worker and second
  double freeze_rate = 0;  // per worker and second
  double crash_rate = 0;   // of the master, per second
  double stall_rate = 0;   // of the master, per second
  double loss = 0;         // of a message
  double repeat = 0;       // of a request
  bool old_door_mixed = false;
  bool quits_on_error = false;  // old door: takes an error for the end, as elasticdl_api 1.0.0
};

Plan MakePlan(std::mt19937_64& random);

}  // namespace edl::master
