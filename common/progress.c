#include "common/progress.h"
