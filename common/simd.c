#include "common/simd.h"
