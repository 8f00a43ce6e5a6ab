#include "common/option.h"
