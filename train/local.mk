# The training library: the device seam, its devices, networks. dl2-train stands on it.
EXTRA_DIST += train/device.h train/network.h
