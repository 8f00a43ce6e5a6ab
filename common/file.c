#include "common/file.h"
