#include "common/machine.h"
