#include "common/thread.h"
