# SPDX-License-Identifier: BSD-2-Clause
from dl2._core import (Array, Batch, Dataset, Epoch, Error, Loader, Sample, __doc__,
                       __version__)

__all__ = ["Array", "Batch", "Dataset", "Epoch", "Error", "Loader", "Sample", "__version__"]
